// Copies many small pieces at once: a row of thread blocks for each, with vectors of 16 bytes where
// both sides are aligned for them.
#include "runtime/cuda/packing/copy_kernel.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace occl::cuda {

namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostCopies = 96;
/// Of one piece: with more, what each copies is more.
constexpr uint64_t kMostBlocks = 64;
/// Loads of 16 bytes that a thread has in flight.
constexpr uint32_t kLoads = 4;

struct Arguments {
  DeviceCopy copies[kMostCopies];
};

/// What of `bytes` consists of whole words.
template <class Word>
__device__ void copyWords(const DeviceCopy &copy, uint64_t thread, uint64_t numThreads) {
  const auto *from = reinterpret_cast<const Word *>(copy.from);
  auto *to = reinterpret_cast<Word *>(copy.to);
  const uint64_t words = copy.bytes / sizeof(Word);
#pragma unroll 1
  for (uint64_t i = thread; i < words; i += kLoads * numThreads) {
    // All loads come first, so that they are in flight together.
    Word loaded[kLoads];
#pragma unroll
    for (uint32_t k = 0; k < kLoads; ++k)
      if (i + k * numThreads < words)
        loaded[k] = from[i + k * numThreads];
#pragma unroll
    for (uint32_t k = 0; k < kLoads; ++k)
      if (i + k * numThreads < words)
        to[i + k * numThreads] = loaded[k];
  }
}

__global__ void __launch_bounds__(kThreads)
    copyPieces(const __grid_constant__ Arguments arguments) {
  const DeviceCopy &copy = arguments.copies[blockIdx.x];
  const uint64_t thread = uint64_t(blockIdx.y) * kThreads + threadIdx.x;
  const uint64_t numThreads = uint64_t(gridDim.y) * kThreads;
  const uint64_t places =
      reinterpret_cast<uintptr_t>(copy.from) | reinterpret_cast<uintptr_t>(copy.to);
  // The largest words for which both sides are aligned, then the bytes that are left.
  uint64_t done = 0;
  if (places % 16 == 0) {
    copyWords<uint4>(copy, thread, numThreads);
    done = copy.bytes / 16 * 16;
  } else if (places % 4 == 0) {
    copyWords<uint32_t>(copy, thread, numThreads);
    done = copy.bytes / 4 * 4;
  } else if (places % 2 == 0) {
    copyWords<uint16_t>(copy, thread, numThreads);
    done = copy.bytes / 2 * 2;
  }
  copyWords<char>({copy.from + done, copy.to + done, copy.bytes - done}, thread, numThreads);
}

} // namespace

int launchCopies(std::span<const DeviceCopy> copies, void *stream) {
  constexpr uint64_t kBytesOfBlock = uint64_t{kThreads} * kLoads * 16;
  for (; !copies.empty(); copies = copies.subspan(std::min<size_t>(copies.size(), kMostCopies))) {
    const auto now = copies.first(std::min<size_t>(copies.size(), kMostCopies));
    Arguments arguments = {};
    std::ranges::copy(now, arguments.copies);
    const uint64_t largest = std::ranges::max(now, {}, &DeviceCopy::bytes).bytes;
    const uint64_t blocks =
        std::clamp<uint64_t>((largest + kBytesOfBlock - 1) / kBytesOfBlock, 1, kMostBlocks);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<uint32_t>(now.size()), static_cast<uint32_t>(blocks));
    config.blockDim = kThreads;
    config.stream = static_cast<cudaStream_t>(stream);
    if (cudaError_t error = cudaLaunchKernelEx(&config, copyPieces, arguments);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

int loadCopies() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, copyPieces);
}

} // namespace occl::cuda
