// The kernel of in-stream execution. A thread block that has waited for long leaves its steps to
// another one: see in_stream_adopt.cuh.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/block_run.cuh"
#include "runtime/cuda/kernels/in_stream_adopt.cuh"
#include "runtime/cuda/kernels/in_stream_begin.cuh"
#include "runtime/cuda/kernels/in_stream_end.cuh"
#include "runtime/cuda/kernels/in_stream_kernels.h"

#include <cstdint>

namespace occl::cuda {

template <class Target>
__global__ void __launch_bounds__(kThreads)
    interpretInStream(const __grid_constant__ InStreamArguments arguments) {
  __shared__ alignas(16) char tables[kTableBytes];
  __shared__ BlockState state;
  const DeviceCollective &collective = arguments.collective;
  const bool isControl = threadIdx.x < kControlThreads;
  // What other ranks wait for comes first: the others load the tables meanwhile.
  PeerWords early;
  TakenUp taken = {Verdict::GoOn, 0};
  if (isControl) {
    early = loadPeer(collective);
    taken = takeUp(arguments, arguments.bound);
  }
  const ImageHeader &header =
      loadImage<ByOthers>(collective.images + uint64_t(blockIdx.x) * collective.imageStride,
                          collective.imageStride, tables);
  if (!isControl) {
    awaitEarlierWork();
    return Target::serve(state.team);
  }
  Target target(state.team);
  Standing standing = {taken.verdict, {}};
  if (standing.verdict == Verdict::GoOn)
    standing.verdict = begin(state, arguments, arguments.bound, header, taken.number, early);
  if (standing.verdict == Verdict::GoOn)
    standing = takeStepsOf(state, tables, arguments.bound, target,
                           {blockIdx.x, arguments.bound.place, taken.number, false, {}})
                   .standing;
  __syncwarp();
  if (standing.verdict == Verdict::GoOn && threadIdx.x == 0)
    countInvocation(arguments, taken.number, blockIdx.x);
  if (standing.verdict == Verdict::Leave)
    leaveOrAdopt(state, tables, arguments, target, taken.number, standing.context);
  target.dismiss();
}

template <class Target>
int launchInterpreter(const InStreamArguments &arguments, const Launch &launch) {
  return launchKernel(interpretInStream<Target>, kThreads, arguments, launch);
}

} // namespace occl::cuda
