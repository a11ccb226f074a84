#include "test/gpu/user_kernels.h"

#include <cuda_runtime.h>

namespace occl::gpu_test {
namespace {

__device__ uint64_t now() {
  uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void spin(uint64_t nanoseconds) {
  for (const uint64_t begin = now(); now() - begin < nanoseconds;)
    ;
}

__global__ void store(uint32_t *to) { *to = 1; }

cudaError_t prepare(int &multiprocessors, int &bytes) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  return error;
}

} // namespace

int loadUserKernels() {
  int multiprocessors = 0, bytes = 0;
  cudaFuncAttributes attributes;
  cudaError_t error = prepare(multiprocessors, bytes);
  if (error == cudaSuccess)
    error = cudaFuncGetAttributes(&attributes, spin);
  return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, store) : error;
}

int launchDelay(void *stream, uint32_t milliseconds) {
  spin<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(uint64_t(milliseconds) * 1'000'000);
  return cudaGetLastError();
}

int launchOccupation(void *stream, uint32_t milliseconds) {
  int multiprocessors = 0, bytes = 0;
  if (cudaError_t error = prepare(multiprocessors, bytes); error != cudaSuccess)
    return error;
  spin<<<static_cast<unsigned>(multiprocessors), 1024, static_cast<size_t>(bytes),
         static_cast<cudaStream_t>(stream)>>>(uint64_t(milliseconds) * 1'000'000);
  return cudaGetLastError();
}

int launchIllegalAccess(void *stream) {
  store<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(reinterpret_cast<uint32_t *>(64));
  return cudaGetLastError();
}

} // namespace occl::gpu_test
