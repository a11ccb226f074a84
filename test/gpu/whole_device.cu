#include "test/gpu/whole_device.h"

#include <cuda_runtime.h>

namespace occl::gpu_test {
namespace {

constexpr int kThreads = 1024;

__device__ uint32_t load(const uint32_t *word) {
  return *const_cast<const volatile uint32_t *>(word);
}

/// The launch is cooperative: all thread blocks run, or none.
__global__ void meet(uint32_t *meeting, uint32_t *done) {
  if (threadIdx.x != 0)
    return;
  atomicAdd(meeting, 1);
  if (blockIdx.x != 0)
    return;
  while (load(meeting) != gridDim.x)
    ;
  *meeting = 0;
  *done = 1;
}

/// All the shared memory that a thread block can have.
cudaError_t prepare(int &multiprocessors, int &bytes) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(meet, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  return error;
}

} // namespace

int loadOnWholeDevice() {
  int multiprocessors = 0, bytes = 0;
  cudaFuncAttributes attributes;
  cudaError_t error = prepare(multiprocessors, bytes);
  return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, meet) : error;
}

int launchOnWholeDevice(void *stream, uint32_t *meeting, uint32_t *done) {
  int multiprocessors = 0, bytes = 0;
  if (cudaError_t error = prepare(multiprocessors, bytes); error != cudaSuccess)
    return error;
  void *arguments[] = {&meeting, &done};
  return cudaLaunchCooperativeKernel(
      reinterpret_cast<const void *>(meet), dim3(static_cast<unsigned>(multiprocessors)),
      dim3(kThreads), arguments, static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream));
}

} // namespace occl::gpu_test
