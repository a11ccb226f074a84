// Copies many small pieces at once: a row of thread blocks for each, with vectors of 16 bytes where
// both sides are aligned for them.
#include "runtime/cuda/packing/copy_kernel.h"

#include "runtime/api/occl_device_groups.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace occl::cuda {

namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostCopies = 96;
/// Of one piece: with more, what each copies is more.
constexpr uint64_t kMostBlocks = 64;
/// Vectors of 16 bytes for each thread of a thread block: with more, another thread block helps.
constexpr uint32_t kLoads = 4;

struct Arguments {
  DeviceCopy copies[kMostCopies];
};

/// The row of thread blocks that has one piece.
struct Row {
  __device__ uint64_t rank() const { return uint64_t(blockIdx.y) * kThreads + threadIdx.x; }
  __device__ uint64_t size() const { return uint64_t(gridDim.y) * kThreads; }
};

__global__ void __launch_bounds__(kThreads)
    copyPieces(const __grid_constant__ Arguments arguments) {
  using device::detail::copyWords;
  const auto [from, to, bytes] = arguments.copies[blockIdx.x];
  const uint64_t places = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  // The largest words for which both sides are aligned, then the bytes that are left.
  uint64_t done = 0;
  if (places % 16 == 0)
    done = copyWords<uint4>(Row(), to, from, done, bytes);
  else if (places % 4 == 0)
    done = copyWords<uint32_t>(Row(), to, from, done, bytes);
  else if (places % 2 == 0)
    done = copyWords<uint16_t>(Row(), to, from, done, bytes);
  copyWords<uint8_t>(Row(), to, from, done, bytes);
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
