// What kernels that interpret have in common: a thread block's image in shared memory, and who runs
// its steps.
#pragma once

#include "runtime/cuda/tables/block_image.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/cuda/target_cuda.cuh"
#include "runtime/exec/step/ready.h"
#include "runtime/exec/step/step.h"

#include <cstddef>
#include <cstdint>

namespace occl::cuda {

using namespace interpreter;

static_assert(kMaxBlockOperands == CudaTeam::kMaxOperands);
static_assert(kAloneBytes == CudaTeam::kAloneBytes);

/// The static part of a thread block, in shared memory.
struct BlockState {
  Invocation invocation;
  char *places[numPlaces(kMaxRanks, true)];
  bool isAligned; // all places are multiples of kPlaceAlignment
  CudaTeam team;
};

/// What relocate() does, shared out among the first kRelocations threads.
inline constexpr uint32_t kRelocations = 15;
static_assert(offsetof(Program, chunkBegins) == 9 * sizeof(char *));
static_assert(offsetof(ReadyTables, pieces) == 3 * sizeof(char *));
__device__ inline void relocateOne(ImageHeader &header, const char *base, uint32_t which) {
  constexpr uint32_t kOfProgram = 10, kOfReady = 4; // side by side
  auto *pointer = reinterpret_cast<uintptr_t *>(&header.controls);
  if (which < kOfProgram)
    pointer = reinterpret_cast<uintptr_t *>(&header.program) + which;
  else if (which < kOfProgram + kOfReady)
    pointer = reinterpret_cast<uintptr_t *>(&header.ready) + (which - kOfProgram);
  *pointer += reinterpret_cast<uintptr_t>(base);
}

/// Who loads an image: all warps but the first, which may come when it likes and so only waits for
/// the others, or the first warp alone, which wants all of it.
struct ByOthers {
  static constexpr bool kWantsAll = false;
  __device__ static uint32_t thread() { return threadIdx.x - kControlThreads; }
  __device__ static uint32_t numThreads() { return blockDim.x - kControlThreads; }
  /// Barrier 3, which nobody else uses.
  __device__ static void meet() {
    asm volatile("barrier.sync 3, %0;" ::"r"(numThreads()) : "memory");
  }
  __device__ static void end() { __syncthreads(); }
};
struct ByFirstWarp {
  static constexpr bool kWantsAll = true;
  __device__ static uint32_t thread() { return threadIdx.x; }
  __device__ static uint32_t numThreads() { return kControlThreads; }
  __device__ static void meet() { __syncwarp(); }
  __device__ static void end() { __syncwarp(); }
};

/// Copies an image, or what steps made ready need of it, to `tables`, of kTableBytes bytes in
/// shared memory; returns the relocated header. stride: bytes of memory that may be read there.
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
    uint32_t vectors = (header.isReady && !By::kWantsAll ? header.readyBytes : header.bytes) / 16;
    for (uint32_t i = thread + numThreads; i < vectors; i += numThreads)
      to[i] = from[i];
    By::meet();
    if (thread < kRelocations)
      relocateOne(header, tables, thread);
  }
  By::end();
  return header;
}

/// A thread block whose steps are made ready: where ImageHeader::isReady, and the image was loaded
/// by loadImage() to `tables`. The first warp.
template <class Target, bool kOverlaps> class ReadyRunnerOf {
public:
  __device__ ReadyRunnerOf(const BlockState &state, const ImageHeader &header, char *tables,
                           Target &target, uint32_t)
      : block(state.invocation, header.program, header.ready,
              reinterpret_cast<ReadyWord *>(tables + header.readyBytes), target,
              header.isMeasured && state.isAligned) {}
  /// A new invocation: `state` has changed. Buffers are aligned as before.
  __device__ void restart() { block.restart(); }
  /// As runBlock().
  __device__ StepResult run(BlockContext &context, uint32_t maxSlices) {
    return block.run(context, maxSlices);
  }

private:
  ReadyBlock<Target, kOverlaps> block;
};
template <class Target> using ReadyRunner = ReadyRunnerOf<Target, false>;
/// The same where stepsOverlap().
template <class Target> using OverlappingRunner = ReadyRunnerOf<Target, true>;

/// Whether there are several tiles, made ready, and room for two.
__device__ inline bool stepsOverlap(const ImageHeader &header) {
  return header.isReady && header.program.numTiles > 1 &&
         header.readyBytes + header.ready.numSources * sizeof(ReadyWord) +
                 secondRoomBytes(header.ready) <=
             kTableBytes;
}

/// Any thread block. Kernels that hold both keep this one's code apart, in a function that is not
/// inlined: else its registers are in the other's way.
template <class Target> class StepRunner {
public:
  /// block: which of the plan's.
  __device__ StepRunner(const BlockState &state, const ImageHeader &, char *, Target &target,
                        uint32_t block)
      : invocation(state.invocation), target(target), block(block) {}
  __device__ void restart() {}
  __device__ StepResult run(BlockContext &context, uint32_t maxSlices) {
    return runBlock(invocation, block, context, target, maxSlices);
  }

private:
  const Invocation &invocation;
  Target &target;
  const uint32_t block;
};

} // namespace occl::cuda
