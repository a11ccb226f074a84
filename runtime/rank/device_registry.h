// Which device a rank lives on.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sched/device.h"
#include "runtime/sched/options.h"

#include <memory>
#include <string>

namespace occl::daemon {

/// A device of its own, for a rank that is a thread among others of its communicator in this
/// process. Peers in other processes can ring it if `shared`.
StatusOr<std::shared_ptr<Device>> makeDevice(const DeviceRequest &request, bool shared);

/// InvalidArgument naming the setting if the device runs with another than is requested.
Status checkSettings(const DeviceRequest &request, const Device &device);

/// Finds the device of one rank of a communicator of processes, and keeps the place while the
/// communicator is being formed. All communicators of a process share one device, made with the
/// first and gone with the last. Ranks of one communicator never share a device, since without
/// preemption one would hold up the other: of several threads that form the same communicator at
/// the same time, only the first gets the process' device and the others one of their own.
class PlaceInProcess {
public:
  explicit PlaceInProcess(std::string communicator);
  ~PlaceInProcess();
  PlaceInProcess(const PlaceInProcess &) = delete;
  PlaceInProcess &operator=(const PlaceInProcess &) = delete;

  /// InvalidArgument if the process' device runs with other settings than those requested;
  /// SystemError.
  StatusOr<std::shared_ptr<Device>> device(const DeviceRequest &request) const;

private:
  std::string communicator;
  bool isFirst = false;
};

} // namespace occl::daemon
