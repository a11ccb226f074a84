// Settings of devices and of communicator ranks.
#pragma once

#include "runtime/queue/completion_queue.h"
#include "runtime/sched/policy/policy.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstdint>
#include <optional>

namespace occl::daemon {

/// Of a device, all together.
inline constexpr uint32_t kMostCallbackThreads = 64;

/// With all defaults applied.
struct DeviceOptions {
  /// Off: an executor keeps to the first invocation of its queue until that is complete.
  bool preemption = true;
  /// Executor threads; at least 1.
  uint32_t workers = 1;
  /// Spin budget at the front of the task queue; 0: measured.
  std::chrono::nanoseconds spin{0};
  scheduler::OrderPolicy order = scheduler::OrderPolicy::Priority;
  /// Nothing: front-heavy, and no polling with more ranks than processors.
  std::optional<scheduler::BudgetPolicy> budget;
};

/// The same as a communicator asks for them: nothing is whatever the device has, or the default.
struct DeviceRequest {
  std::optional<bool> preemption;
  std::optional<uint32_t> workers;
  std::optional<std::chrono::nanoseconds> spin;
  std::optional<scheduler::OrderPolicy> order;
  std::optional<scheduler::BudgetPolicy> budget;
};

/// Of one communicator's rank, with all defaults applied.
struct Options {
  /// Of every collective that has no deadline of its own; kNoDeadline: it has none.
  std::chrono::milliseconds timeout = kNoDeadline;
  /// For making communicators: ranks that do not come.
  std::chrono::milliseconds setUpTimeout{30000};
  /// Invocations admitted at once; at most RequestTable::kMaxCapacity.
  uint32_t maxInFlight = 1024;
  /// The fastest that keeps the order of completions: bench/runtime:completion_queues.
  queue::CompletionForm completionForm = queue::CompletionForm::PackedRing;
  /// A device executes its collectives, and says what they wait for.
  bool isOnDevice = false;
};

} // namespace occl::daemon
