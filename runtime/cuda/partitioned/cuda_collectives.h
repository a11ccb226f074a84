// The partitioned collectives of a rank on its device: an epoch is a call of the resident daemon,
// whose thread blocks wait for marks. docs/decisions/gpu/partitioned-collectives.md has the
// protocol.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/cuda/device/arena_space.h"
#include "runtime/cuda/device_parts.h"
#include "runtime/cuda/lanes/resident_rank.h"
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/partitioned/cuda_parts.h"
#include "runtime/cuda/tables/part_gates.h"
#include "runtime/cuda/watch/held_streams.h"
#include "runtime/cuda/watch/host_watch.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace occl::cuda {

class CudaCollectives;

class CollectivePart final : public DevicePart {
public:
  CollectivePart(CudaCollectives &owner, const CollectiveTerms &terms);

  Status start(void *stream) override;
  Status mark(plan::Range range, void *stream) override;
  /// InvalidArgument: collectives have nothing to prepare.
  Status prepare(void *stream) override;
  Status wait(void *stream) override;
  void *state() override { return onDevice; }
  Status release() override;

private:
  friend class CudaCollectives;
  /// Of the next epoch.
  ResidentRank::Order order() const;
  /// By which kernels name it to the host.
  uint32_t serial() const;
  /// Of the last one that was started.
  std::string subjectOfEpoch() const;

  CudaCollectives &owner;
  daemon::CollectiveSpec spec; // with the request's own id
  LaneSignature signature;
  partitioned::DividedBuffers buffers;
  partitioned::CollectiveBuffers divided;
  std::string subject; // "partitioned allreduce, request 3"
  ArenaSpace::Piece piece{};
  device::State *onDevice = nullptr; // where the piece begins
  const PartGates *gates = nullptr;  // in it
  daemon::RequestId request = 0;     // of the last epoch
  uint64_t started = 0, awaited = 0; // epochs whose start and wait are in streams
};

/// Thread safety: any; of a request as DevicePart says.
class CudaCollectives {
public:
  /// All outlive it.
  CudaCollectives(daemon::Fabric &fabric, DeviceMemory &memory, ArenaSpace &space,
                  const HostWatch &watch, ResidentRank &residents, CudaParts &transfers)
      : fabric(fabric), memory(memory), space(space), watch(watch), residents(residents),
        transfers(transfers), held(heldStreamsOn(memory.device())) {}

  /// Local; the k-th that a rank makes belongs to the k-th of the others. What is refused has no
  /// number. InvalidArgument; Again: there are as many as can have an epoch at a time, on all ranks
  /// alike; or no room is left for its words, here: then, and after SystemError, the same is made
  /// before any other, or all make another; why the communicator has failed.
  StatusOr<DevicePart *> make(const CollectiveTerms &terms);
  /// What a kernel that gave up says of the request.
  std::string subjectOf(uint32_t serial);

private:
  friend class CollectivePart;

  Status check(const CollectiveTerms &terms) const;
  Status divide(CollectivePart &part, const interpreter::Binding &bound) const;
  Status place(CollectivePart &part, const interpreter::Program &program);
  Status giveNumber(CollectivePart &part);
  void takeBack(CollectivePart &part);
  static Status refused(const CollectivePart &part, const Status &why);
  Status start(CollectivePart &part, cudaStream_t stream);
  Status mark(CollectivePart &part, plan::Range range, cudaStream_t stream);
  Status wait(CollectivePart &part, cudaStream_t stream);
  Status release(CollectivePart &part);
  /// The stream's number.
  StatusOr<unsigned long long> checkStream(const CollectivePart &part, cudaStream_t stream) const;

  daemon::Fabric &fabric;
  DeviceMemory &memory;
  ArenaSpace &space;
  const HostWatch &watch;
  ResidentRank &residents;
  CudaParts &transfers;
  HeldStreams &held;

  Mutex making; // held by calls that make and free requests, inside calls of CUDA, too
  uint64_t nextNumber = 0;
  Mutex mutex; // guards what follows; taken after `making`
  std::unordered_map<uint64_t, std::unique_ptr<CollectivePart>> all; // by number
};

} // namespace occl::cuda
