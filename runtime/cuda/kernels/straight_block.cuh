// What a straight thread block has in shared memory, and what its warps do there: for the kernel
// (in_stream_straight.cuh), and for one that has waited for long (in_stream_straight_adopt.cuh).
#pragma once

#include "runtime/cuda/kernels/in_stream_begin.cuh"
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
  uint32_t begun;  // steps, if some worker has stopped in one
  struct Stop {
    Verdict verdict;                      // GoOn: it has not stopped
    uint32_t unit;                        // in a step: the first that it has not done
  } stops[StraightRounds::kMaxWarps + 1]; // by warp
};

/// This warp stops, for what its thread block will know when it has met. Returns false.
__device__ inline bool stop(StraightShared &shared, Verdict verdict) {
  if (laneOfWarp() == 0)
    shared.stops[threadIdx.x / 32].verdict = verdict;
  return false;
}
/// The same in a step; `first`: see takeUnits().
__device__ inline bool stopIn(StraightShared &shared, Verdict verdict, uint32_t step,
                              uint32_t first) {
  shared.begun = step + 1;
  shared.stops[threadIdx.x / 32].unit = first;
  return stop(shared, verdict);
}
/// How the thread block goes on, whose warps have met.
__device__ inline Verdict verdictOf(const StraightShared &shared, uint32_t numWarps) {
  Verdict largest = Verdict::GoOn;
  for (uint32_t w = 0; w < numWarps; ++w)
    largest = largest < shared.stops[w].verdict ? shared.stops[w].verdict : largest;
  return largest;
}

/// Whether `ok` of all workers; the first `numWorkers` threads.
__device__ inline bool meetWorkers(uint32_t numWorkers, bool ok) {
  uint32_t all;
  asm volatile("{ .reg .pred in, out; setp.ne.u32 in, %1, 0; "
               "barrier.red.and.pred out, 1, %2, in; "
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

/// The tables of thread block `block`.
__device__ __forceinline__ const char *imageOf(const StraightImages &layout, uint32_t block) {
  return layout.images + uint64_t(block) * layout.stride;
}

/// Steps and pieces, by all workers.
__device__ __forceinline__ void loadTables(StraightShared &shared, const StraightImages &layout,
                                           const char *image, uint32_t numWorkers) {
  for (uint32_t i = threadIdx.x; i < layout.operandsAt / 16; i += numWorkers)
    reinterpret_cast<uint4 *>(shared.tables)[i] = reinterpret_cast<const uint4 *>(image)[i];
}

/// This thread's operand, or one without a place.
__device__ __forceinline__ StraightOperand loadOperand(const StraightImages &layout,
                                                       const char *image) {
  StraightOperand operand;
  operand.place = kNoPlace;
  if (threadIdx.x < layout.maxOperands)
    operand = reinterpret_cast<const StraightOperand *>(image + layout.operandsAt)[threadIdx.x];
  return operand;
}

/// Makes address and flag of this thread's operand. Whole warps; `where`: of each lane's rank, see
/// PeerBegin.
__device__ __forceinline__ void makeWord(StraightShared &shared, const InStreamArguments &arguments,
                                         const StraightOperand &operand, uint64_t number,
                                         uint64_t where) {
  const DeviceCollective &collective = arguments.collective;
  const uint64_t flagBase = operand.isLines() ? collective.flagBaseOf(number) : 0;
  const uint32_t r = laneOfWarp() < collective.numRanks ? laneOfWarp() : 0;
  char *blocks = collective.arenas[r] + where;
  char *block = blocks + collective.blockOffset(number, r);
  char *scratch = fromLane(blocks, collective.rank) + collective.scratchOffsets[collective.rank];
  char *base = fromLane(block, operand.isLines() ? operand.rank() : 0);
  if (!operand.isLines())
    base = operand.place == 2 ? scratch : arguments.buffers[operand.place == 1];
  if (operand.place != kNoPlace)
    shared.words[threadIdx.x] = {base + operand.offset, operand.flag + flagBase};
}

/// One warp: looks what the others call, until they all have begun this invocation or the workers
/// are done. Who begins it later looks at what this rank has said.
__device__ __noinline__ inline Verdict
watchPeers(const StraightShared &shared, const InStreamArguments &arguments, uint64_t number) {
  const DeviceCollective &collective = arguments.collective;
  for (;;) {
    const bool isDone =
        __all_sync(~0u, *static_cast<const volatile uint32_t *>(&shared.isDone) != 0);
    const Said said = whatPeerCalls(collective, number);
    if (__any_sync(~0u, said == Said::Another))
      return refuseOthers(said, arguments.bound, number);
    if (isDone || __all_sync(~0u, said != Said::Nothing))
      return Verdict::GoOn;
  }
}

/// One thread. Whether the workers of a captured call have looked while another call had the
/// number, which has ended since: then this one does.
__device__ inline bool isOtherReplay(const StraightShared &shared,
                                     const InStreamArguments &arguments, uint64_t number) {
  if (arguments.number != kAnyNumber || shared.number == number)
    return false;
  refuseReplay(arguments.collective, arguments.bound, number);
  return true;
}

} // namespace occl::cuda
