// What a communicator's rank has on a CUDA device: its memory, its registered collectives, their
// execution in the user's streams. No CUDA in this header: where the library was built without a
// CUDA toolkit, makeDeviceRank() says so.
#pragma once

#include "runtime/base/status.h"
#include "runtime/daemon/collective.h"
#include "runtime/daemon/fabric.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace occl::cuda {

struct DeviceRankOptions {
  uint32_t device = 0; // as CUDA numbers them in this process
  /// Of device memory, for connectors and allocate(); the same on all ranks.
  uint64_t bytes = 0;
  /// Of collectives without a timeout of their own.
  std::chrono::milliseconds timeout{30000};
};

/// InvalidArgument if this process has no such device, or the library no CUDA.
Status checkDevice(uint32_t device);
/// Of this process; only if some device passed the check.
uint32_t numDevices();
/// Bytes of the arena of each rank's segment that devices need.
uint64_t hostBytesForDevices();

/// Thread safety: any, but for connect().
class DeviceRank {
public:
  virtual ~DeviceRank() = default;
  /// Waits for what was enqueued, no longer than its timeouts.
  virtual void drain() = 0;

  /// Maps the memory of the other ranks, which all have been made.
  virtual Status connect() = 0;

  /// The spec's plan stays referred to. InvalidArgument, Mismatch; Again if there is no device
  /// memory for its connectors.
  virtual Status add(const daemon::CollectiveSpec &spec) = 0;
  /// None of its invocations is in flight, and no graph that has captured one will be launched.
  virtual Status remove(uint64_t id) = 0;
  /// One invocation as the next work of a CUDA stream (a CUstream_st*) of the rank's device, or as
  /// a node of the graph that captures it. Buffers are device memory. Why the communicator has
  /// failed, if it has.
  virtual Status enqueue(uint64_t id, const void *input, void *output, void *stream) = 0;

  /// Device memory that all ranks can access, aligned to 128 bytes; null if there is none.
  virtual void *allocate(uint64_t bytes) = 0;
  /// False if it is nothing of allocate(), or released already.
  virtual bool release(void *memory) = 0;
  /// What it was made with.
  virtual const DeviceRankOptions &settings() const = 0;
};

/// Takes the device memory of fabric's rank. The fabric is connected and outlives the result. All
/// ranks do it, then all meet, then all connect(). InvalidArgument without such a device; with
/// more ranks than kMaxRanks; or without CUDA. SystemError.
StatusOr<std::unique_ptr<DeviceRank>> makeDeviceRank(daemon::Fabric &fabric,
                                                     const DeviceRankOptions &options);

} // namespace occl::cuda
