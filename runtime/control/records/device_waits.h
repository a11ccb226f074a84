// What devices without preemption are stuck with, told from device to device: ranks of one
// communicator see what their peers wait for in it, but a cycle may lead through communicators that
// a device has no rank in. So every device repeats what it has heard.
#pragma once

#include "runtime/sync/atomic.h"
#include "runtime/sync/sequence_lock.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace occl::transport {

/// Devices of a machine have different ones; 0 is nobody's.
using DeviceId = uint64_t;

/// A device and what its executors keep to. Times are nanoseconds of steady_clock, which the
/// processes of a machine share. It is true for ever: of the time from `since` to `lookedAt`.
struct DeviceWait {
  DeviceId device = 0;
  /// When the device said so. Of two the later one counts.
  uint64_t saidAt = 0;
  /// From here on nothing of it has moved.
  uint64_t since = 0;
  /// The last look at each of its waits began here or later, and found nothing.
  uint64_t lookedAt = 0;
  /// Each once. It goes on as soon as one of them ends its wait; without any it is not stuck.
  std::vector<DeviceId> waitsFor;
  /// Its wait for the first of them, for people.
  std::string text;

  bool operator==(const DeviceWait &) const = default;
};

/// In memory that the device's peers map. All zero it is an empty one. A sequence lock: one writer
/// at a time, readers in any process.
class DeviceWaitBoard {
public:
  static constexpr uint32_t kWords = 8000;

  /// Once, by the owner, before others can see it.
  void setOwner(DeviceId device) { owner.store(device, std::memory_order_release); }
  /// 0 if it has none.
  DeviceId device() const { return owner.load(std::memory_order_acquire); }

  /// Owner only, one thread at a time. Those that do not fit are dropped, the last ones first;
  /// texts are cut to kMostText bytes.
  void publish(std::span<const DeviceWait> waits);
  /// Never waits: empty if the owner keeps writing (or died while it did). Damaged contents give
  /// some list.
  std::vector<DeviceWait> read() const;

  static constexpr size_t kMostText = 480;

private:
  Atomic<DeviceId> owner;
  SequenceLock lock;
  Atomic<uint32_t> numWords;
  Atomic<uint64_t> words[kWords];
};

} // namespace occl::transport
