// The host's side of a resident daemon: submits, looks for completion, starts executors again after
// they have left. Knows nothing of CUDA.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace occl::cuda::resident {

/// What an open task was last seen to wait for.
struct OpenTask {
  uint64_t request = 0;
  uint32_t block = 0;
  uint32_t instruction = 0;
  uint64_t waitedNs = 0; // until it was seen
  interpreter::BlockReason reason = interpreter::BlockReason::None;
  uint32_t what = 0; // the connection in the plan, or the thread block
  uint32_t peer = 0;
};

/// Thread safety: any. No call waits, but for the lock of a few instructions in submit(), and
/// hold(), ensureStarted() and ensureLookout() for a start that is under way.
class SubmissionSide {
public:
  /// Starts that generation of executors: once all of the one before have left, or, `beside` its
  /// lookout, at once. May take long: it is called without any lock that others than hold() wait
  /// for.
  using Start = std::function<void(uint64_t generation, bool beside)>;

  /// The page is all zero and stays until the executors have left for good. `away`: for so long at
  /// least executors that have left with something open stay away, and as long as streams have
  /// reached nothing of it, unless something is submitted.
  SubmissionSide(HostPage &page, Start start, std::chrono::nanoseconds away = {})
      : page(page), start(std::move(start)), away(away) {}

  /// The number of the request; nothing if the window is full: the oldest submission in it is not
  /// complete. Ordinals of a collective must be submitted in order.
  std::optional<uint64_t> submit(const Submission &submission) {
    auto request = enter(submission);
    if (request)
      startIfQuit();
    return request;
  }
  /// Its two halves, the second of which may be called with fewer locks held.
  std::optional<uint64_t> enter(const Submission &submission);
  void startIfQuit();
  /// For what a stream will wait for, in the place of startIfQuit(): whoever starts executors, the
  /// start has been made when this returns. Not while they are held.
  void ensureStarted();

  /// What one executor stays for when the others leave; without this call StayFor::Streamed.
  void stayFor(StayFor what) {
    storeShared(&page.stayFor, static_cast<uint64_t>(what), std::memory_order_release);
  }
  /// After stayFor(StayFor::Anything): if anything is open, one executor stays from now on, or
  /// executors have been started of which one will. Waits for a hold to end, a second at most:
  /// false if it has not.
  bool ensureLookout();

  /// How many there have been.
  uint64_t submitted() const { return next.load(std::memory_order_acquire); }
  bool isComplete(uint64_t request) const {
    return loadShared(&page.completions[request % kWindow], std::memory_order_acquire) > request;
  }
  /// Submissions that are not complete.
  bool anyOpen() const;
  bool hasQuit() const {
    return loadShared(&page.quitGeneration, std::memory_order_acquire) ==
           started.load(std::memory_order_relaxed);
  }
  /// Executors that left while something was open start again. To be called now and then while
  /// something is open: what they wait for may have come.
  void restartIfOpen();
  /// Whether an executor has stayed when the others left, as streams are held: it goes on alone,
  /// and says now and then what is waited for.
  bool hasLookout() const;
  /// Whether executors were started that have not begun yet.
  bool isStartPending() const {
    return loadShared(&page.begun, std::memory_order_acquire) < starts();
  }

  // Of a streamed request: 64-bit words of memory that devices see, too, for request + 1.
  /// A stream that reaches it stores it there.
  uint64_t *gateOf(uint64_t request) const { return &page.gates[request % kWindow]; }
  /// A stream waits until there is at least that.
  uint64_t *completionOf(uint64_t request) const { return &page.completions[request % kWindow]; }
  bool isReached(uint64_t request) const {
    return loadShared(gateOf(request), std::memory_order_acquire) > request;
  }
  /// Its stream goes on, though executors may still have the request, which is to be withdrawn.
  void releaseStream(uint64_t request);

  /// All executors leave for good, after the visits that they are in.
  void abort() { callOff(kForGood); }
  bool isAborted() const {
    return loadShared(&page.leaveUpTo, std::memory_order_acquire) == kForGood;
  }

  /// Executors leave, say what they wait for, and are not started again before resume(). One
  /// thread at a time; it waits until they have left before it does anything else.
  void hold();
  /// An open request: ends without being executed any further. Held, and executors have left; what
  /// was its slot is to be cleared before they start again.
  void withdraw(uint64_t request);
  /// Executors may start; do so if anything is open.
  void resume();

  /// Of tasks that were open when executors last left, or found that nothing moves; those that have
  /// ended or moved since may be among them.
  std::vector<OpenTask> openTasks() const;
  /// The device's time of what openTasks() says.
  uint64_t publishedAt() const { return loadShared(&page.publishedAt, std::memory_order_acquire); }
  /// Of an open request: the ranks that had not announced it then, as bits.
  uint64_t missing(uint64_t request) const {
    return loadShared(&page.missing[request % kWindow], std::memory_order_relaxed);
  }
  /// How often executors were started, as of now.
  uint64_t starts() const { return started.load(std::memory_order_relaxed); }
  /// Of all executors, as of when they last left.
  uint64_t total(Count what) const;

private:
  uint64_t oldestOpen() const;
  bool staysOf(uint64_t generation) const;
  bool mayAnyBegin() const;
  bool needsNoLookout() const {
    return loadShared(&page.stayFor, std::memory_order_acquire) ==
           static_cast<uint64_t>(StayFor::Nothing);
  }
  bool isCalledOff(uint64_t generation) const {
    return loadShared(&page.leaveUpTo, std::memory_order_acquire) >= generation;
  }
  void callOff(uint64_t upTo);
  void dismissLookout();
  bool isTimeToLook();
  void startNext();

  HostPage &page;
  const Start start;
  const std::chrono::nanoseconds away;
  // When executors of which generation were first seen to have left.
  Atomic<uint64_t> goneGeneration{0};
  Atomic<int64_t> goneSince{0};
  Mutex starting; // guards `isHeld` and changes of `started`; held during a start
  bool isHeld = false;
  Atomic<uint64_t> started{0}; // generation
  mutable Atomic<uint64_t> oldest{0};
  Mutex mutex; // guards what follows but for reading `next`
  // By slot: of its last submission.
  std::array<bool, kWindow> isStreamed{}, isReleased{};
  Atomic<uint64_t> next{0};
};

} // namespace occl::cuda::resident
