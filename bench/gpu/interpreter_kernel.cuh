// The interpreter as a CUDA kernel that executes invocation after invocation of one program.
//
// Each invocation has an arena block and progress words whose control words are zero at its start.
// There is a ring of kArenaRing of them: at the start of invocation i a thread block clears its own
// control words of invocation i + 2's. They were used by invocation i - 2, which is over everywhere
// for this thread block's connections: it has itself finished i - 1, for which it needed something
// from every rank's corresponding block, which that block sent after it had finished i - 2. And no
// peer uses them before it has something that this block sends after the clearing. So this needs
// plans in which a thread block hears from all ranks' blocks of its connections before it ends
// (all-reduce), without dependencies on other blocks.
#pragma once

#include "bench/gpu/block_image.h"
#include "bench/gpu/kernel_arguments.h"
#include "bench/gpu/patience.cuh"
#include "runtime/interpreter/step.h"
#include "runtime/interpreter/target_cuda.cuh"

#include <cstdint>

namespace occl::bench {

using namespace interpreter;

static_assert(kMaxBlockOperands == CudaTeam::kMaxOperands);

/// The static part of a thread block, in shared memory.
struct BlockState {
  Invocation invocation;
  char *arenas[kMaxRanks];
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

/// Clears the control words of this block that lie in its own rank's memory. The first warp. Lines
/// stay: their flags grow from one invocation to the next.
__device__ inline void clearControls(const ImageHeader &header, char *arena, char *progress) {
  const Program &program = header.program;
  for (uint32_t i = threadIdx.x; i <= header.numEnds; i += kControlThreads) {
    if (i == header.numEnds) {
      *reinterpret_cast<uint64_t *>(progress + blockIdx.x * kControlStride) = 0;
      continue;
    }
    const ConnectionEnd &end = program.ends[i];
    if (end.dataRank == program.rank && (program.line.bytes == 0 || end.isCounter))
      *reinterpret_cast<uint64_t *>(arena + end.tailOffset) = 0;
    if (end.creditRank == program.rank && end.lastCredit != 0)
      for (uint32_t p = 0; p < end.numPeers; ++p)
        *reinterpret_cast<uint64_t *>(arena + end.headsOffset + p * kControlStride) = 0;
  }
}

__device__ inline char *inRing(char *base, uint64_t stride, uint32_t invocation) {
  return base + invocation % kArenaRing * stride;
}

/// Makes `state` that of an invocation and clears what will be another's. The first warp.
__device__ inline void beginInvocation(BlockState &state, const ImageHeader &header,
                                       const RankArguments &rank, uint32_t numRanks,
                                       uint32_t number) {
  uint32_t self = header.program.rank;
  __syncwarp(); // the previous invocation's addresses are no longer in use
  if (threadIdx.x < numRanks)
    state.arenas[threadIdx.x] =
        inRing(rank.arenas[threadIdx.x], rank.arenaStrides[threadIdx.x], number);
  if (threadIdx.x == 0) {
    Invocation invocation;
    invocation.program = &header.program;
    for (uint32_t kind = 0; kind < 3; ++kind)
      invocation.buffers[kind] = rank.buffers[kind];
    invocation.arenas = state.arenas;
    invocation.progress = inRing(rank.progress, rank.progressStride, number);
    invocation.flagBase = number * header.program.flagsPerInvocation;
    state.invocation = invocation;
  }
  clearControls(header, inRing(rank.arenas[self], rank.arenaStrides[self], number + 2),
                inRing(rank.progress, rank.progressStride, number + 2));
  __syncwarp();
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

/// All invocations. The first warp.
template <class Target>
__device__ void control(BlockState &state, const ImageHeader &header,
                        const LoopArguments &arguments, Target &target) {
  const RankArguments &rank = arguments.ranks[blockIdx.y];
  BlockReport &outcome = rank.reports[blockIdx.x];
  uint64_t begin = 0;
  for (uint32_t i = 0; i < arguments.invocations; ++i) {
    if (i == arguments.warmUp) {
      begin = deviceClock();
      if constexpr (requires { target.restart(); })
        target.restart();
    }
    uint32_t number = arguments.firstInvocation + i;
    beginInvocation(state, header, rank, arguments.numRanks, number);
    if (!finishInvocation(state, target, Patience(arguments.patience), outcome, number))
      return;
  }
  if constexpr (requires { target.measured(); })
    if (threadIdx.x == arguments.observer && blockIdx.x == 0)
      *rank.account = target.measured();
  if (threadIdx.x == 0)
    report(
        outcome,
        {BlockReport::Finished, 0, {}, {}, header.program.rank, blockIdx.x, deviceClock() - begin});
}

template <class Target>
__global__ void __launch_bounds__(kThreads)
    interpretLoop(const __grid_constant__ LoopArguments arguments) {
  __shared__ alignas(16) char tables[kTableBytes];
  __shared__ BlockState state;
  const ImageHeader &header =
      loadImage(arguments.ranks[blockIdx.y].images + blockIdx.x * arguments.imageStride, tables,
                arguments.tablesInShared);
  if (threadIdx.x >= kControlThreads)
    return Target::serve(state.team);
  Target target(state.team);
  control(state, header, arguments, target);
  target.dismiss();
}

template <class Target>
int launch(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks, void *stream) {
  interpretLoop<Target>
      <<<dim3(blocks, localRanks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(arguments);
  return cudaGetLastError();
}

} // namespace occl::bench
