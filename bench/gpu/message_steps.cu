// message_steps: what one thread block moves if it does as in a collective of messages: steps of so
// many bytes, each ended by a fence and a flag in the other GPU's memory. GB/s a thread block, by
// the number of thread blocks; both GPUs at once. Copies by the threads, or by bulk copies through
// shared memory; sums of two buffers, stored to both GPUs. Needs two GPUs.
#include "bench/gpu/require.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <vector>

namespace {

using occl::bench::require;

constexpr uint32_t kThreads = 384, kGpus = 2, kFlagStride = 16;
constexpr size_t kBytes = 64 << 20; // of a GPU
/// Bulk copies: so many pieces of so many bytes are on their way.
constexpr uint32_t kPieces = 16, kPieceBytes = 8 << 10;

/// Of one GPU. Each thread block has its part of every buffer.
struct Buffers {
  const char *input, *other;
  char *output, *peerOutput;
  uint64_t *peerFlags;
  size_t each; // bytes of a thread block
  uint32_t step;
};

/// One thread, behind what all have stored.
__device__ void publish(const Buffers &buffers, uint64_t value) {
  __threadfence_system();
  *static_cast<volatile uint64_t *>(buffers.peerFlags + blockIdx.x * kFlagStride) = value;
}

/// Eight vectors a thread in flight, of sums four of each.
template <bool kSums> __device__ void moveStep(const Buffers &buffers, size_t at, bool isRemote) {
  constexpr uint32_t kInFlight = kSums ? 4 : 8;
  const auto *a = reinterpret_cast<const float4 *>(buffers.input + at);
  const auto *b = reinterpret_cast<const float4 *>(buffers.other + at);
  auto *here = reinterpret_cast<float4 *>(buffers.output + at);
  auto *there = reinterpret_cast<float4 *>(buffers.peerOutput + at);
  const uint32_t vectors = buffers.step / sizeof(float4);
  for (uint32_t i = threadIdx.x; i < vectors; i += kInFlight * kThreads) {
    float4 x[kInFlight], y[kInFlight];
#pragma unroll
    for (uint32_t u = 0; u < kInFlight; ++u)
      if (const uint32_t v = i + u * kThreads; v < vectors) {
        x[u] = __ldcs(a + v);
        if (kSums)
          y[u] = __ldcs(b + v);
      }
#pragma unroll
    for (uint32_t u = 0; u < kInFlight; ++u)
      if (const uint32_t v = i + u * kThreads; v < vectors) {
        if (kSums)
          x[u] = {x[u].x + y[u].x, x[u].y + y[u].y, x[u].z + y[u].z, x[u].w + y[u].w};
        if (kSums || !isRemote)
          here[v] = x[u];
        if (kSums || isRemote)
          there[v] = x[u];
      }
  }
}

template <bool kSums>
__global__ void __launch_bounds__(kThreads) byThreads(Buffers buffers, bool isRemote) {
  const size_t from = blockIdx.x * buffers.each;
  for (size_t at = from; at < from + buffers.each; at += buffers.step) {
    moveStep<kSums>(buffers, at, isRemote);
    __syncthreads();
    if (threadIdx.x == 0)
      publish(buffers, at);
    __syncthreads();
  }
}

__device__ uint32_t inShared(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ void load(const char *from, char *to, uint64_t *arrived) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(inShared(arrived)),
               "r"(kPieceBytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(inShared(to)),
               "l"(from), "r"(kPieceBytes), "r"(inShared(arrived))
               : "memory");
}
__device__ void await(uint64_t *arrived, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
          inShared(arrived)),
      "r"(parity)
      : "memory");
}
__device__ void store(const char *from, char *to) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(inShared(from)), "r"(kPieceBytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// One thread does it all. Half of the pieces are being loaded, half stored.
__global__ void __launch_bounds__(kThreads) byBulkCopies(Buffers buffers, bool isRemote) {
  extern __shared__ __align__(128) char memory[];
  __shared__ uint64_t arrived[kPieces];
  if (threadIdx.x != 0)
    return;
  for (uint64_t &word : arrived)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(inShared(&word)));
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  char *const to = isRemote ? buffers.peerOutput : buffers.output;
  const uint32_t pieces = buffers.step / kPieceBytes;
  const size_t from = blockIdx.x * buffers.each;
  uint32_t before = 0;
  for (size_t at = from; at < from + buffers.each; at += buffers.step, before += pieces) {
    asm volatile("fence.proxy.async.global;" ::: "memory");
    uint32_t loaded = 0;
    for (uint32_t stored = 0; stored < pieces; ++stored) {
      for (; loaded < pieces && loaded < stored + kPieces / 2; ++loaded) {
        // What was stored from there has been read.
        asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPieces / 2 - 1) : "memory");
        const uint32_t place = (before + loaded) % kPieces;
        load(buffers.input + at + loaded * kPieceBytes, memory + place * kPieceBytes,
             &arrived[place]);
      }
      const uint32_t place = (before + stored) % kPieces;
      await(&arrived[place], (before + stored) / kPieces & 1);
      store(memory + place * kPieceBytes, to + at + stored * kPieceBytes);
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    publish(buffers, at);
  }
}

struct Gpu {
  char *buffers[3] = {}; // input, other, output
  uint64_t *flags = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

Gpu openGpu(int number) {
  Gpu gpu;
  require(cudaSetDevice(number), "cudaSetDevice");
  require(cudaDeviceEnablePeerAccess(1 - number, 0), "peer access");
  for (char *&buffer : gpu.buffers) {
    require(cudaMalloc(&buffer, kBytes), "cudaMalloc");
    require(cudaMemset(buffer, 0, kBytes), "cudaMemset");
  }
  require(cudaMalloc(&gpu.flags, kBytes / 1024), "cudaMalloc");
  require(cudaStreamCreate(&gpu.stream), "cudaStreamCreate");
  require(cudaEventCreate(&gpu.begin), "cudaEventCreate");
  require(cudaEventCreate(&gpu.end), "cudaEventCreate");
  require(cudaFuncSetAttribute(byBulkCopies, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kPieces * kPieceBytes),
          "shared memory");
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return gpu;
}

using Kernel = void (*)(Buffers, bool);

/// Of one thread block, of the slower GPU; the median of seven.
double measure(Gpu (&gpus)[kGpus], Kernel kernel, bool isRemote, uint32_t blocks, uint32_t step) {
  const uint32_t shared = kernel == byBulkCopies ? kPieces * kPieceBytes : 0;
  std::vector<float> times;
  for (int repetition = 0; repetition < 7; ++repetition) {
    for (uint32_t g = 0; g < kGpus; ++g) {
      Gpu &mine = gpus[g], &peer = gpus[1 - g];
      require(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
      require(cudaEventRecord(mine.begin, mine.stream), "cudaEventRecord");
      const Buffers buffers = {mine.buffers[0],
                               mine.buffers[1],
                               mine.buffers[2],
                               peer.buffers[2],
                               peer.flags,
                               kBytes / blocks,
                               step};
      kernel<<<blocks, kThreads, shared, mine.stream>>>(buffers, isRemote);
      require(cudaEventRecord(mine.end, mine.stream), "cudaEventRecord");
    }
    float longest = 0;
    for (Gpu &gpu : gpus) {
      require(cudaStreamSynchronize(gpu.stream), "cudaStreamSynchronize");
      float milliseconds = 0;
      require(cudaEventElapsedTime(&milliseconds, gpu.begin, gpu.end), "elapsed time");
      longest = std::max(longest, milliseconds);
    }
    times.push_back(longest);
  }
  std::ranges::sort(times);
  return static_cast<double>(kBytes) / blocks / times[times.size() / 2] / 1e6;
}

} // namespace

int main() {
  int number = 0;
  require(cudaGetDeviceCount(&number), "cudaGetDeviceCount");
  if (number < static_cast<int>(kGpus)) {
    std::fprintf(stderr, "message_steps: needs two GPUs\n");
    return 2;
  }
  Gpu gpus[kGpus] = {openGpu(0), openGpu(1)};
  struct {
    const char *name;
    Kernel kernel;
    bool isRemote;
  } const kinds[] = {{"copy", byThreads<false>, false},
                     {"copy, bulk", byBulkCopies, false},
                     {"to the peer", byThreads<false>, true},
                     {"to the peer, bulk", byBulkCopies, true},
                     {"sum, to both", byThreads<true>, true}};
  constexpr uint32_t kSteps[] = {32 << 10, 64 << 10, 128 << 10, 256 << 10};
  std::printf("| GB/s a thread block |");
  for (uint32_t step : kSteps)
    std::printf(" %u KiB |", step >> 10);
  std::printf("\n|---|---|---|---|---|\n");
  for (uint32_t blocks : {8u, 16u, 32u})
    for (const auto &kind : kinds) {
      std::printf("| %u thread blocks, %s |", blocks, kind.name);
      for (uint32_t step : kSteps)
        std::printf(" %.1f |", measure(gpus, kind.kernel, kind.isRemote, blocks, step));
      std::printf("\n");
    }
  return 0;
}
