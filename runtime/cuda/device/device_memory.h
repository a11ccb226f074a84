// The device memory of a rank, and where it maps that of the others. Exchanged once, when the
// communicator is made: between ranks of one process as addresses, between processes as handles.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/cuda/device/control_block.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <optional>
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

/// Thread safety: any, once connect() has succeeded.
class DeviceMemory {
public:
  /// Takes `bytes` of the device, the records zeroed, and fills in this rank's card. blocks: all
  /// ranks' control blocks, which outlive it like the group. SystemError.
  static StatusOr<std::unique_ptr<DeviceMemory>> make(const bootstrap::Group &group,
                                                      std::vector<ControlBlock *> blocks,
                                                      int device, uint64_t bytes);
  /// Maps the arenas of all ranks, which have made theirs. InvalidArgument if this device cannot
  /// access another rank's; SystemError; PeerFailed.
  Status connect();
  /// Nothing of this rank is executed any more. Waits up to a second until no other process maps
  /// the arena; if one still does, its memory stays taken until this process ends.
  ~DeviceMemory();
  /// Something of this rank may still be executed: nothing is unmapped nor freed, ever.
  void abandon();

  int device() const { return ordinal; }
  char *arena(uint32_t rank) const { return arenas[rank]; }
  /// Whether plans of protocol LL128 have its lines, or LL's; the same on all ranks (peer_paths.h).
  bool hasWideLines() const { return wideLines; }
  /// Of an arena: the records, and kRecordBytes from its begin on what registrations share.
  uint64_t bytes() const { return size; }
  /// Of the own arena.
  std::optional<uint64_t> offsetOf(const void *address, uint64_t bytes) const;

  /// Memory of any rank, as mapped here. Return when it is done, Timeout after some seconds.
  Status clear(char *memory, uint64_t bytes);
  Status upload(char *to, const void *from, uint64_t bytes);
  Status download(void *to, const char *from, uint64_t bytes);

private:
  DeviceMemory(const bootstrap::Group &group, std::vector<ControlBlock *> blocks, int device,
               uint64_t bytes);
  Status start();
  Status import(uint32_t rank);
  Status finish(cudaError_t error, const char *what);
  bool othersHaveClosed() const;

  const bootstrap::Group &group;
  const std::vector<ControlBlock *> blocks; // by rank
  const int ordinal;
  const uint64_t size;
  std::shared_ptr<DeviceAllocation> own;
  std::vector<char *> arenas;                          // by rank
  std::vector<char *> imports;                         // to be closed
  std::vector<std::shared_ptr<DeviceAllocation>> kept; // of other ranks of this process
  Mutex copying;                                       // the stream's user
  cudaStream_t stream = nullptr;
  bool wideLines = false;
};

} // namespace occl::cuda
