// What kernels that interpret have in common: a thread block's image in shared memory, and who runs
// its steps.
#pragma once

#include "runtime/cuda/block_image.h"
#include "runtime/cuda/limits.h"
#include "runtime/interpreter/ready.h"
#include "runtime/interpreter/step.h"
#include "runtime/interpreter/target_cuda.cuh"

#include <cstddef>
#include <cstdint>

namespace occl::cuda {

using namespace interpreter;

static_assert(kMaxBlockOperands == CudaTeam::kMaxOperands);

/// The static part of a thread block, in shared memory.
struct BlockState {
  Invocation invocation;
  char *places[numPlaces(kMaxRanks, true)];
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

/// Copies what is needed of an image to `tables`, of kTableBytes bytes in shared memory; returns
/// the relocated header. stride: bytes of memory that may be read there.
__device__ inline const ImageHeader &loadImage(const char *image, uint64_t stride, char *tables) {
  auto *to = reinterpret_cast<uint4 *>(tables);
  auto *from = reinterpret_cast<const uint4 *>(image);
  // Most are so small that nobody need look first how large they are.
  uint32_t known = static_cast<uint32_t>(stride < kTableBytes ? stride : kTableBytes) / 16;
  if (threadIdx.x < known)
    to[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  auto &header = *reinterpret_cast<ImageHeader *>(tables);
  uint32_t vectors = (header.isReady ? header.readyBytes : header.bytes) / 16;
  for (uint32_t i = threadIdx.x + blockDim.x; i < vectors; i += blockDim.x)
    to[i] = from[i];
  if (threadIdx.x < kRelocations)
    relocateOne(header, tables, threadIdx.x);
  __syncthreads();
  return header;
}

/// A thread block whose steps are made ready: where ImageHeader::isReady, and the image was loaded
/// by loadImage() to `tables`. The first warp.
template <class Target> class ReadyRunner {
public:
  __device__ ReadyRunner(const BlockState &state, const ImageHeader &header, char *tables,
                         Target &target)
      : block(state.invocation, header.program, header.ready,
              reinterpret_cast<ReadyWord *>(tables + header.readyBytes), target) {}
  /// A new invocation: `state` has changed. Buffers are aligned as before.
  __device__ void restart() { block.restart(); }
  /// As runBlock().
  __device__ StepResult run(BlockContext &context, uint32_t maxSlices) {
    return block.run(context, maxSlices);
  }

private:
  ReadyBlock<Target> block;
};

/// Any thread block. Kernels that hold both keep this one's code apart, in a function that is not
/// inlined: else its registers are in the other's way.
template <class Target> class StepRunner {
public:
  __device__ StepRunner(const BlockState &state, const ImageHeader &, char *, Target &target)
      : invocation(state.invocation), target(target) {}
  __device__ void restart() {}
  __device__ StepResult run(BlockContext &context, uint32_t maxSlices) {
    return runBlock(invocation, blockIdx.x, context, target, maxSlices);
  }

private:
  const Invocation &invocation;
  Target &target;
};

} // namespace occl::cuda
