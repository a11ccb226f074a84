// How thread groups of a kernel of transfers choose what they copy next. See
// docs/decisions/gpu/device-transfers.md.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/bound.cuh"
#include "runtime/cuda/transfer/transfer_reports.cuh"
#include "runtime/cuda/transfer/transfer_table.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace occl::cuda {

/// What a group of threads copies.
struct Piece {
  bool isNone; // there are no more
  bool isSend;
  char *buffer;             // of the piece
  uint32_t bytes;           // may be 0
  uint32_t lineFlag;        // 0: it goes in no lines
  char *slot;               // or its lines, or, of a transfer to oneself, the source
  uint32_t direction, part; // which it is of
  /// To be stored once the slot is written, or read; before that, if it goes in lines and is sent.
  uint64_t *word; // null: of a transfer to oneself
  uint64_t value;
  uint64_t *countWord; // null: of a receive
  uint64_t count;
};

struct GroupShared {
  static constexpr uint32_t kPartsNear = 32;

  Piece pieces[2];    // by turns
  uint32_t numCopied; // warps count pieces that they have copied
  uint32_t hasFailed; // some warp gave up while it copied
  uint32_t firstNear[kMostDirections];
  TransferPart near[kMostDirections][kPartsNear];
};

/// As many as the lanes of a warp are enough for.
__device__ inline uint32_t columnsFor(uint32_t numDirections) {
  uint32_t columns = kMostColumns;
  while (columns * numDirections > 32)
    columns /= 2;
  return columns;
}

/// A group's first warp: a lane for each column of each direction. Functions are called by all
/// lanes.
class PieceChooser {
public:
  __device__ PieceChooser(const TransferArguments &arguments, GroupShared &shared, uint32_t group)
      : arguments(arguments), shared(shared), lane(threadIdx.x % 32),
        columns(columnsFor(arguments.numDirections)), column(lane % columns),
        number(lane / columns < arguments.numDirections ? lane / columns : 0),
        isColumn(lane < columns * arguments.numDirections), isFirst(isColumn && column == 0),
        direction(arguments.directions[number]),
        state(*arguments.pairs.state(arguments.onDevice, direction.isSend, direction.peer)),
        reports{arguments, direction, state}, watch(arguments.bound) {
    // The first pieces of this lane's column, as bits.
    for (uint32_t apart = columns; apart < kFirstPieces; apart *= 2)
      inColumn |= inColumn << apart;
    inColumn <<= column;
    // The group's own direction, and the piece of it that the group tries to claim first.
    own = ownDirection(group);
    const TransferDirection &home = arguments.directions[own];
    const uint32_t first = group - home.firstGroup;
    homeLane = own * columns + first % columns;
    held = first < kFirstPieces && first < home.numPieces ? first : kNone;
    mayEndEarly = arguments.isSpread;
    // The first parts of each direction lie near.
    for (uint32_t d = 0; d < arguments.numDirections; ++d)
      load(d, 0);
    begin();
  }

  /// Whether a kernel before this one gave up: it has left words of its directions as they were,
  /// which must not be taken for this one's.
  __device__ bool isTooLate() const { return wasTooLate; }

  enum class Found : uint32_t {
    Nothing,
    Piece,
    All,  // all is claimed
    Stop, // the group gave up, or makes room
  };
  /// Looks once for a piece that this group may do, whose slot is ready: the one it holds, or the
  /// next one of some column. busy: a piece of the group that is not done, if there is one, so it
  /// may not leave.
  __device__ Found look(Piece &into, const Piece *busy) {
    if (mayEndEarly && held == kNone) {
      if (busy != nullptr && !hasAsked) {
        hasAsked = true;
        haveAllBegun(); // while the others copy
      }
      if (busy != nullptr)
        return afterLook(0, true, busy);
      if (haveAllBegun())
        return Found::All;
    }
    if (!enter())
      return afterLook(0, isEntered || !isColumn, busy);
    if (held != kNone) {
      if (isHeldReady()) {
        const uint32_t index = held;
        held = kNone;
        looks = 0;
        return give(into, own * columns + index % columns, index);
      }
      if (++looks % kPatience != 0)
        return afterLook(0, true, busy);
    }
    const uint32_t predicted = next(); // its slot is looked at with the same trip
    const bool isReadyThen = isColumn && predicted < direction.numPieces && isReady(predicted);
    loadClaims();
    const uint32_t index = next();
    const bool isOver = !isColumn || index >= direction.numPieces;
    if (held == kNone && __all_sync(~0u, isOver))
      return busy == nullptr ? Found::All : afterLook(0, true, busy);
    const bool mayClaim =
        !isOver && isNotHeld(index) && (index == predicted ? isReadyThen : isReady(index));
    const uint32_t ready = mayHave(__ballot_sync(~0u, mayClaim), __ballot_sync(~0u, isOver));
    if (ready == 0)
      return afterLook(index, isOver, busy);
    const uint32_t chosen = nextOf(ready);
    const bool isTaken = lane == chosen && take(index);
    if (!__shfl_sync(~0u, isTaken, static_cast<int>(chosen)))
      return Found::Nothing; // another group has it
    return give(into, chosen, __shfl_sync(~0u, index, static_cast<int>(chosen)));
  }

  /// Looks for no other piece: whether those who copy `busy` wait in vain.
  __device__ Found lookAround(const Piece &busy) { return afterLook(0, true, &busy); }

  /// All is claimed, and the pieces of this group are done. False: the others have ended, and some
  /// of them made room before they were through, so this one goes on. The last group moves the
  /// numbers on.
  __device__ bool end() {
    uint64_t ahead[2]; // with the same trip as what comes next
    loadAhead(ahead);
    if (!isLastOne) {
      uint32_t before = 0;
      __syncwarp();
      if (lane == 0)
        before = atomicAdd(&firstState().ended, 1);
      before = __shfl_sync(~0u, before, 0);
      isLastOne = before % kLeft + 1 == arguments.numGroups;
      if (isLastOne && before >= kLeft) {
        mayEndEarly = false;
        __threadfence(); // what they held is open
        return false;
      }
    }
    if (isLastOne)
      moveOn(freeAhead(ahead));
    return true;
  }

private:
  static constexpr uint32_t kPatience = 8; // looks
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kPartsNear = GroupShared::kPartsNear;
  static constexpr uint32_t kLeft = 1 << 16; // in DirectionState::ended

  // --- the beginning ---

  __device__ uint32_t ownDirection(uint32_t group) const {
    const bool isHere =
        lane < arguments.numDirections &&
        group - arguments.directions[lane].firstGroup < arguments.directions[lane].numGroups;
    return static_cast<uint32_t>(__ffs(static_cast<int>(__ballot_sync(~0u, isHere))) - 1);
  }
  /// All that is known without anything else with one trip: also a claim to the piece that is this
  /// group's own, whose slot may not be ready. Groups do other pieces while they hold one.
  __device__ void begin() {
    const uint32_t hasGivenUp = device::detail::look(arguments.bound.hasGivenUp);
    const bool mayClaim = direction.firstTransfer == TransferDirection::kAny;
    if (__any_sync(~0u, isColumn && !mayClaim)) // the others wait for that direction, too
      held = kNone;
    uint32_t before = 0;
    uint64_t wasTaken = 0;
    if (isColumn && mayClaim) {
      numbers = DirectionNumbers::load(state);
      freeUntil = loadWord(&state.freeUntil);
      if (isFirst)
        before = atomicAdd(&state.entered, 1);
      if (number == own && isFirst && held != kNone)
        wasTaken = atomicOr(word(state.taken), 1ull << held);
    }
    loadClaims();
    isEntered = mayClaim;
    wasTaken = __shfl_sync(~0u, wasTaken, static_cast<int>(own * columns));
    if (held != kNone && (wasTaken >> held & 1) != 0)
      held = kNone; // another group was before it
    wasTooLate = __any_sync(~0u, hasGivenUp != 0);
    const bool isBesideAnother = before >= arguments.numGroups;
    if (isBesideAnother && !wasTooLate)
      reports.refuseTwo();
    wasTooLate |= __any_sync(~0u, isBesideAnother);
  }

  /// The kernels before with this direction are over: all groups find the same numbers. Kernels
  /// that wait for theirs have one group; what the one before resets is then zero in any order.
  __device__ bool enter() {
    if (__all_sync(~0u, isEntered || !isColumn))
      return true;
    if (isColumn && !isEntered) {
      numbers = DirectionNumbers::load(state);
      __threadfence();
      isEntered = numbers.nextTransfer == direction.firstTransfer && isReset();
      if (isEntered && isFirst)
        atomicAdd(&state.entered, 1);
    }
    return __all_sync(~0u, isEntered || !isColumn);
  }

  /// Of the words of this lane's direction. The first one has not counted itself yet.
  __device__ bool isReset() const {
    bool isIt = loadWord(&state.taken) == 0 && device::detail::look(&state.ended) == 0 &&
                (!isFirst || device::detail::look(&state.entered) == 0);
    for (const uint32_t &each : state.claimed)
      isIt &= device::detail::look(&each) == 0;
    return isIt;
  }

  // --- claims ---

  __device__ void loadClaims() {
    if (!isColumn)
      return;
    taken = loadWord(&state.taken);
    claimed = device::detail::look(&state.claimed[column]);
  }
  /// The column's next piece that nobody has, as far as this lane knows.
  __device__ uint32_t next() const {
    const uint64_t open = ~taken & inColumn;
    if (open != 0)
      return static_cast<uint32_t>(__ffsll(static_cast<long long>(open)) - 1);
    return kFirstPieces + claimed * columns + column;
  }
  /// One lane.
  __device__ bool take(uint32_t index) {
    if (index < kFirstPieces)
      return (atomicOr(word(state.taken), 1ull << index) >> index & 1) == 0;
    return atomicCAS(&state.claimed[column], claimed, claimed + 1) == claimed;
  }
  static __device__ unsigned long long *word(uint64_t &of) {
    return reinterpret_cast<unsigned long long *>(&of);
  }
  /// What this group holds may have been open when the lane looked.
  __device__ bool isNotHeld(uint32_t index) const { return number != own || index != held; }

  __device__ uint32_t slotOf(uint64_t piece) const {
    return static_cast<uint32_t>(piece & (arguments.pairs.numSlots - 1));
  }
  __device__ uint64_t useOf(uint64_t piece) const { return piece / arguments.pairs.numSlots; }

  /// Each lane for its column: what the other side did before is seen afterwards.
  __device__ bool isReady(uint32_t index) {
    if (direction.isCopy)
      return true;
    const uint64_t piece = numbers.nextPiece + index;
    return direction.isSend ? isFree(piece) : hasCome(direction.peer, piece);
  }
  __device__ bool isHeldReady() {
    const TransferDirection &home = arguments.directions[own];
    if (home.isCopy)
      return true;
    bool isIt = false;
    if (number == own && isColumn)
      isIt = home.isSend ? isFree(numbers.nextPiece + held)
                         : hasCome(home.peer, numbers.nextPiece + held);
    return __shfl_sync(~0u, isIt, static_cast<int>(own * columns + held % columns));
  }
  __device__ bool isFree(uint64_t piece) const {
    if (piece < freeUntil)
      return true;
    return acquireWord(emptied(piece)) >= useOf(piece);
  }
  __device__ bool hasCome(uint32_t peer, uint64_t piece) {
    const SlotHeader *header =
        arguments.pairs.header(arguments.arenas[arguments.rank], peer, slotOf(piece));
    countSeen = loadWord(&header->count); // with the same trip
    filledSeen = acquireWord(&header->filled);
    return isFilled(filledSeen, useOf(piece)) && isOfUse(countSeen, useOf(piece));
  }

  /// Of the columns that are ready, those that this group may take: its own, or any if that is over
  /// or has not been ready for some looks, or if it holds what is not ready. Of groups that try to
  /// claim one piece all but one do so in vain.
  __device__ uint32_t mayHave(uint32_t ready, uint32_t over) {
    const uint32_t home = 1u << homeLane;
    if (held != kNone)
      return ready;
    const bool isHomeReady = (ready & home) != 0;
    if (isHomeReady)
      looks = 0;
    if (ready == 0 || isHomeReady || (over & home) != 0 || looks >= kPatience)
      return ready;
    ++looks;
    return 0;
  }
  /// The first one from its own on.
  __device__ uint32_t nextOf(uint32_t ready) const {
    const uint32_t later = ready & (~0u << homeLane);
    return static_cast<uint32_t>(__ffs(static_cast<int>(later != 0 ? later : ready)) - 1);
  }

  // --- waits ---

  /// A look was in vain.
  __device__ Found afterLook(uint32_t index, bool isOver, const Piece *busy) {
    if (!watch.isDue())
      return Found::Nothing;
    const bool isHolder = held != kNone && number == own && isFirst;
    // Those who copy wait for lines of what is received.
    const bool isCopier = busy != nullptr && busy->lineFlag != 0 && busy->direction == number &&
                          isFirst && !direction.isSend;
    const bool waits = isHolder || isCopier || (isColumn && !isOver);
    const uint32_t waiting = __ballot_sync(~0u, waits);
    const Verdict verdict = watch.look(waits ? direction.peer : ~0u);
    if (verdict == Verdict::Late && waiting == 0)
      return Found::Nothing; // those who copy are at it
    if (verdict == Verdict::Leave && busy == nullptr && __all_sync(~0u, isEntered || !isColumn))
      return makeRoom() ? Found::Stop : Found::Nothing;
    if (verdict == Verdict::GoOn || verdict == Verdict::Leave)
      return Found::Nothing;
    if (verdict == Verdict::Late && lane == static_cast<uint32_t>(__ffs(waiting) - 1))
      reports.late(isCopier ? busy->part : partOf(isHolder ? held : index));
    __syncwarp();
    if (lane == 0) // for the kernels behind this one, also if the host has ended it
      atomicExch(arguments.bound.hasGivenUp, 1);
    return Found::Stop;
  }

  /// Room on the device is others', unless this is the last group of the kernel that is there.
  __device__ bool makeRoom() {
    // The piece that it holds is open again before it counts as gone.
    if (held != kNone) {
      if (number == own && isFirst)
        atomicAnd(word(state.taken), ~(1ull << held));
      held = kNone;
      mayEndEarly = false;
      looks = 0;
      __threadfence();
      __syncwarp();
    }
    bool may = false;
    DirectionState &first = firstState();
    // Groups leave one by one, and never the last one of the kernel.
    if (lane == 0) {
      const uint32_t ended = device::detail::look(&first.ended);
      may = (ended % kLeft) + 1 < arguments.numGroups &&
            atomicCAS(&first.ended, ended, ended + 1 + kLeft) == ended;
    }
    return __shfl_sync(~0u, may, 0);
  }
  /// Else the room that this group leaves might go to others, which wait for those of this kernel
  /// that have found none.
  __device__ bool haveAllBegun() {
    if (!haveBegun)
      haveBegun =
          __all_sync(~0u, device::detail::look(&firstState().entered) >= arguments.numGroups);
    return haveBegun;
  }
  __device__ DirectionState &firstState() const {
    const TransferDirection &first = arguments.directions[0];
    return *arguments.pairs.state(arguments.onDevice, first.isSend, first.peer);
  }

  // --- the end ---

  /// What follows in the stream finds all of it; kernels that wait for their number, see enter().
  __device__ void moveOn(uint64_t free) {
    if (isColumn && kFirstPieces + column < direction.numPieces) // else nobody claimed there
      state.claimed[column] = 0;
    if (isFirst) {
      state.taken = 0;
      state.entered = 0;
      if (lane == 0)
        state.ended = 0;
      if (!direction.isCopy) {
        state.freeUntil = free;
        numbers.nextPiece += direction.numPieces;
      }
      numbers.nextTransfer += direction.numParts;
      numbers.store(state);
    }
    if (lane == 0 && arguments.isOver != nullptr)
      device::detail::say(arguments.isOver, 1);
  }
  /// Of what is sent next: how many uses of slots are over.
  __device__ void loadAhead(uint64_t (&over)[2]) const {
    const bool isSent = isColumn && direction.isSend;
#pragma unroll
    for (uint32_t k = 0; k < 2; ++k)
      over[k] = isSent ? loadWord(emptied(ahead(k))) : 0;
  }
  /// Up to which piece slots are free.
  __device__ uint64_t freeAhead(const uint64_t (&over)[2]) const {
    uint32_t leading = 0;
#pragma unroll
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t areFree = __ballot_sync(~0u, over[k] >= useOf(ahead(k)));
      const uint32_t missing =
          ~(areFree >> (number * columns)) | (columns < 32 ? 1u << columns : 0);
      if (leading == k * columns)
        leading += static_cast<uint32_t>(__ffs(static_cast<int>(missing)) - 1);
    }
    return ahead(0) - column + leading;
  }
  __device__ uint64_t ahead(uint32_t k) const {
    return numbers.nextPiece + direction.numPieces + k * columns + column;
  }
  __device__ const uint64_t *emptied(uint64_t piece) const {
    return arguments.pairs.emptied(arguments.arenas[arguments.rank], direction.peer, slotOf(piece));
  }

  // --- pieces ---

  /// Piece `index` of the chosen lane's direction, which is this group's.
  __device__ Found give(Piece &into, uint32_t chosen, uint32_t index) {
    watch.progressed();
    const uint32_t d = chosen / columns;
    const TransferDirection &of = arguments.directions[d];
    while (index >= endOf(of, nearOf(d)[lastNear(d)]))
      load(d, shared.firstNear[d] + kPartsNear);
    while (index < nearOf(d)[0].firstPiece) // of another column, which is behind
      load(d, shared.firstNear[d] - kPartsNear);
    const TransferPart &mine = nearOf(d)[min(lane, lastNear(d))];
    const uint32_t begun = __ballot_sync(~0u, lane <= lastNear(d) && mine.firstPiece <= index);
    const uint32_t at = 31 - __clz(static_cast<int>(begun));
    const bool isRight =
        lane != chosen || fill(into, of, nearOf(d)[at], shared.firstNear[d] + at, index);
    return __all_sync(~0u, isRight) ? Found::Piece : Found::Stop;
  }
  /// One lane. False: the sender has another count or type.
  __device__ bool fill(Piece &next, const TransferDirection &of, const TransferPart &part,
                       uint32_t which, uint32_t index) {
    const PairGeometry &pairs = arguments.pairs;
    char *own = arguments.arenas[arguments.rank], *other = arguments.arenas[of.peer];
    const uint64_t piece = numbers.nextPiece + index, use = useOf(piece);
    // Which part of the buffer it is, and where it passes through.
    const uint32_t slot = slotOf(piece);
    const uint64_t each = bytesOfPiece(of, part);
    const uint64_t offset = (index - part.firstPiece) * each, left = part.bytes() - offset;
    const bool isInLines = !of.isCopy && pairs.isInLines(part.bytes(), of.peer == arguments.rank);
    char *const holder = of.isSend ? other : own;
    const uint32_t owner = of.isSend ? of.peer : arguments.rank;
    const uint32_t source = of.isSend ? arguments.rank : of.peer;
    // The same for all kinds of pieces.
    next.isNone = false;
    next.isSend = of.isSend;
    next.buffer = part.buffer + offset;
    next.bytes = static_cast<uint32_t>(left < each ? left : each);
    next.lineFlag = isInLines ? lineFlag(use) : 0;
    next.slot = isInLines ? pairs.lines(holder, source, slot)
                          : pairs.slot(arguments.slots[owner], owner, source, slot);
    next.direction = number;
    next.part = which;
    next.countWord = nullptr;
    next.word = nullptr;
    // A copy to oneself reads the send's buffer in the place of a slot.
    if (of.isCopy) {
      next.slot = partsOf(of.copiedFrom)[which].buffer + offset;
    } else if (of.isSend) {
      // A send fills the slot at the destination, whose header says so.
      SlotHeader *header = pairs.header(other, arguments.rank, slot);
      next.word = &header->filled;
      next.value = filledWord(use, part.type);
      next.countWord = &header->count;
      next.count = countWord(use, part.count);
    } else {
      // A receive tells the source that the slot is empty.
      next.word = pairs.emptied(other, arguments.rank, slot);
      next.value = use + 1;
      if (countIn(countSeen) != part.count || typeIn(filledSeen) != part.type) {
        reports.refuseOther(part, which, filledSeen, countSeen);
        return false;
      }
    }
    return true;
  }

  __device__ TransferPart *nearOf(uint32_t d) const { return shared.near[d]; }
  __device__ uint64_t bytesOfPiece(const TransferDirection &of, const TransferPart &part) const {
    return of.isCopy ? PairGeometry::copiedBytes(part.bytes())
                     : arguments.pairs.pieceBytes(part.bytes(), of.peer == arguments.rank);
  }
  __device__ uint64_t endOf(const TransferDirection &of, const TransferPart &part) const {
    return part.firstPiece + PairGeometry::piecesOf(part.bytes(), bytesOfPiece(of, part));
  }
  __device__ uint32_t lastNear(uint32_t d) const {
    return min(arguments.directions[d].numParts - shared.firstNear[d], kPartsNear) - 1;
  }
  __device__ const TransferPart *partsOf(uint32_t first) const {
    return (arguments.parts != nullptr ? arguments.parts : arguments.inlined) + first;
  }
  /// Those of direction d from `first` on.
  __device__ void load(uint32_t d, uint32_t first) {
    const TransferDirection &of = arguments.directions[d];
    __syncwarp();
    if (first + lane < of.numParts)
      nearOf(d)[lane] = partsOf(of.firstPart)[first + lane];
    if (lane == 0)
      shared.firstNear[d] = first;
    __syncwarp();
  }
  /// Of this lane's direction, as far as this group knows.
  __device__ uint32_t partOf(uint32_t index) const {
    uint32_t at = lastNear(number);
    while (at != 0 && nearOf(number)[at].firstPiece > index)
      --at;
    return shared.firstNear[number] + at;
  }

  const TransferArguments &arguments;
  GroupShared &shared;
  const uint32_t lane;
  const uint32_t columns, column; // of each direction; this lane's
  const uint32_t number;          // of this lane's direction
  const bool isColumn, isFirst;   // whether it has one; the first of its direction
  const TransferDirection &direction;
  DirectionState &state;
  const TransferReports reports;
  WarpWatch watch;
  uint64_t inColumn = 1; // of the first pieces, those of this lane's column
  // Of the group, the same in all lanes.
  uint32_t own, homeLane; // its direction; the lane whose column is its own
  uint32_t held;          // the piece of its direction that it has claimed, and not done
  bool mayEndEarly;       // others do all other pieces
  bool haveBegun = false; // all groups of the kernel
  bool hasAsked = false;  // whether they have
  bool wasTooLate = false;
  bool isLastOne = false; // all other groups have ended
  uint32_t looks = 0;     // in vain at what it holds, or at its column, while others were ready
  // Of this lane's direction.
  bool isEntered = false;
  DirectionNumbers numbers = {}; // as the kernel found them
  uint64_t freeUntil = 0;
  uint64_t taken = 0; // as last seen
  uint32_t claimed = 0;
  uint64_t countSeen = 0, filledSeen = 0; // of the piece that it looked at last, of a receive
};

} // namespace occl::cuda
