// The kernel of in-stream execution.
#pragma once

#include "runtime/cuda/begin.cuh"
#include "runtime/cuda/block_run.cuh"
#include "runtime/cuda/bound.cuh"
#include "runtime/cuda/in_stream.h"

#include <cstdint>

namespace occl::cuda {

/// True: leave. All lanes; the lane of `stuck` says where.
__device__ inline bool mustLeave(const InStreamArguments &arguments, WarpWatch &watch,
                                 const GivingUp &stuck) {
  bool isStuck = stuck.obstacle.reason != BlockReason::None;
  Verdict verdict = watch.inVain(isStuck ? stuck.obstacle.peer : ~0u);
  if (verdict == Verdict::Late && isStuck)
    giveUp(arguments.bound, stuck);
  return verdict != Verdict::Wait;
}

/// What the first warp looks at while the image is loaded. Nothing that earlier invocations stored
/// relies on the number: so nobody acquires it.
struct EarlyWords {
  uint64_t number = 0;
  PeerWords peer;
};

__device__ inline EarlyWords lookEarly(const DeviceCollective &collective) {
  if (threadIdx.x >= kControlThreads)
    return {};
  uint64_t number = loadWord(collective.ordinals + blockIdx.x);
  return {number, loadPeer(collective)};
}

/// `number` is the next invocation's: once all thread blocks of this rank have finished those
/// before this one, which may be in other streams, it is this one's. False: leave.
__device__ inline bool takeNumber(const InStreamArguments &arguments, uint64_t &number) {
  const DeviceCollective &collective = arguments.collective;
  if (arguments.number == kAnyNumber)
    return true;
  number = arguments.number;
  WarpWatch watch(arguments.bound);
  for (;;) {
    bool isReached = true;
    for (uint32_t b = threadIdx.x; b < collective.numBlocks; b += kControlThreads)
      isReached &= acquireWord(collective.ordinals + b) >= number;
    if (__all_sync(~0u, isReached))
      return true;
    GivingUp stuck{0, collective.slot, number, {}, {}, blockIdx.x, 1};
    stuck.obstacle = {BlockReason::Announce, 2, collective.rank};
    if (mustLeave(arguments, watch, stuck))
      return false;
  }
}

/// Meets the other ranks and makes `state` that of the invocation. False: leave.
__device__ inline bool begin(BlockState &state, const InStreamArguments &arguments,
                             const ImageHeader &header, uint64_t number, PeerWords words) {
  const DeviceCollective &collective = arguments.collective;
  if (blockIdx.x == 0)
    announceBegin(collective, number, arguments.buffers);
  if (threadIdx.x == 0) {
    Invocation invocation;
    invocation.program = &header.program;
    invocation.places = state.places;
    invocation.firstTile = number / collective.ring * collective.numTiles;
    state.invocation = invocation;
  }
  WarpWatch watch(arguments.bound);
  for (;; words = loadPeer(collective)) {
    PeerBegin peer = judgePeer(collective, number, words);
    if (__all_sync(~0u, peer.isReady)) {
      setPlaces(collective, number, peer, arguments.buffers, state.places);
      __syncwarp();
      return true;
    }
    GivingUp stuck{0, collective.slot, number, {}, {}, blockIdx.x, 1};
    if (!peer.isReady)
      stuck.obstacle = {BlockReason::Announce, peer.isRegistered ? 1u : 0u, threadIdx.x};
    if (mustLeave(arguments, watch, stuck))
      return false;
  }
}

/// Steps to the end. False: leave.
template <template <class> class Runner, class Target>
__device__ __forceinline__ bool finish(const BlockState &state, const ImageHeader &header,
                                       char *tables, const InStreamArguments &arguments,
                                       Target &target, uint64_t number) {
  Runner<Target> runner(state, header, tables, target);
  BlockContext context;
  WarpWatch watch(arguments.bound);
  for (;;) {
    StepResult result = runner.run(context, ~0u);
    if (result.status == StepStatus::Finished)
      return true;
    GivingUp stuck{0, arguments.collective.slot, number, context, result.obstacle, blockIdx.x, 0};
    if (mustLeave(arguments, watch, stuck))
      return false;
  }
}

/// The same for a block whose steps cannot be made ready.
template <class Target>
__device__ __noinline__ bool finishApart(const BlockState &state, const ImageHeader &header,
                                         char *tables, const InStreamArguments &arguments,
                                         Target target, uint64_t number) {
  return finish<StepRunner>(state, header, tables, arguments, target, number);
}

template <class Target>
__device__ bool finishAny(const BlockState &state, const ImageHeader &header, char *tables,
                          const InStreamArguments &arguments, Target &target, uint64_t number) {
  if (header.isReady)
    return finish<ReadyRunner>(state, header, tables, arguments, target, number);
  else
    return finishApart(state, header, tables, arguments, target, number);
}

template <class Target>
__global__ void __launch_bounds__(kThreads)
    interpretInStream(const __grid_constant__ InStreamArguments arguments) {
  __shared__ alignas(16) char tables[kTableBytes];
  __shared__ BlockState state;
  const DeviceCollective &collective = arguments.collective;
  const EarlyWords early = lookEarly(collective);
  const ImageHeader &header =
      loadImage(collective.images + uint64_t(blockIdx.x) * collective.imageStride,
                collective.imageStride, tables);
  if (threadIdx.x >= kControlThreads)
    return Target::serve(state.team);
  Target target(state.team);
  uint64_t number = early.number;
  if (takeNumber(arguments, number) && begin(state, arguments, header, number, early.peer) &&
      finishAny(state, header, tables, arguments, target, number) && threadIdx.x == 0)
    releaseWord(collective.ordinals + blockIdx.x, number + 1);
  target.dismiss();
}

template <class Target> int launchInStream(const InStreamArguments &arguments, void *stream) {
  cudaFuncAttributes attributes;
  if (arguments.collective.numBlocks == 0)
    return cudaFuncGetAttributes(&attributes, interpretInStream<Target>);
  interpretInStream<Target>
      <<<arguments.collective.numBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
          arguments);
  return cudaGetLastError();
}

} // namespace occl::cuda
