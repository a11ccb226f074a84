// host_reads: how long the warps of a kernel take that all load one word of the host's memory, or
// store one, or read the device's clock: microseconds from the kernel's begin to its end. A table
// in Markdown. Needs a GPU.
#include "bench/gpu/require.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace {

using occl::bench::require;

enum class Doing : uint32_t { Load, Store, Clock };
constexpr const char *kNames[] = {"load a word of the host", "store one", "read the clock"};

__global__ void onHost(volatile uint32_t *word, uint32_t *never, Doing doing) {
  uint64_t seen = 0;
  if (doing == Doing::Load)
    seen = *word;
  else if (doing == Doing::Store && threadIdx.x % 32 == 0)
    *word = 0;
  else if (doing == Doing::Clock)
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(seen));
  if (seen == 1) // it is not; but the compiler does not know
    *never = 1;
}

struct Memory {
  uint32_t *host = nullptr, *device = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

/// The shortest of several, in microseconds.
float timeOf(const Memory &memory, uint32_t blocks, uint32_t warps, Doing doing) {
  constexpr uint32_t kRounds = 20;
  float shortest = 1e9f;
  for (uint32_t round = 0; round < kRounds; ++round) {
    require(cudaEventRecord(memory.begin), "cudaEventRecord");
    onHost<<<blocks, warps * 32>>>(memory.host, memory.device, doing);
    require(cudaEventRecord(memory.end), "cudaEventRecord");
    require(cudaEventSynchronize(memory.end), "cudaEventSynchronize");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, memory.begin, memory.end), "cudaEventElapsedTime");
    shortest = std::min(shortest, milliseconds * 1000);
  }
  return shortest;
}

} // namespace

int main() {
  Memory memory;
  void *host = nullptr, *device = nullptr;
  require(cudaHostAlloc(&host, sizeof(uint32_t), cudaHostAllocMapped), "cudaHostAlloc");
  require(cudaMalloc(&device, sizeof(uint32_t)), "cudaMalloc");
  memory.host = static_cast<uint32_t *>(host);
  memory.device = static_cast<uint32_t *>(device);
  *memory.host = 0;
  require(cudaEventCreate(&memory.begin), "cudaEventCreate");
  require(cudaEventCreate(&memory.end), "cudaEventCreate");
  for (Doing doing : {Doing::Load, Doing::Store, Doing::Clock}) {
    std::printf("\n| thread blocks that %s, us | 1 warp each | 4 | 16 |\n|---:|---:|---:|---:|\n",
                kNames[static_cast<uint32_t>(doing)]);
    for (uint32_t blocks : {1, 4, 32, 64}) {
      std::printf("| %u |", blocks);
      for (uint32_t warps : {1, 4, 16})
        std::printf(" %.0f |", timeOf(memory, blocks, warps, doing));
      std::printf("\n");
    }
  }
  return 0;
}
