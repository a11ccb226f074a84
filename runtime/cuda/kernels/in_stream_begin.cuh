// How in-stream kernels begin, in the order of their stream.
//
// A kernel may be started while the work before it in the stream still runs (programmatic dependent
// launch), on devices of compute capability 9.0 and later. Until awaitEarlierWork() it looks at
// nothing but its own tables, which no kernel writes, and at words of the other ranks that only
// grow, and it stores to nobody.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/begin.cuh"
#include "runtime/cuda/kernels/bound.cuh"
#include "runtime/cuda/kernels/in_stream.h"
#include "runtime/cuda/tables/replay_word.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace occl::cuda {

/// Until all earlier work of the stream is over and its stores are seen. Each thread that relies on
/// it, or one that it meets afterwards.
__device__ inline void awaitEarlierWork() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/// What follows in the stream may be started now; it will wait as above. A thread of each block.
__device__ inline void letLaterWorkStart() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// The number of the invocation in `number`. Given one, it is this one's once all thread blocks of
/// this rank have finished those before, which may be in other streams. All lanes of a warp, after
/// awaitEarlierWork(). GoOn: it is taken.
__device__ inline Verdict takeNumber(const DeviceCollective &collective, uint64_t given,
                                     const WaitBound &bound, uint64_t &number,
                                     bool mayLeave = true) {
  if (given == kAnyNumber) {
    number = replayNumber(loadWord(collective.ordinals + blockIdx.x));
    return Verdict::GoOn;
  }
  // Wait for the thread blocks of the calls before, some to a lane.
  number = given;
  WarpWatch watch(bound, mayLeave);
  for (;;) {
    bool isReached = true;
    for (uint32_t b = laneOfWarp(); b < collective.numOrdinals; b += 32)
      isReached &= acquireWord(collective.ordinals + b) >= number;
    if (__all_sync(~0u, isReached)) {
      __syncwarp(); // what a lane has acquired is before what others store
      return Verdict::GoOn;
    }
    GivingUp stuck{0, bound.place, number, {}, {}, blockIdx.x, 1};
    stuck.obstacle = {interpreter::BlockReason::Announce, 2, collective.rank};
    if (Verdict verdict = afterVainPoll(bound, watch, stuck); verdict != Verdict::GoOn)
      return verdict;
  }
}

/// One thread: the call ends here, and the communicator with it, since rank `peer` has made another
/// one.
__device__ __noinline__ inline void refuseOther(const WaitBound &bound, uint64_t number,
                                                uint32_t peer) {
  GivingUp where{0, bound.place, number, {}, {}, blockIdx.x, 1};
  where.obstacle = {interpreter::BlockReason::Announce, kOtherCall, peer};
  giveUp(bound, where);
}

/// One thread: the replay ends here, and the communicator with it.
__device__ __noinline__ inline void refuseReplay(const DeviceCollective &collective,
                                                 const WaitBound &bound, uint64_t number) {
  GivingUp where{0, bound.place, number, {}, {}, blockIdx.x, 1};
  where.obstacle = {interpreter::BlockReason::Announce, kTwoReplays, collective.rank};
  giveUp(bound, where);
}

/// As takeNumber(), by one warp of the thread block; of a captured call it has it to itself from
/// then on, until it is counted. Late: another replay of the call has it.
__device__ inline Verdict claimNumber(const DeviceCollective &collective, uint64_t given,
                                      const WaitBound &bound, uint64_t &number,
                                      bool mayLeave = true) {
  if (given != kAnyNumber)
    return takeNumber(collective, given, bound, number, mayLeave);
  // One bit says that a replay has the number: a second one at a time finds it set.
  uint64_t word = 0;
  if (laneOfWarp() == 0)
    word = atomicOr(reinterpret_cast<unsigned long long *>(collective.ordinals + blockIdx.x),
                    kReplaying);
  word = __shfl_sync(~0u, word, 0);
  number = replayNumber(word);
  if (!isReplaying(word))
    return Verdict::GoOn;
  if (laneOfWarp() == 0)
    refuseReplay(collective, bound, number);
  return Verdict::Late;
}

/// The thread blocks that this call does not have have done their part of it. One warp of the rank.
__device__ inline void countAbsentBlocks(const DeviceCollective &collective, uint64_t number) {
  for (uint32_t b = collective.numBlocks + laneOfWarp(); b < kOrderedOrdinals; b += 32)
    storeWord(collective.ordinals + b, number + 1);
}

/// For whoever moves what this rank stores to other machines, where the rank's record of itself has
/// a signature of others. By all lanes of a warp.
__device__ inline void sayWhichShape(const DeviceCollective &collective, const WaitBound &bound,
                                     uint64_t number) {
  if (laneOfWarp() == collective.rank)
    storeWord(&recordIn(collective.arenas[collective.rank], collective.slot, collective.rank)
                   ->signatures[collective.turnOf(number)],
              signatureWord(number, static_cast<uint16_t>(bound.place)));
}

/// Tells the others that this rank has begun the invocation. One warp of the rank: as lines may
/// have to be cleared before, only that of thread block 0 ever does.
__device__ inline void tellBegin(const InStreamArguments &arguments, uint64_t number,
                                 char *const buffers[2]) {
  const DeviceCollective &collective = arguments.collective;
  if (number != 0 && collective.clearsLines(number - 1))
    clearLines(collective, number);
  sayWhichShape(collective, arguments.bound, number);
  announceBegin<Telling::Relaxed>(collective, number, buffers);
  countAbsentBlocks(collective, number);
}

/// By all lanes of a warp: some rank calls something else.
__device__ __noinline__ inline Verdict refuseOthers(Said said, const WaitBound &bound,
                                                    uint64_t number) {
  const uint32_t others = __ballot_sync(~0u, said == Said::Another);
  if (laneOfWarp() == 0)
    refuseOther(bound, number, static_cast<uint32_t>(__ffs(static_cast<int>(others)) - 1));
  return Verdict::Late;
}

/// By all lanes of a warp, once this rank has told the others what it calls. Of two ranks that do
/// so one at least sees the other's word: the one that is later.
__device__ inline Verdict comparePeers(const DeviceCollective &collective, const WaitBound &bound,
                                       uint64_t number) {
  fenceSequential();
  const Said said = whatPeerCalls(collective, number);
  return __any_sync(~0u, said == Said::Another) ? refuseOthers(said, bound, number) : Verdict::GoOn;
}

/// Waits until all ranks let invocation `number` begin here; `words`: of an earlier look. All lanes
/// of a warp, a rank each. GoOn: they do.
__device__ inline Verdict awaitPeers(const DeviceCollective &collective, const WaitBound &bound,
                                     uint64_t number, PeerWords words, PeerBegin &peer) {
  WarpWatch watch(bound);
  for (bool isAcquired = false;; words = loadPeerAcquiring(collective, number), isAcquired = true) {
    peer = judgePeer(collective, number, words);
    // Who may be ahead has a clerk that looks, or looks once it is here (comparePeers).
    const Said said = collective.lead == 1 ? whatPeerCalls(collective, number) : Said::TheSame;
    if (__any_sync(~0u, said == Said::Another))
      return refuseOthers(said, bound, number);
    // Who has begun has said what, but that may be seen later.
    peer.isReady &= collective.lead != 1 || said != Said::Nothing;
    if (__all_sync(~0u, peer.isReady)) {
      if (!isAcquired)
        acquireBuffers(collective, number);
      return Verdict::GoOn;
    }
    GivingUp stuck{0, bound.place, number, {}, {}, blockIdx.x, 1};
    if (!peer.isReady)
      stuck.obstacle = {interpreter::BlockReason::Announce, peer.isRegistered ? 1u : 0u,
                        laneOfWarp()};
    if (Verdict verdict = afterVainPoll(bound, watch, stuck); verdict != Verdict::GoOn)
      return verdict;
  }
}

} // namespace occl::cuda
