// One slice of one instruction as a transaction: poll everything that it needs; if anything is
// missing, leave with nothing stored; else fold, store, publish, advance. Nothing here waits, so a
// thread block can be left between any two steps and resumed by another executor.
//
// Target is HostTarget (target_host.h) or CudaTarget (target_cuda.cuh): see docs/interpreter.md for
// what a target supplies. All threads of a target's block call these functions together, each with
// its own equal copy of the context.
//
// Thread safety: one executor at a time runs a block of an invocation; handing a block over needs
// release and acquire on the saved context. Different blocks and ranks run concurrently.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/slice.h"

#include <cstdint>

namespace occl::interpreter {

struct StepResult {
  StepStatus status = StepStatus::Progressed;
  /// If Blocked (of the asking thread's operands on targets with many threads) or PeerLost.
  Obstacle obstacle;
  /// runBlock: slices done before that.
  uint32_t slices = 0;
};

namespace detail {

/// Inlined always: a call a slice is measurable where a slice takes some tens of nanoseconds.
template <bool kLines, class Target>
OCCL_INLINE StepResult stepSlice(const Invocation &invocation, uint32_t block,
                                 BlockContext &context, Target &target) {
  Slice<Target, kLines> slice(invocation, invocation.program->blocks[block], context, target);
  Obstacle obstacle = slice.poll();
  if (!target.vote(obstacle.reason == BlockReason::None))
    return {StepStatus::Blocked, obstacle, 0};
  if (StepStatus folded = slice.fold(); folded != StepStatus::Progressed)
    return {folded, slice.missing(), 0};
  target.barrier();
  slice.publish(block);
  slice.advance(context);
  return {};
}

} // namespace detail

/// Executes at most one slice. Finished if the block had nothing left: then nothing was done.
template <class Target>
OCCL_HOST_DEVICE StepResult stepBlock(const Invocation &invocation, uint32_t block,
                                      BlockContext &context, Target &target) {
  const Program &program = *invocation.program;
  const BoundBlock &bound = program.blocks[block];
  if (context.tile == program.numTiles || bound.numInstructions == 0) {
    Obstacle undrained = detail::pollDrains(invocation, bound, target);
    bool drained = target.vote(undrained.reason == BlockReason::None);
    return {drained ? StepStatus::Finished : StepStatus::Blocked, undrained, 0};
  }
  if constexpr (Target::kProtocols == Protocols::Simple)
    return detail::stepSlice<false>(invocation, block, context, target);
  else if constexpr (Target::kProtocols == Protocols::Lines)
    return detail::stepSlice<true>(invocation, block, context, target);
  else
    return program.line.bytes != 0 ? detail::stepSlice<true>(invocation, block, context, target)
                                   : detail::stepSlice<false>(invocation, block, context, target);
}

/// Steps until the block is finished or blocked, or `maxSlices` are done (then Progressed).
template <class Target>
OCCL_HOST_DEVICE StepResult runBlock(const Invocation &invocation, uint32_t block,
                                     BlockContext &context, Target &target, uint32_t maxSlices) {
  StepResult result;
  for (uint32_t slices = 0;; ++slices) {
    if (slices < maxSlices)
      result = stepBlock(invocation, block, context, target);
    if (slices == maxSlices || result.status != StepStatus::Progressed) {
      result.slices = slices;
      return result;
    }
  }
}

} // namespace occl::interpreter
