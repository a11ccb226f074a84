// The interpreter as a CUDA kernel that executes invocation after invocation of one program.
//
// Programs with messages: each invocation has an arena block whose control words are zero at its
// start. There is a ring of kArenaRing of them: at the start of invocation i a thread block clears
// its own control words of invocation i + 2's. They were used by invocation i - 2, which is over
// everywhere for this thread block's connections: it has itself finished i - 1, for which it needed
// something from every rank's corresponding block, which that block sent after it had finished i
// - 2. And no peer uses them before it has something that this block sends after the clearing. So
// this needs plans in which a thread block hears from all ranks' blocks of its connections before
// it ends (all-reduce), without dependencies on other blocks.
//
// Direct programs: there is one arena block, whose counters go on from one invocation to the next.
// A rank begins an invocation when all its thread blocks have ended the one before: a new kernel
// has that for nothing. Then each thread block tells those of the same number on the other ranks
// that its rank has begun, and waits for them: from there on they may access each other's buffers.
#pragma once

#include "bench/gpu/kernels/bounded_run.cuh"
#include "bench/gpu/kernels/kernel_arguments.h"
#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/block_run.cuh"

#include <cstdint>

namespace occl::bench {

using namespace interpreter;
using namespace occl::cuda;

__device__ inline char *inRing(char *base, uint64_t stride, uint32_t invocation) {
  return base + invocation % kArenaRing * stride;
}

/// What is the same for all invocations. The first warp.
__device__ inline void beginBlock(BlockState &state, const ImageHeader &header,
                                  const RankArguments &rank, const LoopArguments &arguments) {
  uint32_t lane = threadIdx.x;
  if (lane == 0) {
    Invocation invocation;
    invocation.program = &header.program;
    invocation.places = state.places;
    state.invocation = invocation;
  }
  if (lane < 3)
    state.places[lane] = rank.buffers[lane];
  if (lane < arguments.numRanks) {
    state.places[arenaPlace(lane)] = rank.arenas[lane];
    for (uint32_t kind = 0; arguments.isDirect && kind < 3; ++kind)
      state.places[peerBufferPlace(arguments.numRanks, lane, kind)] =
          rank.peerBuffers[lane * 3 + kind];
  }
  __syncwarp();
}

/// Makes `state` that of an invocation with messages and clears what will be another's. The first
/// warp. Lines stay: their flags grow from one invocation to the next.
__device__ inline void beginInvocation(BlockState &state, const ImageHeader &header,
                                       const RankArguments &rank, uint32_t numRanks,
                                       uint64_t controlsStride, uint32_t number) {
  uint32_t lane = threadIdx.x, self = header.program.rank;
  __syncwarp(); // the previous invocation's addresses are no longer in use
  if (lane < numRanks)
    state.places[arenaPlace(lane)] = inRing(rank.arenas[lane], rank.arenaStrides[lane], number);
  if (lane == 0)
    state.invocation.flagBase = number * header.program.flagsPerInvocation;
  char *later = inRing(rank.arenas[self], rank.arenaStrides[self], number + 2);
  const uint64_t *controls = rank.controls + blockIdx.x * controlsStride;
  for (uint32_t i = lane; i < controls[0]; i += kControlThreads)
    *reinterpret_cast<uint64_t *>(later + controls[1 + i]) = 0;
  __syncwarp();
}

/// Begins an invocation of a direct program; `isFirst` of this kernel. False: gave up, and reported
/// it.
template <class Target>
__device__ bool beginDirect(BlockState &state, const ImageHeader &header, const RankArguments &rank,
                            const LoopArguments &arguments, Target &target, uint32_t number,
                            bool isFirst) {
  uint32_t lane = threadIdx.x, self = header.program.rank;
  BlockReport &outcome = rank.reports[blockIdx.x];
  __syncwarp(); // the previous invocation's numbers are no longer in use
  if (lane == 0)
    state.invocation.wordBase = uint64_t(number) << 20; // no invocation has as large words
  uint64_t ended = uint64_t(number) * gridDim.x;
  auto rankEnded = [&] { return lane != self || target.acquire(rank.ended) >= ended; };
  if (!isFirst && !waitInWarp(rankEnded, Patience(arguments.patience), outcome, self, number))
    return false;
  bool hasPeer = lane < arguments.numRanks && lane != self;
  if (hasPeer)
    target.release(begunWord(rank.begun[lane], blockIdx.x, self), number + 1);
  const uint64_t *own = begunWord(rank.begun[self], blockIdx.x, lane);
  auto peersBegun = [&] { return !hasPeer || target.acquire(own) > number; };
  bool begun = waitInWarp(peersBegun, Patience(arguments.patience), outcome, self, number);
  __syncwarp();
  return begun;
}

/// One thread, once for each invocation.
__device__ inline void endDirect(const RankArguments &rank) {
  asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(rank.ended) : "memory");
}

/// All invocations. The first warp.
template <template <class> class Runner, class Target>
__device__ __forceinline__ void control(BlockState &state, const ImageHeader &header, char *tables,
                                        const LoopArguments &arguments, Target &target) {
  const RankArguments &rank = arguments.ranks[blockIdx.y];
  BlockReport &outcome = rank.reports[blockIdx.x];
  uint64_t begin = 0;
  uint32_t first = arguments.isDirect ? rank.ordinals[blockIdx.x] : arguments.firstInvocation;
  beginBlock(state, header, rank, arguments);
  Runner<Target> runner(state, header, tables, target);
  for (uint32_t i = 0; i < arguments.invocations; ++i) {
    if (i == arguments.warmUp) {
      begin = deviceClock();
      if constexpr (requires { target.restart(); })
        target.restart();
    }
    uint32_t number = first + i;
    if (!arguments.isDirect)
      beginInvocation(state, header, rank, arguments.numRanks, arguments.controlsStride, number);
    else if (!beginDirect(state, header, rank, arguments, target, number, i == 0))
      return;
    runner.restart();
    if (!finishInvocation(runner, Patience(arguments.patience), outcome, header.program.rank,
                          number))
      return;
    if (arguments.isDirect && threadIdx.x == 0)
      endDirect(rank);
  }
  if (arguments.isDirect && threadIdx.x == 0)
    rank.ordinals[blockIdx.x] = first + arguments.invocations;
  if constexpr (requires { target.measured(); })
    if (threadIdx.x == arguments.observer && blockIdx.x == 0)
      *rank.account = target.measured();
  if (threadIdx.x == 0)
    report(
        outcome,
        {BlockReport::Finished, 0, {}, {}, header.program.rank, blockIdx.x, deviceClock() - begin});
}

template <class Target>
__device__ __noinline__ void controlApart(BlockState &state, const ImageHeader &header,
                                          char *tables, const LoopArguments &arguments) {
  Target target(state.team);
  control<StepRunner>(state, header, tables, arguments, target);
}

template <class Target>
__global__ void __launch_bounds__(kThreads)
    interpretLoop(const __grid_constant__ LoopArguments arguments) {
  __shared__ alignas(16) char tables[kTableBytes];
  __shared__ BlockState state;
  const char *image = arguments.ranks[blockIdx.y].images + blockIdx.x * arguments.imageStride;
  const ImageHeader &header = loadImage<ByOthers>(image, arguments.imageStride, tables);
  if (threadIdx.x >= kControlThreads)
    return Target::serve(state.team);
  Target target(state.team);
  if (!header.isPerStep)
    control<TileRunner>(state, header, tables, arguments, target);
  else
    controlApart<Target>(state, header, tables, arguments);
  target.dismiss();
}

template <class Target>
int launch(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks, void *stream) {
  interpretLoop<Target>
      <<<dim3(blocks, localRanks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(arguments);
  return cudaGetLastError();
}

} // namespace occl::bench
