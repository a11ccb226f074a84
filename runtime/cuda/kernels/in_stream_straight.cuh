// The kernel of in-stream execution for straight blocks (runtime/exec/step/straight.h). Workers,
// all warps but the last one, take their units through the steps. The last one is the clerk, who
// does what nobody here waits for: tells the other ranks that the invocation has begun, lets the
// stream's next kernel start, and counts the invocation when it is over.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/in_stream_begin.cuh"
#include "runtime/cuda/kernels/in_stream_end.cuh"
#include "runtime/cuda/kernels/in_stream_kernels.h"
#include "runtime/exec/cuda/block_vote.cuh"
#include "runtime/exec/cuda/straight_cuda.cuh"

#include <cstdint>

namespace occl::cuda {

using namespace interpreter;

static_assert(kDeviceLines.wideLineBytes == 128);

struct StraightShared {
  alignas(16) char tables[kMaxStraightSteps * sizeof(StraightStep) +
                          kMaxStraightPieces * sizeof(StraightPiece)];
  ReadyWord words[kMaxStraightOperands]; // by operand
  uint64_t number;
  uint32_t isDone; // the workers have taken all steps, or leave
};

/// Whether `ok` of all workers; the first `numWorkers` threads.
__device__ inline bool meetWorkers(uint32_t numWorkers, bool ok) {
  uint32_t all;
  asm volatile("{ .reg .pred in, out; setp.ne.u32 in, %1, 0; barrier.red.and.pred out, 1, %2, in; "
               "selp.u32 %0, 1, 0, out; }"
               : "=r"(all)
               : "r"(static_cast<uint32_t>(ok)), "r"(numWorkers)
               : "memory");
  return all != 0;
}

__device__ inline char *fromLane(char *value, uint32_t lane) {
  return reinterpret_cast<char *>(
      __shfl_sync(~0u, reinterpret_cast<unsigned long long>(value), static_cast<int>(lane)));
}

/// Steps and pieces, by all workers.
__device__ __forceinline__ void loadTables(StraightShared &shared, const StraightImages &layout,
                                           const char *image, uint32_t numWorkers) {
  for (uint32_t i = threadIdx.x; i < layout.operandsAt / 16; i += numWorkers)
    reinterpret_cast<uint4 *>(shared.tables)[i] = reinterpret_cast<const uint4 *>(image)[i];
}

/// What a lane makes an address of, and what the rank of its number has said.
struct Making {
  StraightOperand operand;
  PeerWords early;
};
__device__ __forceinline__ Making loadMaking(const DeviceCollective &collective,
                                             const char *image) {
  Making making;
  making.operand.place = kNoPlace;
  if (threadIdx.x < collective.straight.maxOperands)
    making.operand = reinterpret_cast<const StraightOperand *>(
        image + collective.straight.operandsAt)[threadIdx.x];
  making.early = loadPeer(collective);
  return making;
}

/// Meets the other ranks, and makes addresses and flags of the operands, a lane each. Whole warps.
/// False: leave.
__device__ __forceinline__ bool
makeWords(StraightShared &shared, const InStreamArguments &arguments, const Making &making) {
  const DeviceCollective &collective = arguments.collective;
  const StraightOperand &operand = making.operand;
  const uint32_t lane = laneOfWarp();
  uint64_t number = 0;
  PeerBegin peer;
  const WaitBound &bound = arguments.bound;
  if (takeNumber(collective, arguments.number, bound, number) != Verdict::GoOn ||
      awaitPeers(collective, bound, number, making.early, peer) != Verdict::GoOn)
    return false;
  if (threadIdx.x == 0)
    shared.number = number;
  const uint64_t flagBase = operand.isLines() ? collective.flagBaseOf(number) : 0;
  const uint32_t r = lane < collective.numRanks ? lane : 0;
  char *blocks = collective.arenas[r] + peer.where;
  char *block = blocks + collective.blockOf(number) * collective.ringStrides[r];
  char *scratch = fromLane(blocks, collective.rank) + collective.ringBytes[collective.rank];
  char *base = fromLane(block, operand.isLines() ? operand.rank() : 0);
  if (!operand.isLines())
    base = operand.place == 2 ? scratch : arguments.buffers[operand.place == 1];
  if (operand.place != kNoPlace)
    shared.words[threadIdx.x] = {base + operand.offsetAfter(0), operand.flagAfter(0) + flagBase};
  return true;
}

/// Takes this warp's units through all steps. False: leave.
template <class Fold, bool kWide>
__device__ __forceinline__ bool takeSteps(const StraightShared &shared,
                                          const InStreamArguments &arguments, const char *image,
                                          uint32_t numWorkers) {
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
    auto mayWait = [&](uint32_t missing) {
      if (!watch.isDue())
        return true;
      Obstacle obstacle;
      if (missing != ~0u)
        obstacle = reinterpret_cast<const Obstacle *>(image + layout.obstaclesAt)[missing];
      Verdict verdict = watch.look(missing != ~0u ? obstacle.peer : ~0u);
      if (verdict == Verdict::Late && missing != ~0u)
        giveUp(arguments.bound, {0,
                                 arguments.bound.place,
                                 shared.number,
                                 {0, step.instruction, 0},
                                 obstacle,
                                 blockIdx.x,
                                 0});
      return verdict == Verdict::GoOn;
    };
    ok = interpreter::cuda::takeStep<Fold, kWide>(
        {step, pieces, shared.words, collective.type, collective.op}, threadIdx.x, numWorkers,
        mayWait);
  }
  return ok;
}

/// The last warp: looks what the others call, until they all have begun this invocation or the
/// workers are done. Who begins it later looks at what this rank has said.
__device__ __noinline__ inline bool
watchPeers(const StraightShared &shared, const InStreamArguments &arguments, uint64_t number) {
  const DeviceCollective &collective = arguments.collective;
  for (;;) {
    const bool isDone =
        __all_sync(~0u, *static_cast<const volatile uint32_t *>(&shared.isDone) != 0);
    const Said said = whatPeerCalls(collective, number);
    if (__any_sync(~0u, said == Said::Another))
      return refuseOthers(said, arguments.bound, number) == Verdict::GoOn;
    if (isDone || __all_sync(~0u, said != Said::Nothing))
      return true;
  }
}

/// The last warp. Nobody of this invocation waits for it, so
/// it can afford to fence: what it tells the others is with them before the invocation counts as
/// over, which of captured ones only the end of the kernel says.
__device__ inline void runClerk(const StraightShared &shared, const InStreamArguments &arguments) {
  const DeviceCollective &collective = arguments.collective;
  uint64_t number = 0;
  bool ok = claimNumber(collective, arguments.number, arguments.bound, number) == Verdict::GoOn;
  if (ok && blockIdx.x == 0)
    tellBegin(arguments, number, arguments.buffers);
  letLaterWorkStart();
  if (blockIdx.x == 0 && arguments.number != kAnyNumber)
    fenceSystem();
  if (ok && blockIdx.x == 0)
    ok = watchPeers(shared, arguments, number);
  ok = interpreter::cuda::allOfBlock(ok);
  if (!ok || laneOfWarp() != 0)
    return;
  if (arguments.number == kAnyNumber && shared.number != number)
    // The workers have looked while another call had it, which has ended since.
    refuseReplay(collective, arguments.bound, number);
  else
    storeWord(collective.ordinals + blockIdx.x, number + 1);
}

template <class Fold, bool kWide>
__global__ void __launch_bounds__(kThreads)
    takeStraight(const __grid_constant__ InStreamArguments arguments) {
  __shared__ StraightShared shared;
  const StraightImages &layout = arguments.collective.straight;
  const uint32_t numWorkers = blockDim.x - 32;
  if (threadIdx.x >= numWorkers) {
    awaitEarlierWork();
    runClerk(shared, arguments);
    return;
  }
  if (threadIdx.x == 0)
    *static_cast<volatile uint32_t *>(&shared.isDone) = 0;
  const char *image = layout.images + uint64_t(blockIdx.x) * layout.stride;
  loadTables(shared, layout, image, numWorkers);
  bool ok = true;
  if (threadIdx.x / 32 * 32 < layout.maxOperands) {
    const Making making = loadMaking(arguments.collective, image);
    awaitEarlierWork();
    ok = makeWords(shared, arguments, making);
  } else {
    awaitEarlierWork();
  }
  ok = meetWorkers(numWorkers, ok) && takeSteps<Fold, kWide>(shared, arguments, image, numWorkers);
  if (threadIdx.x == 0)
    *static_cast<volatile uint32_t *>(&shared.isDone) = 1;
  interpreter::cuda::allOfBlock(ok);
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
