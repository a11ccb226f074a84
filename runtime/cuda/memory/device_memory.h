// The memory of a rank on its device, and its arena, which all ranks map: what ranks say to each
// other is stored there by whoever says it. Where all devices access each other's memory the arena
// is the device memory, exchanged once, when the communicator is made: between ranks of one process
// as addresses, between processes as handles. Else, and where ranks are of several machines, it is
// host memory of the rank's segment, which all ranks of the machine pin.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/cuda/device/control_block.h"
#include "runtime/cuda/device/host_pages.h"
#include "runtime/cuda/device/shared_streams.h"
#include "runtime/cuda/memory/shared_allocation.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace occl::cuda {

/// Thread safety: any, once connect() has succeeded.
class DeviceMemory {
public:
  /// What a rank has in host memory, as this process maps it; outlives the memory. Pages are zero
  /// at first, and not touched unless data goes through them.
  struct HostMemory {
    ControlBlock *block;
    std::span<std::byte> pages;
  };

  /// What a rank takes of its device, and what of it is not for users; the same on all ranks.
  struct Sizes {
    uint64_t bytes, arenaBytes;
    bool isAsNeeded = false; // more of it is taken later: LaterMemory
  };

  /// It is a multiple of that.
  static constexpr uint64_t kUnit = 2 << 20;

  /// Takes that of the device, the records zeroed, and fills in this rank's card. hosts: by rank.
  /// The group outlives it. InvalidArgument, SystemError.
  static StatusOr<std::unique_ptr<DeviceMemory>>
  make(const bootstrap::Group &group, std::vector<HostMemory> hosts, int device, Sizes sizes);
  /// Maps the arenas of all ranks, which have made theirs. SystemError; PeerFailed; Mismatch.
  Status connect();
  /// Nothing of this rank is executed any more. Waits up to a second until no other process maps
  /// its memory; if one still does, that stays taken until this process ends.
  ~DeviceMemory();
  /// Something of this rank may still be executed: nothing is unmapped nor freed, ever.
  void abandon();

  int device() const { return ordinal; }
  /// Why arenas are host memory, once connected; empty: they are device memory.
  const std::string &throughHost() const { return whyHost; }
  /// Whether some ranks are of other machines; what they have in host memory here is a mirror then.
  bool isAcrossMachines() const;
  /// As kernels of this device access it.
  char *arena(uint32_t rank) const { return arenas[rank]; }
  /// This rank's device memory: its arena, unless that is host memory.
  char *onDevice() const { return own->begin; }
  /// Whether plans of protocol LL128 have its lines, or LL's; the same on all ranks (peer_paths.h).
  bool hasWideLines() const { return wideLines; }
  /// Of an arena: the records, and kRecordBytes from its begin on what registrations share.
  uint64_t bytes() const { return whyHost.empty() ? size : hosts[group.rank()].pages.size(); }
  /// Of these, what calls divide among themselves.
  uint64_t arenaBytes() const { return arenaSize; }
  /// Of onDevice(): not less.
  uint64_t bytesOnDevice() const { return size; }
  /// Of any rank of this machine.
  DeviceCard &card(uint32_t rank) const { return hosts[rank].block->card; }
  /// Whether ranks of other processes map what this rank has.
  bool hasProcesses() const { return isMappedByProcesses; }
  /// More of this rank's that others may map: it is freed with its memory.
  void keep(std::shared_ptr<DeviceAllocation> more);
  /// In onDevice().
  std::optional<uint64_t> offsetOf(const void *address, uint64_t bytes) const;

  /// `bytes` at `from` are copied to `to`, zeros if that is null.
  struct Change {
    char *to;
    const void *from;
    uint64_t bytes;
  };
  /// Memory of this rank's device, and arenas. Return when it is done, Timeout after some seconds:
  /// then it is done later, before all that comes after it, so until that is seen to be done the
  /// memory must not be anybody else's. Arenas: words of 64 bits at multiples of 8.
  Status clear(char *memory, uint64_t bytes) { return change({{{memory, nullptr, bytes}}}); }
  Status upload(char *to, const void *from, uint64_t bytes) {
    return change({{{to, from, bytes}}});
  }
  /// One after the other; those of host memory first. With one wait, which is most of what the
  /// others take.
  Status change(std::span<const Change> changes);
  /// Returns likewise; after a Timeout nothing is stored to `to` any more.
  Status download(void *to, const char *from, uint64_t bytes);

private:
  DeviceMemory(const bootstrap::Group &group, std::vector<HostMemory> hosts, int device,
               Sizes sizes);
  Status start();
  Status lookAtEnvironment(PeerPaths &paths) const;
  Status import(uint32_t rank);
  Status pin(uint32_t rank);
  char *onHost(const char *memory) const;
  Status downloadPiece(char *to, const char *from, uint64_t bytes);
  Status finish(cudaError_t error, const char *what);
  bool othersHaveClosed() const;
  void leave();

  const bootstrap::Group &group;
  const std::vector<HostMemory> hosts; // by rank
  const int ordinal;
  const uint64_t size, arenaSize;
  const bool isAsNeeded;
  std::shared_ptr<DeviceAllocation> own;
  Mutex keeping;
  std::vector<std::shared_ptr<DeviceAllocation>> kept; // guarded by it
  std::vector<char *> arenas;                          // by rank
  MappedAllocations others;
  std::string whyHost;
  std::vector<std::shared_ptr<HostPages>> pinned; // by rank, if arenas are host memory
  cudaStream_t stream = nullptr;                  // shared
  Mutex copying;                                  // guards the two below
  StreamEnd copied;
  char *page = nullptr; // pinned, for what is downloaded: CUDA would wait to copy to other memory
  bool wideLines = false;
  bool isShared = false; // its card is ready, so that others may map it
  bool isMappedByProcesses = false;
};

} // namespace occl::cuda
