// What executors record of themselves while somebody traces them: moments, with the device's clock.
// Each writes a ring of its own in memory of the device; the host reads it when they have left.
#pragma once

#include "runtime/cuda/resident/executor/board.h"

#include <cstdint>

namespace occl::cuda::resident {

/// What has just happened to a task, or to its submission.
enum class Moment : uint8_t {
  None,
  TakenIn,   // the submission, from the ring; of no task
  Visit,     // the task is claimed; detail: tasks to choose from; flag: all ranks had announced it
  Ready,     // its tables are near, its context is loaded
  Begun,     // its invocation may begin; it has not been known before in this visit
  Stepped,   // slices were done; detail: in so many nanoseconds; instruction: the first of them
  Blocked,   // it was looked at, and something was missing; detail: the wait, as WaitRecord has it
  Finished,  // its last slice is done
  Left,      // it was left, blocked or out of its quantum; flag: others were open
  Visible,   // the last task of a submission: all that it has stored is visible everywhere
  Completed, // the completion word is stored
};
inline constexpr uint32_t kNumMoments = 11;

/// What of a time marks hold: three days.
inline constexpr uint64_t kMarkTime = (1ull << 48) - 1;

struct MarkView {
  uint64_t time = 0; // nanoseconds of the device
  Moment moment = Moment::None;
  bool flag = false;
  uint32_t block = 0, sequence = 0, instruction = 0;
  /// The executor's own clock, whose steps are finer.
  uint32_t cycles = 0;
  uint64_t detail = 0;
};
/// A mark as its words: the time (48 bits), moment (7), flag, block; the submission's sequence, the
/// cycles; instruction; detail.
struct alignas(32) Mark {
  static constexpr uint32_t kWords = 4;
  uint64_t words[kWords];
};
OCCL_HOST_DEVICE inline Mark encode(const MarkView &view) {
  return {{(view.time & kMarkTime) | uint64_t(view.moment) << 48 | uint64_t(view.flag) << 55 |
               uint64_t(view.block) << 56,
           uint64_t(view.sequence) << 32 | view.cycles, view.instruction, view.detail}};
}
OCCL_HOST_DEVICE inline MarkView decode(const Mark &mark) {
  MarkView view;
  view.time = mark.words[0] & kMarkTime;
  view.moment = static_cast<Moment>(mark.words[0] >> 48 & 127);
  view.flag = (mark.words[0] >> 55 & 1) != 0;
  view.block = static_cast<uint32_t>(mark.words[0] >> 56);
  view.sequence = static_cast<uint32_t>(mark.words[1] >> 32);
  view.cycles = static_cast<uint32_t>(mark.words[1]);
  view.instruction = static_cast<uint32_t>(mark.words[2]);
  view.detail = mark.words[3];
  return view;
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
    if (ring != nullptr)
      record({.moment = moment, .block = block, .sequence = static_cast<uint32_t>(sequence)});
  }
  OCCL_HOST_DEVICE void mark(Moment moment, uint64_t sequence, uint32_t block, uint64_t detail,
                             bool flag = false, uint32_t instruction = 0) {
    if (ring != nullptr)
      record({.moment = moment,
              .flag = flag,
              .block = block,
              .sequence = static_cast<uint32_t>(sequence),
              .instruction = instruction,
              .detail = detail});
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
  OCCL_HOST_DEVICE void record(MarkView view) {
    if (target.lane() == 0) {
      view.time = target.time();
      view.cycles = target.cycles();
      const Mark mark = encode(view);
      Mark &to = ring->marks[written % MarkRing::kMarks];
      for (uint32_t w = 0; w < Mark::kWords; ++w)
        target.post(&to.words[w], mark.words[w]);
    }
    ++written;
  }

  MarkRing *ring;
  Target &target;
  uint64_t written;
};

} // namespace occl::cuda::resident
