// Counters of a communicator's rank and of a device since their start: relaxed, cheap enough to be
// always on.
#pragma once

#include "runtime/sync/atomic.h"

#include <cstdint>

namespace occl::daemon {

using Counter = Atomic<uint64_t>;

/// Of the executors of a device, whatever they execute. Thread safety: any.
struct DeviceStats {
  Counter quits{0}, restarts{0};

  static void add(Counter &counter, uint64_t amount) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }
};

/// Of a communicator's rank. Thread safety: any; a reader may see one event's counters half
/// updated.
struct Stats {
  // Written under the admission's lock.
  Counter submitted{0};
  Counter requested{0}; // of these, those that their caller does not run by itself

  Counter groups{0}; // of transfers, with a request

  // Written under the task board's lock.
  Counter completed{0}, failed{0};
  Counter bytesSent{0}, bytesReceived{0};
  Counter preemptions{0};
  Counter contextLoads{0}, contextSaves{0};
  Counter maxQueueLength{0};
  /// Of those completed, the ones that never left the lane (lane_run.h), and others that did.
  Counter completedInLane{0}, leftLane{0};
  /// Sum of the queue lengths at the times that a task was picked; divided by contextLoads it is
  /// the mean.
  Counter queueLengthSum{0};

  /// For counters that are only written under one lock: an atomic addition costs ten times more.
  static void addLocked(Counter &counter, uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  static void raiseLocked(Counter &counter, uint64_t atLeast) {
    if (counter.load(std::memory_order_relaxed) < atLeast)
      counter.store(atLeast, std::memory_order_relaxed);
  }
};

} // namespace occl::daemon
