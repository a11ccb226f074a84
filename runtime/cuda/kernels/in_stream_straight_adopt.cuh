// A straight thread block that has waited for long: it leaves, or it adopts what the others of its
// invocation leave (runtime/cuda/tables/adoption.h), and takes the steps of all in turn, as far as
// lines have come.
//
// A warp gives up inside a step, with nothing of its round stored; the others come to the barrier
// behind that step, or give up there as well. So when a thread block stops, all its warps stand in
// one step, each so many rounds into it (StraightRounds): that is its context.
//
// All warps meet, the clerk too, who has told what there is to tell, and has taken the number of a
// captured call. From then on nothing but the context, and what has been stored, is of the thread
// block. It parts. If it leaves it is not counted: the adopter does that.
//
// The adopter has as many threads as each of the others. Of each thread block that has left, and of
// its own, it loads the tables and makes the addresses, and each warp does what is left of the
// rounds of the warp of its number, without waiting. If all are through, the next step follows;
// else the context is stored, and the next thread block has its turn. The adopter's clerk goes on
// looking what the other ranks call. Deadline, abort and reports are the first warp's.
//
// Nothing here is quick, and nothing of it is in the way of those that do not wait.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/adoption_desk.cuh"
#include "runtime/cuda/kernels/in_stream_begin.cuh"
#include "runtime/cuda/kernels/in_stream_end.cuh"
#include "runtime/cuda/kernels/straight_block.cuh"

#include <cstdint>

namespace occl::cuda {

/// In shared memory, beside StraightShared.
struct StraightWay {
  BlockContext own; // of the thread block itself, as long as it has not left
  Parting parting;
  WaitBound bound;
  uint64_t where[kMaxRanks]; // see PeerBegin
  uint64_t since;            // about when it began to wait
  /// Thread blocks that have a turn: a bit each.
  uint32_t turns[kOrderedOrdinals / 32];
  uint8_t rounds[StraightRounds::kMaxWarps + 1]; // by warp, of the step that is taken
  uint32_t missing;                              // operand that some warp has waited for, or ~0u
  Verdict verdict;
  bool isOver;
};

/// By each worker: the rounds that its warp has done of the step that all take.
__device__ inline void storeRounds(StraightWay &way, uint32_t rounds) {
  if (laneOfWarp() == 0)
    way.rounds[threadIdx.x / 32] = static_cast<uint8_t>(rounds);
}
/// When they have met.
__device__ inline BlockContext standingIn(const StraightWay &way, uint32_t step,
                                          uint32_t numWorkers) {
  StraightRounds rounds;
  for (uint32_t w = 0; w < numWorkers / 32; ++w)
    rounds.set(w, way.rounds[w]);
  return straightContext(step, rounds);
}

/// What the workers of a thread block do that has not left, or that has adopted: all of them call
/// all functions, but for those that say so.
template <class Fold, bool kWide> class StraightTurns {
public:
  __device__ StraightTurns(StraightShared &shared, StraightWay &way,
                           const InStreamArguments &arguments, AdoptionDesk &desk, uint64_t number)
      : shared(shared), way(way), arguments(arguments), collective(arguments.collective),
        layout(collective.straight), desk(desk), number(number), numWorkers(blockDim.x - 32),
        warp(threadIdx.x / 32), bound(way.bound) {}

  /// From the begin of the invocation. Leave: not the adopter, and it has waited for long again;
  /// way.own says where it stands.
  __device__ Verdict run() {
    isAdopter = way.parting == Parting::Adopt;
    if (threadIdx.x == 0) {
      const uint64_t waited = deviceClock() - way.since;
      bound = arguments.bound;
      bound.timeout = bound.timeout > waited ? bound.timeout - waited : 1;
      // An adopter stays to the end.
      if (isAdopter)
        bound.leaveAfter = 0;
    }
    meetWorkers(numWorkers, true);
    uint64_t taken = 0;
    PeerBegin peer;
    Verdict verdict = takeNumber(collective, arguments.number, bound, taken);
    if (verdict == Verdict::GoOn)
      verdict = awaitPeers(collective, bound, number, loadPeer(collective), peer);
    if (threadIdx.x < collective.numRanks)
      way.where[threadIdx.x] = peer.where;
    verdict = agree(verdict);
    return verdict == Verdict::GoOn ? takeTurns() : verdict;
  }

private:
  /// The largest of what the warps say.
  __device__ Verdict agree(Verdict mine) {
    stop(shared, mine);
    meetWorkers(numWorkers, true);
    const Verdict largest = verdictOf(shared, numWorkers / 32);
    meetWorkers(numWorkers, true);
    return largest;
  }

  __device__ Verdict takeTurns() {
    WarpWatch watch(bound); // the first warp's
    for (;;) {
      // A round: the first warp chooses who has a turn, all take it, the first warp looks at the
      // time.
      GivingUp stuck{0, bound.place, number, {}, {}, blockIdx.x, 0};
      bool hasMoved = false;
      if (warp == 0)
        chooseTurns();
      meetWorkers(numWorkers, true);
      for (uint32_t block = 0; block < collective.numBlocks; ++block)
        if ((way.turns[block / 32] >> block % 32 & 1) != 0)
          hasMoved |= takeTurn(block, stuck);
      if (warp == 0)
        endRound(watch, hasMoved, stuck);
      meetWorkers(numWorkers, true);
      if (way.isOver || way.verdict != Verdict::GoOn)
        return way.verdict;
    }
  }

  /// The first warp.
  __device__ void chooseTurns() {
    for (uint32_t first = 0; first < collective.numBlocks; first += 32) {
      const uint32_t block = first + laneOfWarp();
      bool hasTurn = false;
      if (block == blockIdx.x)
        hasTurn = !isDone;
      else if (isAdopter && block < collective.numBlocks)
        hasTurn = desk.hasLeft(block);
      const uint32_t turns = __ballot_sync(~0u, hasTurn);
      if (laneOfWarp() == 0)
        way.turns[first / 32] = turns;
    }
  }

  /// The first warp, when each has had its turn.
  __device__ void endRound(WarpWatch &watch, bool hasMoved, const GivingUp &stuck) {
    const bool isOver = isDone && (!isAdopter || desk.end());
    Verdict verdict = Verdict::GoOn;
    if (hasMoved)
      watch.progressed();
    else if (!isOver)
      verdict = lookAround(bound, watch, stuck);
    if (laneOfWarp() == 0) {
      way.isOver = isOver;
      way.verdict = verdict;
    }
  }

  /// Takes the thread block as far as it goes. In the first warp: whether that was anywhere, and,
  /// if nowhere, in `stuck` what it waits for, unless another one's is there.
  __device__ bool takeTurn(uint32_t block, GivingUp &stuck) {
    const char *image = imageOf(layout, block);
    const BlockContext before = block == blockIdx.x ? way.own : desk.contextOf(block);
    // Load its tables and make its addresses, take its steps, store its position.
    loadTables(shared, layout, image, numWorkers);
    if (warp * 32 < layout.maxOperands)
      makeWord(shared, arguments, loadOperand(layout, image), number,
               way.where[laneOfWarp() < collective.numRanks ? laneOfWarp() : 0]);
    if (threadIdx.x == 0)
      way.missing = ~0u;
    meetWorkers(numWorkers, true);
    const uint32_t step = takeSteps(before);
    bool hasMoved = false;
    if (warp == 0)
      hasMoved = endTurn(block, before, step, image, stuck);
    meetWorkers(numWorkers, true);
    return hasMoved;
  }

  /// Returns the step that it is blocked in; kMaxStraightSteps: none is left.
  __device__ uint32_t takeSteps(const BlockContext &from) {
    const auto *steps = reinterpret_cast<const StraightStep *>(shared.tables);
    const auto *pieces = reinterpret_cast<const StraightPiece *>(shared.tables + layout.piecesAt);
    uint32_t rounds = StraightRounds(from.tile).of(warp);
    for (uint32_t s = from.instruction; s < layout.maxSteps; ++s, rounds = 0) {
      const StraightStep step = steps[s];
      if (step.numPieces == 0)
        break;
      uint32_t looks = 0;
      // Looks some times at lines that have not come; then the warp stops, with nothing of its
      // round stored.
      const auto mayWait = [&](uint32_t missing, uint32_t first) {
        if (++looks < interpreter::cuda::kReadyLooks)
          return true;
        if (missing != ~0u)
          *static_cast<volatile uint32_t *>(&way.missing) = missing;
        storeRounds(way, first / numWorkers);
        return false;
      };
      const bool isThrough =
          interpreter::cuda::takeUnits<Fold, kWide, 1, interpreter::cuda::kHeldSources>(
              {step, pieces, shared.words, collective.type, collective.op}, threadIdx.x, numWorkers,
              rounds * numWorkers, mayWait);
      if (isThrough)
        storeRounds(way, StraightRounds::kAll);
      if (!meetWorkers(numWorkers, isThrough))
        return s;
    }
    return kMaxStraightSteps;
  }

  /// The first warp.
  __device__ bool endTurn(uint32_t block, const BlockContext &before, uint32_t step,
                          const char *image, GivingUp &stuck) {
    const bool isOwn = block == blockIdx.x;
    if (step == kMaxStraightSteps) {
      if (threadIdx.x == 0)
        countInvocation(arguments, number, block);
      if (isOwn)
        isDone = true;
      else
        desk.finish(block);
      return true;
    }
    // Blocked: its position is stored for its next turn, and its obstacle reported.
    const BlockContext after = standingIn(way, step, numWorkers);
    if (!isOwn)
      desk.save(block, after);
    else if (threadIdx.x == 0)
      way.own = after;
    __syncwarp();
    if (stuck.obstacle.reason == BlockReason::None && way.missing != ~0u) {
      const auto *steps = reinterpret_cast<const StraightStep *>(shared.tables);
      stuck.context = {0, steps[step].instruction, 0};
      stuck.obstacle = reinterpret_cast<const Obstacle *>(image + layout.obstaclesAt)[way.missing];
      stuck.block = block;
    }
    return after.instruction != before.instruction || after.tile != before.tile;
  }

  StraightShared &shared;
  StraightWay &way;
  const InStreamArguments &arguments;
  const DeviceCollective &collective;
  const StraightImages &layout;
  AdoptionDesk &desk;
  const uint64_t number;
  const uint32_t numWorkers, warp;
  WaitBound &bound;
  bool isAdopter = false;
  bool isDone = false; // in the first warp: the thread block's own steps are
};

/// The first warp; what it stores all see when they have met.
__device__ inline void part(StraightWay &way, AdoptionDesk &desk) {
  const Parting parting = desk.part(blockIdx.x, way.own);
  if (laneOfWarp() == 0)
    way.parting = parting;
}

/// All threads of a thread block of which some have stopped, having met. When this returns they
/// have nothing more to do.
template <class Fold, bool kWide>
__device__ __noinline__ void makeWay(StraightShared &shared, const InStreamArguments &arguments) {
  __shared__ StraightWay way;
  const uint32_t numWorkers = blockDim.x - 32;
  const bool isClerk = threadIdx.x >= numWorkers, isFirstWarp = threadIdx.x < 32;
  // Who ends with the whole invocation has said so.
  if (verdictOf(shared, blockDim.x / 32) != Verdict::Leave)
    return;
  uint64_t number = arguments.number;
  if (number == kAnyNumber) // the clerk has taken it
    number = replayNumber(loadWord(arguments.collective.ordinals + blockIdx.x));
  if (arguments.number == kAnyNumber && shared.number != number) {
    if (threadIdx.x == 0)
      isOtherReplay(shared, arguments, number);
    return;
  }
  // Where it stands.
  const StraightShared::Stop mine = shared.stops[threadIdx.x / 32];
  const uint32_t begun = shared.begun;
  if (!isClerk)
    storeRounds(way, mine.verdict == Verdict::GoOn ? StraightRounds::kAll : mine.unit / numWorkers);
  if (threadIdx.x == 0)
    shared.isDone = 0;
  __syncthreads();
  AdoptionDesk desk(arguments.collective, number);
  if (isFirstWarp) {
    const BlockContext own = begun == 0 ? BlockContext() : standingIn(way, begun - 1, numWorkers);
    if (threadIdx.x == 0) {
      way.own = own;
      way.since = deviceClock() - arguments.bound.leaveAfter;
    }
    __syncwarp();
    part(way, desk);
  }
  __syncthreads();
  // It leaves, or goes on.
  if (isClerk) {
    if (way.parting != Parting::Leave)
      watchPeers(shared, arguments, number);
    return;
  }
  StraightTurns<Fold, kWide> turns(shared, way, arguments, desk, number);
  while (way.parting != Parting::Leave && turns.run() == Verdict::Leave) {
    if (isFirstWarp)
      part(way, desk);
    meetWorkers(numWorkers, true);
  }
  if (threadIdx.x == 0)
    *static_cast<volatile uint32_t *>(&shared.isDone) = 1;
}

} // namespace occl::cuda
