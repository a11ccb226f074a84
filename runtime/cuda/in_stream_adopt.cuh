// A thread block of an in-stream kernel that has waited for long: it leaves, or it adopts what the
// others of its invocation leave (adoption.h). All functions are called by all lanes of the first
// warp; the other warps serve on.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/adoption.h"
#include "runtime/cuda/block_run.cuh"
#include "runtime/cuda/in_stream_begin.cuh"

#include <cstdint>

namespace occl::cuda {

/// How a thread block's steps have ended (GoOn: all are done), and where it stands.
struct Standing {
  Verdict verdict;
  BlockContext context;
};

/// Meets the other ranks and makes `state` that of the invocation. GoOn: steps may begin.
__device__ inline Verdict begin(BlockState &state, const InStreamArguments &arguments,
                                const WaitBound &bound, const ImageHeader &header, uint64_t number,
                                const PeerWords &early) {
  const DeviceCollective &collective = arguments.collective;
  if (threadIdx.x == 0) {
    Invocation invocation;
    invocation.program = &header.program;
    invocation.places = state.places;
    invocation.firstTile = collective.earlierIn(number) * collective.numTiles;
    state.invocation = invocation;
  }
  PeerBegin peer;
  Verdict verdict = awaitPeers(arguments, bound, number, early, peer);
  if (verdict != Verdict::GoOn)
    return verdict;
  setPlaces(collective, number, peer, arguments.buffers, state.places);
  __syncwarp();
  return Verdict::GoOn;
}

/// The invocation is over on thread block `block`: the next one may follow. Of captured ones that
/// is known in other kernels only when this one has ended. One thread.
__device__ inline void countInvocation(const InStreamArguments &arguments, uint64_t number,
                                       uint32_t block) {
  uint64_t *next = arguments.collective.ordinals + block;
  if (arguments.number == kAnyNumber)
    storeWord(next, number + 1);
  else
    releaseWord(next, number + 1);
}

/// The word of an invocation, of which only its rank's kernels know.
class AdoptionDesk {
public:
  __device__ AdoptionDesk(const DeviceCollective &collective, uint64_t number)
      : number(number), word(collective.adoptions.word(number, collective.numBlocks)),
        left(collective.adoptions.left(number, collective.numBlocks)) {}

  /// Having left, `block` is not to be touched any more.
  __device__ Parting part(uint32_t block, const BlockContext &context) {
    uint32_t parting = 0;
    if (threadIdx.x == 0) {
      parting = static_cast<uint32_t>(tryParting());
      if (parting == static_cast<uint32_t>(Parting::Leave)) {
        left[block].context = context;
        releaseWord(&left[block].owner, number + 1);
      }
    }
    return static_cast<Parting>(__shfl_sync(~0u, parting, 0));
  }

  /// Whether thread block `block` has left, and its steps are not finished; then where it stood.
  __device__ bool hasLeft(uint32_t block, BlockContext &context) const {
    uint64_t owner = acquireWord(&left[block].owner);
    bool isHere = __all_sync(~0u, owner == number + 1);
    if (isHere)
      context = left[block].context;
    return isHere;
  }
  __device__ void save(uint32_t block, const BlockContext &context) {
    if (threadIdx.x == 0)
      left[block].context = context;
    __syncwarp();
  }
  __device__ void finish(uint32_t block) {
    if (threadIdx.x == 0)
      storeWord(&left[block].owner, 0);
    ++finished;
  }
  /// Whether the adopter has finished all that left, and is none any more.
  __device__ bool end() {
    uint32_t isFree = 0;
    if (threadIdx.x == 0) {
      uint64_t last = adoptedWord(number, finished);
      isFree = swap(last, kFreeWord) == last;
    }
    return __shfl_sync(~0u, isFree, 0) != 0;
  }

private:
  __device__ Parting tryParting() {
    uint64_t seen = loadWord(word);
    for (;;) {
      PartingOffer offer = offerParting(seen, number);
      if (offer.parting == Parting::Stay)
        return offer.parting;
      uint64_t before = swap(seen, offer.next);
      if (before == seen)
        return offer.parting;
      seen = before;
    }
  }
  __device__ uint64_t swap(uint64_t expected, uint64_t next) {
    return atomicCAS(reinterpret_cast<unsigned long long *>(word), expected, next);
  }

  const uint64_t number;
  uint64_t *const word;
  LeftBlock *const left;
  uint32_t finished = 0; // of those that left
};

/// Takes the steps of one thread block, or, as the adopter, of all that have left.
template <class Target> class Visits {
public:
  __device__ Visits(BlockState &state, char *tables, const InStreamArguments &arguments,
                    Target &target, AdoptionDesk &desk, uint64_t number,
                    const BlockContext &context, bool isAdopter, uint64_t waited)
      : state(state), tables(tables), arguments(arguments), collective(arguments.collective),
        target(target), desk(desk), number(number), isAdopter(isAdopter), bound(arguments.bound) {
    own.context = context;
    bound.timeout = bound.timeout > waited ? bound.timeout - waited : 1;
    // An adopter stays to the end.
    if (isAdopter)
      bound.leaveAfter = 0;
  }

  /// From the begin of the invocation. Leave: not the adopter, and it has waited for long again.
  __device__ Standing run() {
    load(blockIdx.x);
    own.verdict = takeNumber(arguments, bound, number);
    if (own.verdict != Verdict::GoOn)
      return own;
    // Who leaves thread block 0 to another one may not have come to that. Told twice is told.
    if (isAdopter || blockIdx.x == 0)
      announceBegin<Telling::Relaxed>(collective, number, arguments.buffers);
    own.verdict = begin(state, arguments, bound, header(), number, loadPeer(collective));
    if (own.verdict == Verdict::GoOn)
      own.verdict = visitAll();
    return own;
  }

private:
  __device__ Verdict visitAll() {
    WarpWatch watch(bound);
    bool isDone = false;
    for (;;) {
      GivingUp stuck{0, collective.slot, number, {}, {}, blockIdx.x, 0};
      bool hasMoved = false;
      if (!isDone)
        isDone = visit(blockIdx.x, own.context, hasMoved, stuck);
      for (uint32_t block = 0; isAdopter && block < collective.numBlocks; ++block) {
        BlockContext context;
        if (block == blockIdx.x || !desk.hasLeft(block, context))
          continue;
        if (visit(block, context, hasMoved, stuck))
          desk.finish(block);
        else
          desk.save(block, context);
      }
      if (isDone && (!isAdopter || desk.end()))
        return Verdict::GoOn;
      if (hasMoved)
        watch.progressed();
      else if (Verdict verdict = afterVainPoll(bound, watch, stuck); verdict != Verdict::GoOn)
        return verdict;
    }
  }

  /// Whether the block's steps are done.
  __device__ bool visit(uint32_t block, BlockContext &context, bool &hasMoved, GivingUp &stuck) {
    if (loaded != block)
      load(block);
    StepResult result;
    if (header().isReady)
      result = ReadyRunner<Target>(state, header(), tables, target).run(context, ~0u);
    else
      result = runBlock(state.invocation, block, context, target, ~0u);
    bool isOver = result.status == StepStatus::Finished;
    hasMoved |= isOver || result.slices != 0;
    if (isOver && threadIdx.x == 0)
      countInvocation(arguments, number, block);
    if (!isOver && stuck.obstacle.reason == BlockReason::None) {
      stuck.context = context;
      stuck.obstacle = result.obstacle;
      stuck.block = block;
    }
    return isOver;
  }

  __device__ ImageHeader &header() { return *reinterpret_cast<ImageHeader *>(tables); }
  /// As loadImage(), by one warp.
  __device__ void load(uint32_t block) {
    __syncwarp();
    const char *image = collective.images + uint64_t(block) * collective.imageStride;
    auto *to = reinterpret_cast<uint4 *>(tables);
    for (uint32_t i = threadIdx.x; i < collective.imageStride / 16; i += kControlThreads)
      to[i] = reinterpret_cast<const uint4 *>(image)[i];
    __syncwarp();
    if (threadIdx.x < kRelocations)
      relocateOne(header(), tables, threadIdx.x);
    __syncwarp();
    loaded = block;
  }

  BlockState &state;
  char *const tables;
  const InStreamArguments &arguments;
  const DeviceCollective &collective;
  Target &target;
  AdoptionDesk &desk;
  uint64_t number;
  const bool isAdopter;
  WaitBound bound;
  Standing own;
  uint32_t loaded = ~0u;
};

/// For a thread block whose Verdict was to leave: it stands at `context` of invocation `number`,
/// which it may not have begun. When this returns it has nothing more to do. Not inlined: the
/// registers are not to be in the way of those that do not wait.
template <class Target>
__device__ __noinline__ void leaveOrAdopt(BlockState &state, char *tables,
                                          const InStreamArguments &arguments, Target target,
                                          uint64_t number, BlockContext context) {
  AdoptionDesk desk(arguments.collective, number);
  const uint64_t since = deviceClock() - arguments.bound.leaveAfter;
  Standing standing = {Verdict::Leave, context};
  while (standing.verdict == Verdict::Leave) {
    Parting parting = desk.part(blockIdx.x, standing.context);
    if (parting == Parting::Leave)
      return;
    standing = Visits<Target>(state, tables, arguments, target, desk, number, standing.context,
                              parting == Parting::Adopt, __shfl_sync(~0u, deviceClock() - since, 0))
                   .run();
  }
}

} // namespace occl::cuda
