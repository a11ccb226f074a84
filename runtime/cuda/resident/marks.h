// What executors record of themselves while somebody traces them: moments, with the device's clock.
// Each writes a ring of its own in memory of the device; the host reads it when they have left.
#pragma once

#include "runtime/cuda/resident/board.h"

#include <cstdint>

namespace occl::cuda::resident {

/// What has just happened to a task, or to its submission.
enum class Moment : uint8_t {
  None,
  TakenIn,   // the submission, from the ring; of no task
  Visit,     // the task is claimed
  Ready,     // its tables are near, its context is loaded
  Begun,     // its invocation may begin; it has not been known before in this visit
  Stepped,   // slices were done: the last of some
  Blocked,   // it was looked at, and something was missing
  Finished,  // its last slice is done
  Left,      // it was left, blocked or out of its quantum
  Visible,   // the last task of a submission: all that it has stored is visible everywhere
  Completed, // the completion word is stored
};
inline constexpr uint32_t kNumMoments = 11;

/// A mark as its two words: the time (48 bits of nanoseconds), moment, block; the submission's
/// sequence, and the executor's own clock (cycles), whose steps are finer.
struct alignas(16) Mark {
  uint64_t words[2];
};
struct MarkView {
  uint64_t time = 0;
  Moment moment = Moment::None;
  uint32_t block = 0, sequence = 0, cycles = 0;
};
OCCL_HOST_DEVICE inline Mark encode(const MarkView &view) {
  return {{view.time << 16 >> 16 | uint64_t(view.moment) << 48 | uint64_t(view.block) << 56,
           uint64_t(view.sequence) << 32 | view.cycles}};
}
OCCL_HOST_DEVICE inline MarkView decode(const Mark &mark) {
  return {mark.words[0] << 16 >> 16, static_cast<Moment>(mark.words[0] >> 48 & 255),
          static_cast<uint32_t>(mark.words[0] >> 56), static_cast<uint32_t>(mark.words[1] >> 32),
          static_cast<uint32_t>(mark.words[1])};
}

/// The last marks of an executor: number i lies at i % kMarks.
struct MarkRing {
  static constexpr uint32_t kMarks = 4096;
  alignas(kApart) uint64_t written; // as of when the executor last left
  Mark marks[kMarks];
};

/// One executor's. All lanes call together.
template <class Target> class Marker {
public:
  /// ring: null: nothing is recorded.
  OCCL_HOST_DEVICE Marker(MarkRing *ring, Target &target)
      : ring(ring), target(target), written(ring != nullptr ? target.peek(&ring->written) : 0) {}

  OCCL_HOST_DEVICE void mark(Moment moment, uint64_t sequence, uint32_t block) {
    if (ring == nullptr)
      return;
    if (target.lane() == 0) {
      const Mark mark =
          encode({target.time(), moment, block, static_cast<uint32_t>(sequence), target.cycles()});
      Mark &to = ring->marks[written % MarkRing::kMarks];
      target.post(&to.words[0], mark.words[0]);
      target.post(&to.words[1], mark.words[1]);
    }
    ++written;
  }
  /// The executor leaves.
  OCCL_HOST_DEVICE void leave() {
    if (ring != nullptr && target.lane() == 0)
      target.post(&ring->written, written);
  }

  /// The ring is another's from now on.
  OCCL_HOST_DEVICE void retire() {
    leave();
    ring = nullptr;
  }

private:
  MarkRing *ring;
  Target &target;
  uint64_t written;
};

} // namespace occl::cuda::resident
