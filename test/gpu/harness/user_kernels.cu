#include "test/gpu/harness/user_kernels.h"

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

/// Nobody looks at what it computes; `seed` keeps the compiler from knowing it.
__global__ void useStack(uint32_t seed, uint32_t *result) {
  uint32_t words[1024];
  for (uint32_t i = 0; i < 1024; ++i)
    words[i * 7 % 1024] = seed + i;
  for (uint32_t i = 0; i < 1024; ++i)
    seed = words[seed % 1024] + i;
  if (seed == 1 && result != nullptr)
    *result = seed;
}

constexpr unsigned kAllThreads = 1024;

/// Of the current device, for a kernel that is to have all of the shared memory that a thread block
/// can have: loads it.
template <class Kernel> cudaError_t prepare(Kernel kernel, int &multiprocessors, int &bytes) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaFuncAttributes attributes;
  return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, kernel) : error;
}

} // namespace

int loadUserKernels() {
  int multiprocessors = 0, bytes = 0;
  cudaFuncAttributes attributes;
  cudaError_t error = prepare(spin, multiprocessors, bytes);
  if (error == cudaSuccess)
    error = prepare(meet, multiprocessors, bytes);
  return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, store) : error;
}

int launchDelay(void *stream, uint32_t milliseconds) {
  spin<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(uint64_t(milliseconds) * 1'000'000);
  return cudaGetLastError();
}

int launchOccupation(void *stream, uint32_t milliseconds) {
  int multiprocessors = 0, bytes = 0;
  if (cudaError_t error = prepare(spin, multiprocessors, bytes); error != cudaSuccess)
    return error;
  spin<<<static_cast<unsigned>(multiprocessors), kAllThreads, static_cast<size_t>(bytes),
         static_cast<cudaStream_t>(stream)>>>(uint64_t(milliseconds) * 1'000'000);
  return cudaGetLastError();
}

int launchOnWholeDevice(void *stream, uint32_t *meeting, uint32_t *done) {
  int multiprocessors = 0, bytes = 0;
  if (cudaError_t error = prepare(meet, multiprocessors, bytes); error != cudaSuccess)
    return error;
  void *arguments[] = {&meeting, &done};
  return cudaLaunchCooperativeKernel(
      reinterpret_cast<const void *>(meet), dim3(static_cast<unsigned>(multiprocessors)),
      dim3(kAllThreads), arguments, static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream));
}

int launchWithDeepStack(void *stream) {
  useStack<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(3, nullptr);
  return cudaGetLastError();
}

int launchIllegalAccess(void *stream) {
  store<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(reinterpret_cast<uint32_t *>(64));
  return cudaGetLastError();
}

} // namespace occl::gpu_test
