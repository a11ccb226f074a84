#include "bench/gpu/latency/part_kernels.h"

#include "runtime/api/occl_device.cuh"

#include <cuda_runtime.h>

namespace occl::bench {

namespace {

namespace detail = device::detail;

constexpr uint64_t kPatience = 5'000'000'000;

__global__ void partPingPong(occlPartDevice_t send, occlPartDevice_t receive, uint32_t partitions,
                             bool isFirst, uint64_t *took) {
  device::Part sends(send), receives(receive);
  const uint64_t begin = detail::deviceClock();
  for (uint64_t p = 0; p < partitions; ++p) {
    if (isFirst)
      ready(device::Block(), sends, p);
    if (wait(device::Block(), receives, p, kPatience) != device::Wait::Arrived)
      return;
    if (!isFirst)
      ready(device::Block(), sends, p);
  }
  if (threadIdx.x == 0)
    *took = detail::deviceClock() - begin;
}

__device__ void put(const ByHand &by, uint64_t p) {
  __syncthreads();
  const uint64_t at = p * by.bytes;
  if (by.bytes % 16 == 0)
    detail::copy(device::Block(), by.to + at, by.from + at, by.bytes);
  else if (threadIdx.x < by.bytes)
    by.to[at + threadIdx.x] = by.from[at + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0)
    detail::releaseWord(by.toWord, p + 1);
}

__device__ void await(const ByHand &by, uint64_t p) {
  if (threadIdx.x == 0)
    while (detail::acquireWord(by.word) < p + 1) {
    }
  __syncthreads();
}

__global__ void pingPongByHand(ByHand by, uint32_t partitions, bool isFirst, uint64_t *took) {
  const uint64_t begin = detail::deviceClock();
  for (uint64_t p = 0; p < partitions; ++p) {
    if (isFirst)
      put(by, p);
    await(by, p);
    if (!isFirst)
      put(by, p);
  }
  if (threadIdx.x == 0)
    *took = detail::deviceClock() - begin;
}

/// As a product's thread blocks are: one on a multiprocessor, which has all of its shared memory.
constexpr uint32_t kComputeThreads = 384, kComputeShared = 200 << 10;

__global__ void __launch_bounds__(kComputeThreads, 1) compute(float *sums, uint32_t steps) {
  constexpr uint32_t kAtOnce = 16;
  float values[kAtOnce];
  for (uint32_t k = 0; k < kAtOnce; ++k)
    values[k] = static_cast<float>(threadIdx.x + k);
  for (uint32_t i = 0; i < steps; ++i)
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      values[k] = values[k] * 0.999f + 0.5f;
  float sum = 0;
  for (uint32_t k = 0; k < kAtOnce; ++k)
    sum += values[k];
  sums[blockIdx.x * kComputeThreads + threadIdx.x] = sum;
}

} // namespace

int launchPartPingPong(void *stream, occlPartDevice_t send, occlPartDevice_t receive,
                       uint32_t partitions, uint32_t threads, bool isFirst, uint64_t *took) {
  partPingPong<<<1, threads, 0, static_cast<cudaStream_t>(stream)>>>(send, receive, partitions,
                                                                     isFirst, took);
  return cudaGetLastError();
}

int launchPingPongByHand(void *stream, ByHand by, uint32_t partitions, uint32_t threads,
                         bool isFirst, uint64_t *took) {
  pingPongByHand<<<1, threads, 0, static_cast<cudaStream_t>(stream)>>>(by, partitions, isFirst,
                                                                       took);
  return cudaGetLastError();
}

int launchComputation(void *stream, float *sums, uint32_t blocks, uint32_t steps) {
  const int set = cudaFuncSetAttribute(reinterpret_cast<const void *>(compute),
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, kComputeShared);
  if (set != cudaSuccess)
    return set;
  compute<<<blocks, kComputeThreads, kComputeShared, static_cast<cudaStream_t>(stream)>>>(sums,
                                                                                          steps);
  return cudaGetLastError();
}

int loadPingPongs() {
  cudaFuncAttributes attributes;
  const int loaded =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(partPingPong));
  return loaded != cudaSuccess
             ? loaded
             : cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(pingPongByHand));
}

} // namespace occl::bench
