// What the parts of a rank's daemon share: executors, admission, watchdog.
#pragma once

#include "runtime/base/doorbell.h"
#include "runtime/daemon/fabric.h"
#include "runtime/daemon/options.h"
#include "runtime/daemon/request_table.h"
#include "runtime/daemon/stats.h"
#include "runtime/daemon/task_board.h"
#include "runtime/queue/bounded_ring.h"
#include "runtime/scheduler/front_heavy_budget.h"
#include "runtime/scheduler/priority_order.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace occl::daemon {

/// An invocation has ended.
struct Completion {
  RequestId request = 0;
  StatusCode result = StatusCode::Success;
  bool hasCallback = false;
};

struct Core {
  Core(std::unique_ptr<Fabric> joined, const Options &options);

  const Options options;
  const std::unique_ptr<Fabric> fabric;
  const scheduler::PriorityOrder order; // first in, first out among equal priorities
  const scheduler::FrontHeavyBudget budget;
  TaskBoard board;
  RequestTable requests;
  queue::BoundedRing<Completion> completions;
  Stats stats;

  /// Submitted and not yet complete with its callback returned.
  std::atomic<uint32_t> open{0};
  /// Of these, those with a callback: nobody needs to wait for them.
  std::atomic<uint32_t> openWithCallback{0};
  /// Threads inside wait().
  std::atomic<uint32_t> helpers{0};
  std::atomic<bool> stopping{false};
  /// On it sleep workers that have nothing to do; the doorbell in the segment is for those that are
  /// stuck.
  Doorbell workBell;
  /// Workers that have armed nothing: they look again by themselves after a short time.
  std::atomic<uint32_t> lingering{0};

  /// Completes an invocation that no executor of this rank refers to any more. The user gets the
  /// result by runCompletions(), to be called afterwards.
  void finish(OpenInvocation &invocation, StatusCode result);
  /// Runs what completions demand, on this thread, until there is none.
  void runCompletions();
  /// After a failure: ends everything that is open as soon as no task is claimed. Any thread, any
  /// number of times.
  void settleFailure();
};

} // namespace occl::daemon
