#include "test/gpu/harness/device_data.h"

#include <cuda_runtime.h>

namespace occl::gpu_test {

namespace {

constexpr unsigned kThreads = 256, kMostBlocks = 64;

/// SplitMix64's finaliser.
__host__ __device__ uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ value >> 27) * 0x94d049bb133111ebull;
  return value ^ value >> 31;
}

__device__ uint32_t elementOf(const DataOf &data, uint32_t rank, uint64_t position) {
  auto word = static_cast<uint32_t>(mix(data.key ^ mix(rank + 1) ^ position) >> 32);
  return data.elements == Elements::Words ? word
                                          : __float_as_uint(static_cast<float>(word & 0xffff));
}

__device__ uint32_t sumOf(const DataOf &data, uint32_t numRanks, uint64_t position) {
  uint32_t words = 0;
  float floats = 0;
  for (uint32_t r = 0; r < numRanks; ++r) {
    uint32_t element = elementOf(data, r, position);
    words += element;
    floats += __uint_as_float(element);
  }
  return data.elements == Elements::Words ? words : __float_as_uint(floats);
}

__global__ void fill(uint32_t *input, uint64_t count, DataOf data, uint32_t rank) {
  for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < count;
       i += uint64_t(gridDim.x) * blockDim.x)
    input[i] = elementOf(data, rank, i);
}

__global__ void compare(const uint32_t *output, uint64_t count, DataOf data, Expected expected,
                        uint32_t rank, uint32_t numRanks, Differences *differences) {
  const uint64_t all = expected == Expected::Sum ? count : count * numRanks;
  for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < all;
       i += uint64_t(gridDim.x) * blockDim.x) {
    const auto part = static_cast<uint32_t>(i / count);
    uint32_t right = expected == Expected::Sum ? sumOf(data, numRanks, i)
                     : expected == Expected::Gathered
                         ? elementOf(data, part, i - part * count)
                         : elementOf(data, part, i - part * count + rank * count);
    uint32_t found = output[i];
    if (found == right)
      continue;
    if (atomicAdd(reinterpret_cast<unsigned long long *>(&differences->number), 1ull) == 0) {
      differences->position = i;
      differences->found = found;
      differences->expected = right;
    }
  }
}

__global__ void wait(uint64_t nanoseconds) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

unsigned blocksFor(uint64_t count) {
  uint64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks);
}

} // namespace

uint64_t mixed(uint64_t a, uint64_t b, uint64_t c) { return mix(mix(mix(a) ^ b) ^ c); }

int loadDataKernels() {
  cudaFuncAttributes attributes;
  for (const void *kernel :
       {reinterpret_cast<const void *>(fill), reinterpret_cast<const void *>(compare),
        reinterpret_cast<const void *>(wait)})
    if (cudaError_t error = cudaFuncGetAttributes(&attributes, kernel); error != cudaSuccess)
      return error;
  return cudaSuccess;
}

int fillInput(void *stream, void *input, uint64_t count, const DataOf &data, uint32_t rank) {
  fill<<<blocksFor(count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<uint32_t *>(input), count, data, rank);
  return cudaGetLastError();
}

int compareOutput(void *stream, const void *output, uint64_t count, const DataOf &data,
                  Expected expected, uint32_t rank, uint32_t numRanks, Differences *differences) {
  compare<<<blocksFor(count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const uint32_t *>(output), count, data, expected, rank, numRanks, differences);
  return cudaGetLastError();
}

int spin(void *stream, uint64_t nanoseconds) {
  wait<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(nanoseconds);
  return cudaGetLastError();
}

} // namespace occl::gpu_test
