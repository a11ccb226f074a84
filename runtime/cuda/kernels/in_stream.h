// In-stream execution: one kernel is one invocation of a collective on one rank.
#pragma once

#include "runtime/cuda/tables/bound.h"
#include "runtime/cuda/tables/device_collective.h"

#include <cstdint>

namespace occl::cuda {

/// The kernel's argument.
struct InStreamArguments {
  DeviceCollective collective;
  /// Input and output.
  char *buffers[2] = {nullptr, nullptr};
  /// The number that the call must have: it waits for the ones before. kAnyNumber: the next one,
  /// whichever it is; kernels of the communicator run one after the other.
  uint64_t number = 0;
  WaitBound bound;
};
inline constexpr uint64_t kAnyNumber = ~0ull;

/// Enqueues the kernel in a stream of the current device, which is captured or not; one of at most
/// so many threads may be started early (early_start.h). A cudaError_t.
int launchInStream(const InStreamArguments &arguments, uint32_t mostEarlyThreads, void *stream,
                   bool isCaptured);
/// Loads all kernels on the current device: the first launch of one would, and CUDA then waits for
/// kernels that run. A cudaError_t.
int loadInStream();

} // namespace occl::cuda
