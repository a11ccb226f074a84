// The kernel of in-stream execution for straight blocks (runtime/exec/step/straight.h). Workers,
// all warps but the last one, take their units through the steps. The last one is the clerk, who
// does what nobody here waits for: tells the other ranks that the invocation has begun, lets the
// stream's next kernel start, and counts the invocation when it is over. A thread block that has
// waited for long makes way: see in_stream_straight_adopt.cuh.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/in_stream_begin.cuh"
#include "runtime/cuda/kernels/in_stream_end.cuh"
#include "runtime/cuda/kernels/in_stream_kernels.h"
#include "runtime/cuda/kernels/in_stream_straight_adopt.cuh"
#include "runtime/cuda/kernels/straight_block.cuh"
#include "runtime/exec/cuda/block_vote.cuh"
#include "runtime/exec/cuda/straight_cuda.cuh"

#include <cstdint>

namespace occl::cuda {

using namespace interpreter;

/// What a lane makes an address of, and what the rank of its number has said.
struct Making {
  StraightOperand operand;
  PeerWords early;
};
__device__ __forceinline__ Making loadMaking(const DeviceCollective &collective,
                                             const char *image) {
  return {loadOperand(collective.straight, image), loadPeer(collective)};
}

/// Meets the other ranks, and makes addresses and flags of the operands, a lane each. Whole warps.
/// False: leave.
__device__ __forceinline__ bool
makeWords(StraightShared &shared, const InStreamArguments &arguments, const Making &making) {
  const DeviceCollective &collective = arguments.collective;
  uint64_t number = 0;
  PeerBegin peer;
  const WaitBound &bound = arguments.bound;
  Verdict verdict = takeNumber(collective, arguments.number, bound, number);
  if (threadIdx.x == 0)
    shared.number = number;
  if (verdict == Verdict::GoOn)
    verdict = awaitPeers(collective, bound, number, making.early, peer);
  if (verdict != Verdict::GoOn)
    return stop(shared, verdict);
  makeWord(shared, arguments, making.operand, number, peer.where);
  return true;
}

/// Takes this warp's units through all steps. False: leave.
template <class Fold, bool kWide>
__device__ __forceinline__ bool takeSteps(StraightShared &shared,
                                          const InStreamArguments &arguments, uint32_t numWorkers) {
  const DeviceCollective &collective = arguments.collective;
  const StraightImages &layout = collective.straight;
  const auto *steps = reinterpret_cast<const StraightStep *>(shared.tables);
  const auto *pieces = reinterpret_cast<const StraightPiece *>(shared.tables + layout.piecesAt);
  WarpWatch watch(arguments.bound);
  bool ok = true;
  for (uint32_t s = 0; s < layout.maxSteps; ++s) {
    const StraightStep step = steps[s];
    if (step.numPieces == 0)
      break;
    // What one step stores in this rank's buffers another one may load, or the other way round.
    if (s != 0 && !meetWorkers(numWorkers, ok))
      return false;
    auto mayWait = [&](uint32_t missing, uint32_t first) {
      if (!watch.isDue())
        return true;
      Obstacle obstacle;
      if (missing != ~0u)
        obstacle = reinterpret_cast<const Obstacle *>(imageOf(layout, blockIdx.x) +
                                                      layout.obstaclesAt)[missing];
      Verdict verdict = watch.look(missing != ~0u ? obstacle.peer : ~0u);
      if (verdict == Verdict::Late && missing != ~0u)
        giveUp(arguments.bound, {0,
                                 arguments.bound.place,
                                 shared.number,
                                 {0, step.instruction, 0},
                                 obstacle,
                                 blockIdx.x,
                                 0});
      return verdict == Verdict::GoOn || stopIn(shared, verdict, s, first);
    };
    ok = interpreter::cuda::takeStep<Fold, kWide>(
        {step, pieces, shared.words, collective.type, collective.op}, threadIdx.x, numWorkers,
        mayWait);
  }
  return ok;
}

/// The last warp; whether the workers are done, too. Nobody of this invocation waits for it, so it
/// can afford to fence: what it tells the others is with them before the invocation counts as over,
/// which of captured ones only the end of the kernel says.
__device__ inline bool runClerk(StraightShared &shared, const InStreamArguments &arguments) {
  const DeviceCollective &collective = arguments.collective;
  uint64_t number = arguments.number;
  Verdict verdict = Verdict::GoOn;
  // The thread block does not leave before it has told the others, nor with a number of which
  // nobody would know.
  if (blockIdx.x == 0 || arguments.number == kAnyNumber)
    verdict = claimNumber(collective, arguments.number, arguments.bound, number, false);
  if (verdict == Verdict::GoOn && blockIdx.x == 0)
    tellBegin(arguments, number, arguments.buffers);
  letLaterWorkStart();
  if (blockIdx.x == 0 && arguments.number != kAnyNumber)
    fenceSystem();
  if (verdict == Verdict::GoOn && blockIdx.x == 0)
    verdict = watchPeers(shared, arguments, number);
  if (verdict != Verdict::GoOn)
    stop(shared, verdict);
  if (!interpreter::cuda::allOfBlock(verdict == Verdict::GoOn))
    return false;
  if (laneOfWarp() == 0 && !isOtherReplay(shared, arguments, number))
    storeWord(collective.ordinals + blockIdx.x, number + 1);
  return true;
}

template <class Fold, bool kWide>
__global__ void __launch_bounds__(kThreads)
    takeStraight(const __grid_constant__ InStreamArguments arguments) {
  __shared__ StraightShared shared;
  const StraightImages &layout = arguments.collective.straight;
  const uint32_t numWorkers = blockDim.x - 32;
  bool isOver = false;
  if (laneOfWarp() == 0)
    shared.stops[threadIdx.x / 32].verdict = Verdict::GoOn;
  // The last warp is the clerk, who meets the other ranks. The workers load tables and make words
  // before the earlier work of the stream has ended, and take the steps afterwards.
  if (threadIdx.x >= numWorkers) {
    awaitEarlierWork();
    isOver = runClerk(shared, arguments);
  } else {
    if (threadIdx.x == 0) {
      shared.begun = 0;
      *static_cast<volatile uint32_t *>(&shared.isDone) = 0;
    }
    const char *image = imageOf(layout, blockIdx.x);
    loadTables(shared, layout, image, numWorkers);
    bool ok = true;
    if (threadIdx.x / 32 * 32 < layout.maxOperands) {
      const Making making = loadMaking(arguments.collective, image);
      awaitEarlierWork();
      ok = makeWords(shared, arguments, making);
    } else {
      awaitEarlierWork();
    }
    ok = meetWorkers(numWorkers, ok) && takeSteps<Fold, kWide>(shared, arguments, numWorkers);
    if (threadIdx.x == 0)
      *static_cast<volatile uint32_t *>(&shared.isDone) = 1;
    isOver = interpreter::cuda::allOfBlock(ok);
  }
  // Stopped at a step: it makes way, or adopts the steps that others have left.
  if (!isOver)
    makeWay<Fold, kWide>(shared, arguments);
}

template <class Fold> int launchStraight(const InStreamArguments &arguments, const Launch &launch) {
  const StraightImages &layout = arguments.collective.straight;
  const uint32_t threads = layout.numThreads + 32;
  return layout.isWide ? launchKernel(takeStraight<Fold, true>, threads, arguments, launch)
                       : launchKernel(takeStraight<Fold, false>, threads, arguments, launch);
}
template <class Fold> int loadStraight() {
  int error = loadKernel<takeStraight<Fold, false>>();
  return error != cudaSuccess ? error : loadKernel<takeStraight<Fold, true>>();
}

} // namespace occl::cuda
