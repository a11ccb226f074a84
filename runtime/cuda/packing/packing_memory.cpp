// The one allocation of a rank's packed calls.
#include "runtime/cuda/packing/packing_memory.h"

#include "runtime/cuda/packing/packed_calls.h"

#include <cuda_runtime.h>

#include <string>

namespace occl::cuda {

StatusOr<PackingMemory::Room> PackingMemory::room(int device) {
  if (!own) {
    void *begin = nullptr;
    if (cudaMalloc(&begin, 2 * PackedCalls::kMostBytes) != cudaSuccess) {
      (void)cudaGetLastError();
      return Status(StatusCode::Again, "no " + std::to_string(2 * PackedCalls::kMostBytes >> 20) +
                                           " MiB of device memory are free for calls that are "
                                           "executed as one");
    }
    own = std::make_unique<DeviceAllocation>(device, static_cast<char *>(begin));
  }
  return Room{own->begin, own->begin + PackedCalls::kMostBytes};
}

void PackingMemory::abandon() {
  if (own)
    own->isLeft = true;
}

} // namespace occl::cuda
