// Device memory that ranks share: who has it fills in a handle, and the others map it, within a
// process by its address.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/device/control_block.h"
#include "runtime/sync/atomic.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace occl::cuda {

/// Memory of a device. Ranks of this process share it, so that none loses it under its hands.
struct DeviceAllocation {
  DeviceAllocation(int device, char *begin) : device(device), begin(begin) {}
  ~DeviceAllocation();

  const int device;
  char *const begin;
  /// Another process, or a kernel, may still access it: it stays until this process ends.
  Atomic<bool> isLeft{false};
};

/// Takes memory of the current device, which other ranks of this process find from then on. what:
/// it is for. SystemError.
StatusOr<std::shared_ptr<DeviceAllocation>> takeShared(int device, uint64_t bytes,
                                                       const char *what);
/// forProcesses: others are to map it. SystemError.
Status fillIn(SharedHandle &handle, const DeviceAllocation &of, bool forProcesses);

/// What a rank maps of others. Thread safety: none.
class MappedAllocations {
public:
  /// On device `ordinal`, which is current. isSameProcess: as the owner, `who`. PeerFailed: that
  /// one has destroyed its communicator; SystemError.
  StatusOr<char *> map(const SharedHandle &handle, bool isSameProcess, int ordinal,
                       const std::string &who);
  /// Something may still access them: nothing is unmapped, nor freed, ever.
  void abandon();
  /// Their device is current.
  void unmap();

private:
  std::vector<char *> imports;                         // of other processes
  std::vector<std::shared_ptr<DeviceAllocation>> kept; // of other ranks of this process
};

} // namespace occl::cuda
