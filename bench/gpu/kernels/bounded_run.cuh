// Waits of the slice's kernels, which give up at their bound and say where they stand.
#pragma once

#include "bench/gpu/kernels/kernel_arguments.h"
#include "bench/gpu/kernels/patience.cuh"
#include "runtime/cuda/kernels/block_run.cuh"

#include <cstdint>

namespace occl::bench {

using namespace interpreter;

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
template <class Runner>
__device__ bool finishInvocation(Runner &runner, Patience patience, BlockReport &to, uint32_t rank,
                                 uint32_t number) {
  BlockContext context;
  for (;;) {
    StepResult result = runner.run(context, ~0u);
    if (result.status == StepStatus::Finished)
      return true;
    if (result.slices != 0)
      patience.progressed();
    if (!patience.isExhausted([](bool late) { return __any_sync(~0u, late) != 0; }))
      continue;
    if (result.obstacle.reason != BlockReason::None)
      report(to, {BlockReport::GaveUp, number, context, result.obstacle, rank, blockIdx.x, 0});
    return false;
  }
}

} // namespace occl::bench
