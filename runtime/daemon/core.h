// What the parts of a communicator's rank share: its admission, its watchdog, and the executors of
// its device.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/daemon/device.h"
#include "runtime/daemon/fabric.h"
#include "runtime/daemon/options.h"
#include "runtime/daemon/request_table.h"
#include "runtime/daemon/stats.h"
#include "runtime/daemon/task_board.h"
#include "runtime/queue/bounded_ring.h"

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
  Core(std::shared_ptr<Device> device, std::unique_ptr<Fabric> joined, const Options &options);

  const Options options;
  const std::shared_ptr<Device> device;
  const std::unique_ptr<Fabric> fabric;
  Stats stats;
  /// What it has on the device's task board.
  BoardPlace place;
  RequestTable requests;
  queue::BoundedRing<Completion> completions;
  /// Invocations that are complete, with their callbacks returned.
  Atomic<uint64_t> ended{0};

  /// Whether a submission that this thread knows of has not ended.
  bool hasOpen() const {
    uint64_t known = stats.submitted.load(std::memory_order_relaxed);
    return ended.load(std::memory_order_acquire) < known;
  }
  /// An invocation has been admitted. Under the admission's lock.
  void countOpen(bool hasCallback);
  /// Completes an invocation that no executor of this rank refers to any more. The user gets the
  /// result by runCompletions(), to be called afterwards.
  void finish(OpenInvocation &invocation, StatusCode result);
  /// Runs what completions demand, on this thread, until there is none.
  void runCompletions();
  /// After a failure: ends everything that is open as soon as no task is claimed. Any thread that
  /// keeps the core from being detached, any number of times.
  void settleFailure();
};

} // namespace occl::daemon
