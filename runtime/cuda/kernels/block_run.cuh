// What kernels that interpret have in common: a thread block's image in shared memory, and who runs
// its steps.
#pragma once

#include "runtime/cuda/tables/block_image.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/cuda/target_cuda.cuh"
#include "runtime/exec/step/ready.h"

#include <cstddef>
#include <cstdint>

namespace occl::cuda {

using namespace interpreter;

static_assert(kAloneBytes == CudaTeam::kAloneBytes);

/// The static part of a thread block, in shared memory.
struct BlockState {
  Invocation invocation;
  char *places[numPlaces(kMaxRanks, true)];
  bool isAligned; // all places are multiples of kPlaceAlignment
  CudaTeam team;
};

/// What relocate() does, shared out among the first kRelocations threads.
inline constexpr uint32_t kRelocations = 4;
static_assert(offsetof(ReadyTables, pieces) == 3 * sizeof(char *));
__device__ inline void relocateOne(ImageHeader &header, const char *base, uint32_t which) {
  auto *pointers = reinterpret_cast<uintptr_t *>(&header.ready); // side by side
  pointers[which] += reinterpret_cast<uintptr_t>(base);
}

/// Who loads an image: all warps but the first, which may come when it likes and so only waits for
/// the others, or the first warp alone.
struct ByOthers {
  __device__ static uint32_t thread() { return threadIdx.x - kControlThreads; }
  __device__ static uint32_t numThreads() { return blockDim.x - kControlThreads; }
  /// Barrier 3, which nobody else uses.
  __device__ static void meet() {
    asm volatile("barrier.sync 3, %0;" ::"r"(numThreads()) : "memory");
  }
  __device__ static void end() { __syncthreads(); }
};
struct ByFirstWarp {
  __device__ static uint32_t thread() { return threadIdx.x; }
  __device__ static uint32_t numThreads() { return kControlThreads; }
  __device__ static void meet() { __syncwarp(); }
  __device__ static void end() { __syncwarp(); }
};

/// Copies an image to `tables`, of kTableBytes bytes in shared memory; returns the relocated
/// header. stride: bytes of memory that may be read there.
template <class By>
__device__ const ImageHeader &loadImage(const char *image, uint64_t stride, char *tables) {
  auto *to = reinterpret_cast<uint4 *>(tables);
  auto *from = reinterpret_cast<const uint4 *>(image);
  auto &header = *reinterpret_cast<ImageHeader *>(tables);
  const uint32_t thread = By::thread(), numThreads = By::numThreads();
  if (thread < numThreads) {
    // Most are so small that nobody need look first how large they are.
    uint32_t known = static_cast<uint32_t>(stride < kTableBytes ? stride : kTableBytes) / 16;
    if (thread < known)
      to[thread] = from[thread];
    By::meet();
    uint32_t vectors = header.bytes / 16;
    for (uint32_t i = thread + numThreads; i < vectors; i += numThreads)
      to[i] = from[i];
    By::meet();
    if (thread < kRelocations)
      relocateOne(header, tables, thread);
  }
  By::end();
  return header;
}

/// A thread block, of which the image was loaded by loadImage() to `tables`. The first warp.
template <class Target, Resolution kWhen> class RunnerOf {
public:
  __device__ RunnerOf(const BlockState &state, const ImageHeader &header, char *tables,
                      Target &target)
      : block(state.invocation, header.program, header.ready,
              reinterpret_cast<ReadyWord *>(tables + header.bytes), target,
              header.isMeasured && state.isAligned) {}
  /// A new invocation: `state` has changed. Buffers are aligned as before.
  __device__ void restart() { block.restart(); }
  /// Steps until the block is finished or blocked, or so many are done (then Progressed).
  __device__ StepResult run(BlockContext &context, uint32_t maxSlices) {
    return block.run(context, maxSlices);
  }

private:
  ReadyBlock<Target, kWhen> block;
};
/// Not where ImageHeader::isPerStep.
template <class Target> using TileRunner = RunnerOf<Target, Resolution::PerTile>;
/// Where stepsOverlap().
template <class Target> using OverlappingRunner = RunnerOf<Target, Resolution::Overlapped>;
/// Any thread block. Kernels that have another one keep this one's code apart, in a function that
/// is not inlined: else its registers are in the other's way.
template <class Target> using StepRunner = RunnerOf<Target, Resolution::PerStep>;

/// Whether there are several tiles, and room for two.
__device__ inline bool stepsOverlap(const ImageHeader &header) {
  return header.program.numTiles > 1 && !header.isPerStep &&
         roomBytes(header) + secondRoomBytes(header.ready) <= kTableBytes;
}

} // namespace occl::cuda
