#include "bench/gpu/latency/empty_kernel.h"

#include <cuda_runtime.h>

namespace occl::bench {

namespace {
__global__ void doNothing() {}
} // namespace

int launchEmptyKernel(void *stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 32;
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelEx(&config, doNothing);
}

} // namespace occl::bench
