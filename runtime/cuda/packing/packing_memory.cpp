// The memory of a rank's packed calls: what is left of the arena first, which takes no call of CUDA
// that may wait for kernels.
#include "runtime/cuda/packing/packing_memory.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/packing/packed_calls.h"

#include <cuda_runtime.h>

#include <string>

namespace occl::cuda {

StatusOr<PackingMemory::Room> PackingMemory::room() {
  constexpr uint64_t kBytes = 2 * PackedCalls::kMostBytes;
  if (!begin)
    begin = inputs.take(kBytes);
  if (!begin) {
    void *made = nullptr;
    const cudaError_t error = cudaMalloc(&made, kBytes);
    if (error != cudaSuccess)
      (void)cudaGetLastError();
    if (error == cudaErrorMemoryAllocation)
      return Status(StatusCode::Again, "no " + std::to_string(kBytes >> 20) +
                                           " MiB of device memory are free for calls that are "
                                           "executed as one; free some, or set heapBytes higher");
    if (error != cudaSuccess)
      return toStatus(error, "allocating memory for calls that are executed as one");
    begin = static_cast<char *>(made);
    own = std::make_unique<DeviceAllocation>(inputs.device(), begin);
  }
  return Room{begin, begin + PackedCalls::kMostBytes};
}

void PackingMemory::abandon() {
  if (own)
    own->isLeft = true;
}

} // namespace occl::cuda
