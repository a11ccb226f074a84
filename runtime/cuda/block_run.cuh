// What kernels that interpret have in common: a thread block with its image in shared memory runs
// one invocation to its end, or gives up at its bound and says where it stands.
#pragma once

#include "runtime/cuda/block_image.h"
#include "runtime/cuda/limits.h"
#include "runtime/cuda/patience.cuh"
#include "runtime/interpreter/step.h"
#include "runtime/interpreter/target_cuda.cuh"

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

/// Copies the image to `tables` or leaves it where it is; returns the relocated header.
__device__ inline const ImageHeader &loadImage(const char *image, char *tables, bool toShared) {
  if (!toShared)
    return *reinterpret_cast<const ImageHeader *>(image);
  auto *to = reinterpret_cast<uint4 *>(tables);
  auto *from = reinterpret_cast<const uint4 *>(image);
  uint32_t vectors = reinterpret_cast<const ImageHeader *>(image)->bytes / 16;
  for (uint32_t i = threadIdx.x; i < vectors; i += blockDim.x)
    to[i] = from[i];
  __syncthreads();
  auto &header = *reinterpret_cast<ImageHeader *>(tables);
  if (threadIdx.x == 0)
    relocate(header, tables);
  __syncthreads();
  return header;
}

/// Waits until `isReady` says so for all lanes, a rank each. False: gave up, and reported whom it
/// missed.
template <class IsReady>
__device__ bool waitInWarp(const IsReady &isReady, Patience patience, BlockReport &to,
                           uint32_t self, uint32_t number) {
  for (;;) {
    bool ready = isReady();
    if (__all_sync(~0u, ready))
      return true;
    if (!patience.isExhausted([](bool late) { return __any_sync(~0u, late) != 0; }))
      continue;
    if (!ready)
      report(to, {BlockReport::GaveUp,
                  number,
                  {},
                  {BlockReason::Announce, 0, threadIdx.x},
                  self,
                  blockIdx.x,
                  0});
    return false;
  }
}

/// Steps until the invocation is finished. False: gave up, and reported it. The first warp.
template <class Target>
__device__ bool finishInvocation(const BlockState &state, Target &target, Patience patience,
                                 BlockReport &to, uint32_t number) {
  BlockContext context;
  for (;;) {
    StepResult result = runBlock(state.invocation, blockIdx.x, context, target, ~0u);
    if (result.status == StepStatus::Finished)
      return true;
    if (result.slices != 0)
      patience.progressed();
    if (!patience.isExhausted([](bool late) { return __any_sync(~0u, late) != 0; }))
      continue;
    if (result.obstacle.reason != BlockReason::None)
      report(to, {BlockReport::GaveUp, number, context, result.obstacle,
                  state.invocation.program->rank, blockIdx.x, 0});
    return false;
  }
}

} // namespace occl::cuda
