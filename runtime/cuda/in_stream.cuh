// The kernel of in-stream execution. A thread block that has waited for long leaves its steps to
// another one: see in_stream_adopt.cuh.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/block_run.cuh"
#include "runtime/cuda/in_stream_adopt.cuh"
#include "runtime/cuda/in_stream_begin.cuh"
#include "runtime/cuda/in_stream_kernels.h"

#include <cstdint>

namespace occl::cuda {

/// Steps to the end, or as far as they go.
template <template <class> class Runner, class Target>
__device__ __forceinline__ Standing finish(const BlockState &state, const ImageHeader &header,
                                           char *tables, const InStreamArguments &arguments,
                                           Target &target, uint64_t number) {
  Runner<Target> runner(state, header, tables, target);
  BlockContext context;
  WarpWatch watch(arguments.bound);
  for (;;) {
    StepResult result = runner.run(context, ~0u);
    if (result.status == StepStatus::Finished)
      return {Verdict::GoOn, context};
    if (result.slices != 0)
      watch.progressed();
    GivingUp stuck{0, arguments.collective.slot, number, context, result.obstacle, blockIdx.x, 0};
    Verdict verdict = afterVainPoll(arguments.bound, watch, stuck);
    if (verdict != Verdict::GoOn)
      return {verdict, context};
  }
}

/// The same for a block whose steps cannot be made ready.
template <class Target>
__device__ __noinline__ Standing finishApart(const BlockState &state, const ImageHeader &header,
                                             char *tables, const InStreamArguments &arguments,
                                             Target target, uint64_t number) {
  return finish<StepRunner>(state, header, tables, arguments, target, number);
}

template <class Target>
__device__ __forceinline__ Standing finishAny(const BlockState &state, const ImageHeader &header,
                                              char *tables, const InStreamArguments &arguments,
                                              Target &target, uint64_t number) {
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
  uint64_t number = arguments.number;
  Standing standing = {takeNumber(arguments, arguments.bound, number), {}};
  if (standing.verdict == Verdict::GoOn) {
    if (blockIdx.x == 0)
      announceBegin<Telling::Relaxed>(collective, number, arguments.buffers);
    letLaterWorkStart();
    standing.verdict = begin(state, arguments, arguments.bound, header, number, early);
  }
  if (standing.verdict == Verdict::GoOn)
    standing = finishAny(state, header, tables, arguments, target, number);
  if (standing.verdict == Verdict::GoOn && threadIdx.x == 0)
    countInvocation(arguments, number, blockIdx.x);
  if (standing.verdict == Verdict::Leave)
    leaveOrAdopt(state, tables, arguments, target, number, standing.context);
  target.dismiss();
}

template <class Target>
int launchInterpreter(const InStreamArguments &arguments, const Launch &launch) {
  return launchKernel(interpretInStream<Target>, kThreads, arguments, launch);
}

} // namespace occl::cuda
