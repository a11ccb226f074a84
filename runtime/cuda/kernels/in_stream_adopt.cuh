// A thread block of an in-stream kernel that has waited for long: it leaves, or it adopts what the
// others of its invocation leave (adoption.h). All functions are called by all lanes of the first
// warp; the other warps serve on.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/adoption_desk.cuh"
#include "runtime/cuda/kernels/block_run.cuh"
#include "runtime/cuda/kernels/in_stream_begin.cuh"
#include "runtime/cuda/kernels/in_stream_end.cuh"
#include "runtime/cuda/tables/awaited_peer.h"

#include <cstdint>

namespace occl::cuda {

/// How a thread block's steps have ended (GoOn: all are done), and where it stands.
struct Standing {
  Verdict verdict;
  BlockContext context;
};

/// How the wait for the earlier calls has ended, and, if so, the invocation's number.
struct TakenUp {
  Verdict verdict;
  uint64_t number;
};
/// After all earlier work of the stream: takes the invocation's number, and tells the other ranks
/// that it has begun: thread block 0, which does not leave before it has. What follows in the
/// stream may be started then.
__device__ __forceinline__ TakenUp takeUp(const InStreamArguments &arguments,
                                          const WaitBound &bound) {
  awaitEarlierWork();
  const bool tells = blockIdx.x == 0;
  TakenUp taken;
  taken.verdict = claimNumber(arguments.collective, arguments.number, bound, taken.number, !tells);
  if (taken.verdict == Verdict::GoOn && tells)
    tellBegin(arguments, taken.number, arguments.buffers);
  if (taken.verdict == Verdict::GoOn)
    letLaterWorkStart();
  return taken;
}
/// The same by a thread block that has been there before.
__device__ __forceinline__ TakenUp takeUpAgain(const InStreamArguments &arguments,
                                               const WaitBound &bound) {
  awaitEarlierWork();
  TakenUp taken;
  taken.verdict = takeNumber(arguments.collective, arguments.number, bound, taken.number);
  if (taken.verdict == Verdict::GoOn)
    letLaterWorkStart();
  return taken;
}

/// What a thread block of the plan is to do next: all its steps, or, in a visit, as far as they go.
struct Errand {
  uint32_t block, place;
  uint64_t number;
  bool isVisit;
  BlockContext context;
};
/// How far it got. obstacle: what it waits for, unless its steps are done.
struct Report {
  Standing standing;
  bool isOver, hasMoved;
  Obstacle obstacle;
};

/// The image of the thread block lies in `tables`.
template <template <class> class Runner, class Target>
__device__ __forceinline__ Report takeSteps(const BlockState &state, char *tables,
                                            const WaitBound &bound, Target &target,
                                            const Errand &errand) {
  Runner<Target> runner(state, *reinterpret_cast<const ImageHeader *>(tables), tables, target);
  BlockContext context = errand.context;
  WarpWatch watch(bound);
  for (;;) {
    // In a visit once; else until all is done or it is time to give up.
    StepResult result = runner.run(context, ~0u);
    bool isOver = result.status == StepStatus::Finished, hasMoved = result.slices != 0;
    if (isOver || errand.isVisit)
      return {{Verdict::GoOn, context}, isOver, isOver || hasMoved, result.obstacle};
    if (hasMoved)
      watch.progressed();
    GivingUp stuck{0, errand.place, errand.number, context, result.obstacle, errand.block, 0};
    Verdict verdict = afterVainPoll(bound, watch, stuck);
    if (verdict != Verdict::GoOn)
      return {{verdict, context}, false, hasMoved, result.obstacle};
  }
}

/// The same for a thread block of which some steps are made ready one by one, or steps overlap. Not
/// inlined: its registers are not to be in the way of others. Who has waited for long and comes
/// here for others takes all steps apart: the code is there once.
template <template <class> class Runner, class Target>
__device__ __noinline__ Report takeStepsApart(const BlockState &state, char *tables,
                                              const WaitBound &bound, Target target,
                                              Errand errand) {
  return takeSteps<Runner>(state, tables, bound, target, errand);
}

/// As it is quickest.
template <class Target>
__device__ __forceinline__ Report takeStepsOf(const BlockState &state, char *tables,
                                              const WaitBound &bound, Target &target,
                                              const Errand &errand) {
  const ImageHeader &header = *reinterpret_cast<const ImageHeader *>(tables);
  if (header.isPerStep)
    return takeStepsApart<StepRunner>(state, tables, bound, target, errand);
  if constexpr (Target::kFoldsBeside)
    if (stepsOverlap(header))
      return takeStepsApart<OverlappingRunner>(state, tables, bound, target, errand);
  return takeSteps<TileRunner>(state, tables, bound, target, errand);
}

/// Meets the other ranks and makes `state` that of the invocation. GoOn: steps may begin.
__device__ inline Verdict begin(BlockState &state, const InStreamArguments &arguments,
                                const WaitBound &bound, const ImageHeader &header, uint64_t number,
                                const PeerWords &early) {
  const DeviceCollective &collective = arguments.collective;
  if (threadIdx.x == 0) {
    Invocation invocation;
    invocation.program = &header.program;
    invocation.places = state.places;
    invocation.wordBase = collective.wordBaseOf(number);
    invocation.flagBase = collective.flagBaseOf(number);
    state.invocation = invocation;
  }
  // Wait for the others, then enter where they are.
  PeerBegin peer;
  Verdict verdict = awaitPeers(collective, bound, number, early, peer);
  if (verdict != Verdict::GoOn)
    return verdict;
  const bool isAligned =
      __all_sync(~0u, setPlaces(collective, number, peer, arguments.buffers, state.places));
  if (threadIdx.x == 0)
    state.isAligned = isAligned;
  __syncwarp();
  return Verdict::GoOn;
}

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
    TakenUp taken = takeUpAgain(arguments, bound);
    number = taken.number;
    own.verdict = taken.verdict;
    if (own.verdict == Verdict::GoOn)
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
      // A round: the own thread block, then all that have left, each as far as it goes without
      // waiting.
      GivingUp stuck{0, bound.place, number, {}, {}, blockIdx.x, 0};
      bool hasMoved = false;
      if (!isDone)
        isDone = visit(blockIdx.x, own.context, hasMoved, stuck);
      for (uint32_t block = 0; isAdopter && block < collective.numBlocks; ++block) {
        if (block == blockIdx.x || !__all_sync(~0u, desk.hasLeft(block)))
          continue;
        BlockContext context = desk.contextOf(block);
        if (visit(block, context, hasMoved, stuck))
          desk.finish(block);
        else
          desk.save(block, context);
      }
      if (isDone && (!isAdopter || desk.end()))
        return Verdict::GoOn;
      if (hasMoved) {
        watch.progressed();
        continue;
      }
      leaveTheWordToPeers(stuck.obstacle);
      if (Verdict verdict = afterVainPoll(bound, watch, stuck); verdict != Verdict::GoOn)
        return verdict;
    }
  }

  /// Of lanes that wait for several things any one's word stays: not for the own rank, if some lane
  /// waits for another one.
  __device__ void leaveTheWordToPeers(Obstacle &obstacle) const {
    const bool isPeers = isOfPeer(obstacle, collective.rank);
    if (__any_sync(~0u, isPeers) && !isPeers)
      obstacle = {};
  }

  /// Whether the block's steps are done.
  __device__ bool visit(uint32_t block, BlockContext &context, bool &hasMoved, GivingUp &stuck) {
    // The tables of one thread block at a time are near.
    if (loaded != block)
      load(block);
    Report report = takeStepsApart<StepRunner>(state, tables, bound, target,
                                               {block, bound.place, number, true, context});
    context = report.standing.context;
    hasMoved |= report.hasMoved;
    __syncwarp();
    if (report.isOver && threadIdx.x == 0)
      countInvocation(arguments, number, block);
    // Of several blocked thread blocks the most telling obstacle is reported.
    if (!report.isOver && saysMore(report.obstacle, stuck.obstacle, collective.rank)) {
      stuck.context = context;
      stuck.obstacle = report.obstacle;
      stuck.block = block;
    }
    return report.isOver;
  }

  __device__ ImageHeader &header() { return *reinterpret_cast<ImageHeader *>(tables); }
  __device__ void load(uint32_t block) {
    __syncwarp(); // that of the one before is no longer in use
    loadImage<ByFirstWarp>(collective.images + uint64_t(block) * collective.imageStride,
                           collective.imageStride, tables);
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
/// which it may not have begun. When this returns it has nothing more to do.
template <class Target>
__device__ __noinline__ void leaveOrAdopt(BlockState &state, char *tables,
                                          const InStreamArguments &arguments, Target target,
                                          uint64_t number, BlockContext context) {
  AdoptionDesk desk(arguments.collective, number);
  const uint64_t since = deviceClock() - arguments.bound.leaveAfter;
  Standing standing = {Verdict::Leave, context};
  while (standing.verdict == Verdict::Leave) {
    // It leaves, or is the adopter, or goes on alone because somebody else is that; then for as
    // long as it may wait again.
    Parting parting = desk.part(blockIdx.x, standing.context);
    if (parting == Parting::Leave)
      return;
    standing = Visits<Target>(state, tables, arguments, target, desk, number, standing.context,
                              parting == Parting::Adopt, __shfl_sync(~0u, deviceClock() - since, 0))
                   .run();
  }
}

} // namespace occl::cuda
