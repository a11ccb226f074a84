// Without preemption: sees to it that a device hears of cycles that it waits in, and ends them.
#pragma once

#include "runtime/control/records/device_waits.h"
#include "runtime/observe/deadlock/device_cycle.h"
#include "runtime/sched/task_board.h"
#include "runtime/sync/clock.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace occl::bootstrap {
class SharedBell;
}

namespace occl::daemon {

struct Core;
class Watchdog;

/// A communicator's rank on a device.
struct Attached {
  Core *core;
  Watchdog *watchdog;
};

/// The device's lock guards it.
class CycleWatch {
public:
  /// Of the device that has this board and this bell.
  CycleWatch(TaskBoard &board, const bootstrap::SharedBell &bell);

  /// Tells the devices of the peers of `attached`, all ranks of the device, what this one is stuck
  /// with, and what they have said. If they wait for each other in a cycle for certain, and this
  /// device is the one of the lowest id in it, fails the communicator that it keeps to, on all
  /// ranks; the other communicators in the cycle then go on.
  void round(std::span<const Attached> attached);

private:
  void listen(std::span<const Attached> attached);
  transport::DeviceWait ownWait(const std::optional<KeptTo> &kept,
                                std::span<const Attached> attached) const;

  TaskBoard &board;
  transport::DeviceWaitBoard &ownBoard;
  const transport::DeviceId id;
  KnownDevices known;
  DeviceCycleDetector detector;
};

} // namespace occl::daemon
