// Settings of a rank's daemon, all with their defaults applied.
#pragma once

#include <chrono>
#include <cstdint>

namespace occl::daemon {

struct Options {
  /// Of every collective that has no deadline of its own.
  std::chrono::milliseconds timeout{30000};
  /// Off: an executor keeps to the first invocation of its queue until that is complete.
  bool preemption = true;
  /// Executor threads; at least 1.
  uint32_t workers = 1;
  /// Spin budget at the front of the task queue; 0: measured.
  std::chrono::nanoseconds spin{0};
  /// Invocations admitted at once; at most RequestTable::kMaxCapacity.
  uint32_t maxInFlight = 1024;
};

} // namespace occl::daemon
