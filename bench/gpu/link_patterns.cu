// link_patterns: what the links between the GPUs of a process carry, all of them busy, by who
// accesses whom and by the number of thread blocks: GB/s that each GPU sends. The bound of what
// collectives can reach. Needs two GPUs or more.
#include "bench/gpu/require.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using occl::bench::require;

constexpr uint32_t kMaxGpus = 8, kThreads = 512;
constexpr size_t kLargestPart = 64 << 20;

/// Every GPU has a part for each GPU, and behind them room for one from each.
struct Parts {
  char *memory[kMaxGpus];
  uint32_t numGpus, self;
  size_t bytes; // of a part

  __device__ const uint4 *given(uint32_t gpu, uint32_t part) const {
    return reinterpret_cast<const uint4 *>(memory[gpu] + part * bytes);
  }
  __device__ uint4 *taken(uint32_t gpu, uint32_t part) const {
    return reinterpret_cast<uint4 *>(memory[gpu] + (numGpus + part) * bytes);
  }
};

/// Four vectors of 16 bytes a thread in flight.
__device__ void copyVectors(const uint4 *from, uint4 *to, size_t vectors) {
  constexpr uint32_t kInFlight = 4;
  for (size_t i = threadIdx.x; i < vectors; i += kInFlight * blockDim.x) {
    uint4 loaded[kInFlight];
#pragma unroll
    for (uint32_t u = 0; u < kInFlight; ++u)
      if (i + u * blockDim.x < vectors)
        loaded[u] = from[i + u * blockDim.x];
#pragma unroll
    for (uint32_t u = 0; u < kInFlight; ++u)
      if (i + u * blockDim.x < vectors)
        to[i + u * blockDim.x] = loaded[u];
  }
}

/// Ring: all parts go to, or come from, the next GPU. InTurn: one GPU after the other.
/// InTurnByBlock: each thread block begins with another one. BlockAPeer: each thread block has one
/// peer.
enum class Pattern { Ring, InTurn, InTurnByBlock, BlockAPeer };

template <Pattern kPattern, bool kReads>
__global__ void __launch_bounds__(kThreads) move(Parts parts) {
  const uint32_t n = parts.numGpus, self = parts.self;
  const size_t vectors = parts.bytes / sizeof(uint4);
  auto movePart = [&](uint32_t peer, uint32_t part, uint32_t share, uint32_t shares) {
    size_t begin = vectors * share / shares, end = vectors * (share + 1) / shares;
    const uint32_t there = kPattern == Pattern::Ring ? part : self;
    if (kReads)
      copyVectors(parts.given(peer, there) + begin, parts.taken(self, part) + begin, end - begin);
    else
      copyVectors(parts.given(self, part) + begin, parts.taken(peer, there) + begin, end - begin);
  };
  if constexpr (kPattern == Pattern::BlockAPeer) {
    uint32_t shares = gridDim.x / (n - 1), share = blockIdx.x / (n - 1);
    uint32_t peer = (self + 1 + blockIdx.x % (n - 1)) % n;
    if (share < shares)
      movePart(peer, peer, share, shares);
  } else {
    for (uint32_t step = 0; step < n - 1; ++step) {
      uint32_t turn = kPattern == Pattern::InTurnByBlock ? (step + blockIdx.x) % (n - 1) : step;
      uint32_t part = (self + 1 + turn) % n;
      movePart(kPattern == Pattern::Ring ? (self + 1) % n : part, part, blockIdx.x, gridDim.x);
    }
  }
}

struct Gpu {
  char *memory = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

std::vector<Gpu> openGpus() {
  int number = 0;
  require(cudaGetDeviceCount(&number), "cudaGetDeviceCount");
  std::vector<Gpu> gpus(std::min<size_t>(static_cast<size_t>(number), kMaxGpus));
  for (size_t i = 0; i < gpus.size(); ++i) {
    require(cudaSetDevice(static_cast<int>(i)), "cudaSetDevice");
    for (size_t peer = 0; peer < gpus.size(); ++peer)
      if (peer != i)
        require(cudaDeviceEnablePeerAccess(static_cast<int>(peer), 0), "peer access");
    require(cudaMalloc(&gpus[i].memory, 2 * gpus.size() * kLargestPart), "cudaMalloc");
    require(cudaStreamCreate(&gpus[i].stream), "cudaStreamCreate");
    require(cudaEventCreate(&gpus[i].begin), "cudaEventCreate");
    require(cudaEventCreate(&gpus[i].end), "cudaEventCreate");
  }
  return gpus;
}

using Kernel = void (*)(Parts);

/// GB/s that each GPU sends or is read from; the slowest one's.
double measure(std::vector<Gpu> &gpus, Kernel kernel, uint32_t numBlocks, size_t bytes) {
  const uint32_t n = static_cast<uint32_t>(gpus.size());
  const int repetitions = bytes > 16 << 20 ? 3 : 20;
  float longest = 0;
  for (bool isWarm : {false, true}) {
    longest = 0;
    for (uint32_t g = 0; g < n; ++g) {
      require(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
      Parts parts = {{}, n, g, bytes};
      for (uint32_t peer = 0; peer < n; ++peer)
        parts.memory[peer] = gpus[peer].memory;
      require(cudaEventRecord(gpus[g].begin, gpus[g].stream), "cudaEventRecord");
      for (int i = 0; i < (isWarm ? repetitions : 2); ++i)
        kernel<<<numBlocks, kThreads, 0, gpus[g].stream>>>(parts);
      require(cudaEventRecord(gpus[g].end, gpus[g].stream), "cudaEventRecord");
    }
    for (uint32_t g = 0; g < n; ++g) {
      require(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
      require(cudaStreamSynchronize(gpus[g].stream), "cudaStreamSynchronize");
      float milliseconds = 0;
      require(cudaEventElapsedTime(&milliseconds, gpus[g].begin, gpus[g].end), "elapsed time");
      longest = std::max(longest, milliseconds);
    }
  }
  return static_cast<double>(bytes) * (n - 1) * repetitions / longest / 1e6;
}

} // namespace

int main() {
  std::vector<Gpu> gpus = openGpus();
  if (gpus.size() < 2) {
    std::fprintf(stderr, "link_patterns: needs two GPUs or more\n");
    return 2;
  }
  struct {
    const char *name;
    Kernel kernel;
    bool needsPeers = false; // as many blocks
  } const patterns[] = {{"ring, written", move<Pattern::Ring, false>},
                        {"ring, read", move<Pattern::Ring, true>},
                        {"in turn, written", move<Pattern::InTurn, false>},
                        {"in turn, read", move<Pattern::InTurn, true>},
                        {"in turn by block, written", move<Pattern::InTurnByBlock, false>},
                        {"in turn by block, read", move<Pattern::InTurnByBlock, true>},
                        {"a peer a block, written", move<Pattern::BlockAPeer, false>, true},
                        {"a peer a block, read", move<Pattern::BlockAPeer, true>, true}};
  constexpr uint32_t kBlocks[] = {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128};
  for (size_t bytes : {size_t(4) << 20, kLargestPart}) {
    std::printf("| GB/s, %zu GPUs, parts of %zu MiB |", gpus.size(), bytes >> 20);
    for (uint32_t blocks : kBlocks)
      std::printf(" %u |", blocks);
    std::printf("\n|---|");
    for (size_t i = 0; i < std::size(kBlocks); ++i)
      std::printf("---|");
    std::printf("\n");
    for (const auto &pattern : patterns) {
      std::printf("| %s |", pattern.name);
      for (uint32_t blocks : kBlocks) {
        if (pattern.needsPeers && blocks < gpus.size() - 1)
          std::printf(" - |");
        else
          std::printf(" %.0f |", measure(gpus, pattern.kernel, blocks, bytes));
        std::fflush(stdout);
      }
      std::printf("\n");
    }
  }
  return 0;
}
