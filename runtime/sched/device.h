// A device: the scheduler state that all communicators of a processor share. There is one for the
// process (occlCommInitRank), or one for each rank where ranks are threads that stand for devices
// of their own (occlCommInitAll).
//
// It owns the task board, the executors' budgets, the worker threads, the watchdog's rounds and the
// doorbell. Communicator ranks attach to it and detach from it while it runs; whoever executes,
// a worker or a thread inside wait() of one communicator, executes tasks of all of them. A
// communicator that fails takes its own tasks off the board and leaves those of the others.
#pragma once

#include "runtime/base/tick_clock.h"
#include "runtime/control/shm/shared_bell.h"
#include "runtime/observe/counters/stats.h"
#include "runtime/queue/callback_threads.h"
#include "runtime/sched/cycle_watch.h"
#include "runtime/sched/options.h"
#include "runtime/sched/policy/policy.h"
#include "runtime/sched/task_board.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/doorbell.h"
#include "runtime/sync/mutex.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace occl::daemon {

struct Core;
class Watchdog;
class Worker;

/// How many submissions there have been, and how many of them are open: one word, so that a
/// submission costs one atomic addition. Thread safety: any.
class SubmissionCount {
public:
  /// One more. How many there were before; wraps around.
  uint32_t add() { return static_cast<uint32_t>(word.fetch_add(kBoth) >> 32); }
  /// Likewise one that nobody else needs to run: it is not open before open().
  uint32_t addOwn() { return static_cast<uint32_t>(word.fetch_add(kOne) >> 32); }
  void open() { word.fetch_add(1); }
  /// One is complete.
  void end() { word.fetch_sub(1, std::memory_order_release); }
  bool areOpen(std::memory_order order = std::memory_order_relaxed) const {
    return static_cast<uint32_t>(word.load(order)) != 0;
  }

private:
  static constexpr uint64_t kOne = uint64_t{1} << 32, kBoth = kOne + 1;

  Atomic<uint64_t> word{0}; // {all, open}
};

/// Thread safety: any.
class Device {
public:
  /// With its workers running. SystemError if there are no threads or no memory to be had.
  static StatusOr<std::shared_ptr<Device>> start(const DeviceOptions &options,
                                                 std::shared_ptr<bootstrap::SharedBell> bell);
  /// Nothing is attached any more. Not on one of its own workers.
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// From now on the device executes what the communicator rank submits to the board.
  void attach(Core &core, Watchdog &watchdog);
  /// Returns when no executor refers to the core any more. Nothing of it is open: so this takes as
  /// long as the last callback of it needs to return.
  void detach(Core &core);

  /// Does the watchdog's round of all communicators if some time has passed since the last one;
  /// cheap if not. Runs callbacks of communicators that have failed.
  void tick();

  /// An executor that has moved something stops: with that it may have enabled what another one,
  /// asleep, has to run.
  void handOver() {
    if (submissions.areOpen())
      bell.ring();
  }

  /// After something was submitted that its caller does not run: wakes executors that are stuck
  /// with something else, and a worker if no thread waits. With a callback nobody may ever wait.
  /// The submission has ended with a sequentially consistent fence.
  void wakeFor(bool hasCallback);

  /// An executor has more at hand than it does soon: workers that stand down for threads inside
  /// wait() are to come, all but the first.
  void callWorkers();

  /// How long to poll a task that does not move: by the policy in force.
  std::chrono::nanoseconds budgetOf(const scheduler::Visit &visit) const {
    const auto policy = budgetInForce.load(std::memory_order_relaxed);
    return std::chrono::nanoseconds(scheduler::budgetOf(policy, limits, visit));
  }
  /// Submissions so far of what is attached, but for those that their caller runs: to tell whether
  /// there were any.
  uint64_t countRequested() const;

  const DeviceOptions options;
  const std::shared_ptr<bootstrap::SharedBell> sharedBell;
  /// Executors that are stuck sleep on it; peers of all communicators ring it.
  Doorbell &bell;
  TaskBoard board;
  DeviceStats stats;

  /// Of all communicators; the numbers are for the order of those that all ranks have announced.
  SubmissionCount submissions;
  /// Of these, those with a callback: nobody needs to wait for them.
  Atomic<uint32_t> openWithCallback{0};
  /// Threads inside wait().
  Atomic<uint32_t> helpers{0};
  Atomic<bool> stopping{false};
  /// On it sleep workers that have nothing to do.
  Doorbell workBell;
  /// Workers that have armed nothing: they look again by themselves after a short time.
  Atomic<uint32_t> lingering{0};
  /// Workers but the first that sleep or linger, and calls for them so far.
  Atomic<uint32_t> resting{0}, calls{0};
  const TickScale scale;

private:
  using Clock = SteadyClock;
  Device(const DeviceOptions &options, std::shared_ptr<bootstrap::SharedBell> bell);
  Status startWorkers();
  void round(Clock::time_point now, std::vector<Core *> &failed);

  const scheduler::BudgetLimits limits;
  Atomic<scheduler::BudgetPolicy> budgetInForce;
  Atomic<Clock::rep> nextTick{0};

  mutable Mutex mutex; // guards `members` and `cycles`; held during a round
  std::vector<Attached> members;
  std::optional<CycleWatch> cycles; // without preemption
  std::vector<std::unique_ptr<Worker>> workers;

public:
  /// Run callbacks that may block.
  CallbackThreads callbacks{kMostCallbackThreads};
};

} // namespace occl::daemon
