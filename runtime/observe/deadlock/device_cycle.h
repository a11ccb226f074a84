// Whether devices wait for each other in a cycle, through whatever communicators. Only without
// preemption: see deadlock.h.
#pragma once

#include "runtime/control/records/device_waits.h"

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace occl::daemon {

/// What a device has heard of itself and of others. Thread safety: none.
class KnownDevices {
public:
  /// Takes what is news: what a device has said later than what is known of it.
  void hear(const transport::DeviceWait &wait);
  /// Forgets what was said before: a device that lives says something every few milliseconds.
  void forgetBefore(uint64_t time);

  /// What `own` tells others: what it said itself, then of the others those that are stuck, the
  /// latest first.
  std::vector<transport::DeviceWait> toTell(transport::DeviceId own) const;

  /// The devices that are stuck together with `device`, in the order of their ids: none of them can
  /// move before one of the others does. Empty if it may move.
  std::vector<transport::DeviceWait> stuckWith(transport::DeviceId device) const;

private:
  std::map<transport::DeviceId, transport::DeviceWait> devices;
};

/// The cycle in which `device`, one of these, waits or behind which it does: each waits for the
/// next, the last for the first. It begins with the device of the lowest id.
std::vector<transport::DeviceWait> cycleOf(std::span<const transport::DeviceWait> stuck,
                                           transport::DeviceId device);

/// Tells a deadlock from what only looks like one because devices are heard one after another. All
/// that are stuck together must have looked again after it was known of all that they had stopped:
/// the first of them to move later would do so for something that another one had done before it
/// stopped, and such a look would have found that.
class DeviceCycleDetector {
public:
  /// The cycle of `device`, if it is certain, else nothing. `stuck` is what is known at `now` of
  /// those that are stuck with it, and was said before.
  std::vector<transport::DeviceWait> update(std::span<const transport::DeviceWait> stuck,
                                            transport::DeviceId device, uint64_t now);

private:
  std::vector<std::pair<transport::DeviceId, uint64_t>> seen; // and since when each does not move
  uint64_t seenAt = 0;
};

} // namespace occl::daemon
