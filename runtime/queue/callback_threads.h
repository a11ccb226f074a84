// Threads for callbacks that may block: one that blocks keeps neither an executor nor, as far as
// there are threads to be had, other callbacks.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>

namespace occl::daemon {

/// What a thread for callbacks calls: run(owner, entry), which must not throw.
struct CallbackJob {
  void (*run)(void *owner, uint32_t entry) = nullptr;
  void *owner = nullptr;
  uint32_t entry = 0;
};

/// Jobs are begun in the order in which they were added, one after another on one thread, as
/// long as none takes longer than kPatience. After that its thread is taken to be blocked and the
/// next one goes on. As soon as a job waits and no thread is left to look after it, there is
/// one thread more, up to the limit; threads that are left over go when they have had nothing to
/// do for kSpare. Who has just run one looks for the next for kLookOut, offering the processor
/// between the looks, before it sleeps: one thread at a time, which then needs no waking. Thread
/// safety: any.
class CallbackThreads {
public:
  static constexpr auto kPatience = std::chrono::milliseconds(1);
  static constexpr auto kSpare = std::chrono::milliseconds(500);
  /// Some times what waking a thread takes.
  static constexpr auto kLookOut = std::chrono::microseconds(20);

  explicit CallbackThreads(uint32_t mostThreads) : mostThreads(mostThreads) {}
  /// Waits until all that was added has been run. Not from a callback.
  ~CallbackThreads();

  /// Sees to it that there is a thread. SystemError if there is none to be had.
  Status ensureThread();
  /// After a success of ensureThread(). Waits for nothing. If it throws, nothing was added.
  void add(const CallbackJob &job);

  uint32_t numThreads();

private:
  using Lock = std::unique_lock<Mutex>;
  using Threads = std::list<Thread>;

  void loop(Threads::iterator self);
  void lookOut(Lock &lock);
  bool awaitJob(Lock &lock);
  void runFirst(Lock &lock);
  Status addThread();
  void tryAddThread();
  void joinEnded(Lock &lock);
  uint32_t numIdle() const { return static_cast<uint32_t>(threads.size()) - numRunning; }

  const uint32_t mostThreads;
  /// A job was added, or the end has come: written under the lock, read without it by who looks
  /// out.
  Atomic<bool> isWanted{false};

  Mutex mutex; // guards all below
  ConditionVariable changed;
  std::deque<CallbackJob> jobs;
  Threads threads, ended;
  uint32_t numRunning = 0; // threads inside a callback
  /// Of these, those that are not taken to be blocked: those of the present round.
  uint32_t numActive = 0;
  uint64_t round = 0;
  SteadyClock::time_point lastBegin{};
  bool isLookedOut = false; // a thread is in lookOut(): it looks again under the lock
  bool stopping = false;
};

} // namespace occl::daemon
