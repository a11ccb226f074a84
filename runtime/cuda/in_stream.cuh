// The kernel of in-stream execution.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/block_run.cuh"
#include "runtime/cuda/in_stream_begin.cuh"
#include "runtime/cuda/in_stream_kernels.h"

#include <cstdint>

namespace occl::cuda {

/// Meets the other ranks and makes `state` that of the invocation. False: leave.
__device__ inline bool begin(BlockState &state, const InStreamArguments &arguments,
                             const ImageHeader &header, uint64_t number, const PeerWords &early) {
  const DeviceCollective &collective = arguments.collective;
  if (blockIdx.x == 0)
    announceBegin<Telling::Relaxed>(collective, number, arguments.buffers);
  letLaterWorkStart();
  if (threadIdx.x == 0) {
    Invocation invocation;
    invocation.program = &header.program;
    invocation.places = state.places;
    invocation.firstTile = number / collective.ring * collective.numTiles;
    state.invocation = invocation;
  }
  PeerBegin peer;
  if (!awaitPeers(arguments, number, early, peer))
    return false;
  setPlaces(collective, number, peer, arguments.buffers, state.places);
  __syncwarp();
  return true;
}

/// The invocation is over on this thread block: the next one may follow. Of captured ones that is
/// known in other kernels only when this one has ended.
__device__ inline void countInvocation(const InStreamArguments &arguments, uint64_t number) {
  uint64_t *next = arguments.collective.ordinals + blockIdx.x;
  if (arguments.number == kAnyNumber)
    storeWord(next, number + 1);
  else
    releaseWord(next, number + 1);
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
    if (mustLeave(arguments.bound, watch, stuck))
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
  PeerWords early;
  if (threadIdx.x < kControlThreads)
    early = loadPeer(collective);
  const ImageHeader &header =
      loadImage(collective.images + uint64_t(blockIdx.x) * collective.imageStride,
                collective.imageStride, tables);
  awaitEarlierWork();
  if (threadIdx.x >= kControlThreads)
    return Target::serve(state.team);
  Target target(state.team);
  uint64_t number;
  if (takeNumber(arguments, number) && begin(state, arguments, header, number, early) &&
      finishAny(state, header, tables, arguments, target, number) && threadIdx.x == 0)
    countInvocation(arguments, number);
  target.dismiss();
}

template <class Target>
int launchInterpreter(const InStreamArguments &arguments, const Launch &launch) {
  return launchKernel(interpretInStream<Target>, kThreads, arguments, launch);
}

} // namespace occl::cuda
