// Transfers in a stream: one kernel is one group of a rank. Its thread blocks take pieces of any
// direction as they become possible, so that one of them, wherever it finds room, could do all; see
// docs/decisions/gpu/device-transfers.md.
#include "runtime/api/occl_device_groups.cuh"
#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/bound.cuh"
#include "runtime/cuda/tables/replay_word.h"
#include "runtime/cuda/transfer/transfer_table.h"

#include <cuda_runtime.h>

namespace occl::cuda {

namespace {

/// Parts of a direction that a thread block has near it.
constexpr uint32_t kPartsNear = 32;

/// What a thread block does next.
struct Piece {
  bool isLast; // there is none
  bool isSend;
  char *buffer;   // of the piece
  uint32_t bytes; // may be 0
  char *slot;     // its slot
  /// To be stored once the slot is written, or read.
  uint64_t *word;
  uint64_t value;
  uint64_t *countWord; // null: of a receive
  uint64_t count;
};

struct Shared {
  Piece piece;
  uint32_t firstNear[kMostDirections];
  TransferPart near[kMostDirections][kPartsNear];
};

/// As many as the lanes of a warp are enough for.
__device__ uint32_t columnsFor(uint32_t numDirections) {
  uint32_t columns = kMostColumns;
  while (columns * numDirections > 32)
    columns /= 2;
  return columns;
}

/// The first warp: a lane for each column of each direction. Functions are called by all lanes.
class Chooser {
public:
  __device__ Chooser(const TransferArguments &arguments, Shared &shared)
      : arguments(arguments), shared(shared), lane(threadIdx.x),
        columns(columnsFor(arguments.numDirections)), column(lane % columns),
        number(lane / columns < arguments.numDirections ? lane / columns : 0),
        isColumn(lane < columns * arguments.numDirections), isFirst(isColumn && column == 0),
        direction(arguments.directions[number]),
        state(*arguments.pairs.state(arguments.onDevice, arguments.way, direction.isSend,
                                     direction.peer)),
        watch(arguments.bound), home(blockIdx.x % arguments.numDirections * columns +
                                     blockIdx.x / arguments.numDirections % columns) {
    for (uint32_t d = 0; d < arguments.numDirections; ++d)
      load(d, 0);
  }

  /// Whether a kernel before this one gave up: it has left words of its directions as they were,
  /// which must not be taken for this one's.
  __device__ bool isTooLate() const {
    const uint32_t hasGivenUp = *static_cast<const volatile uint32_t *>(arguments.bound.hasGivenUp);
    return __any_sync(~0u, hasGivenUp != 0);
  }

  /// Waits for a piece that this block may do: the next one of some direction, whose slot is ready.
  __device__ void choose() {
    for (;;) {
      enter();
      const uint32_t claimed =
          isEntered ? *static_cast<volatile uint32_t *>(&state.claimed[column]) : 0;
      const uint32_t index = claimed * columns + column; // of the column's next piece
      const bool isOver = !isColumn || (isEntered && index >= direction.numPieces);
      if (__all_sync(~0u, isOver))
        return end(true);
      const bool mayClaim = !isOver && isEntered && isReady(base + index);
      const uint32_t ready = mayHave(__ballot_sync(~0u, mayClaim), __ballot_sync(~0u, isOver));
      if (ready == 0) {
        if (!mayWaitOn(index, isOver))
          return;
        continue;
      }
      const uint32_t chosen = nextOf(ready);
      bool isTaken = false;
      if (lane == chosen)
        isTaken = atomicCAS(&state.claimed[column], claimed, claimed + 1) == claimed;
      if (!__shfl_sync(~0u, isTaken, static_cast<int>(chosen)))
        continue; // another block has it
      watch.progressed();
      return give(chosen, __shfl_sync(~0u, index, static_cast<int>(chosen)));
    }
  }

private:
  static constexpr uint32_t kPatience = 8; // looks

  /// The kernels before with this direction are over: all blocks find the same numbers.
  __device__ void enter() {
    if (__all_sync(~0u, isEntered || !isColumn))
      return;
    bool isBeside = false;
    if (isColumn && !isEntered) {
      base = acquireWord(&state.nextPiece);
      isEntered =
          direction.firstPiece == TransferDirection::kAnyPiece || base == direction.firstPiece;
      if (isEntered && isFirst)
        isBeside = atomicAdd(&state.entered, 1) >= arguments.numBlocks;
    }
    if (isBeside)
      refuse(kTwoReplays, arguments.rank, 0);
  }

  __device__ uint32_t slotOf(uint64_t piece) const {
    return static_cast<uint32_t>(piece & (arguments.pairs.numSlots - 1));
  }
  __device__ uint64_t useOf(uint64_t piece) const { return piece / arguments.pairs.numSlots; }

  /// Each lane for its column: what the other side did before is seen afterwards.
  __device__ bool isReady(uint64_t piece) {
    const PairGeometry &pairs = arguments.pairs;
    char *own = arguments.arenas[arguments.rank];
    if (direction.isSend)
      return acquireWord(pairs.emptied(own, arguments.way, direction.peer, slotOf(piece))) >=
             useOf(piece);
    const SlotHeader *header = pairs.header(own, arguments.way, direction.peer, slotOf(piece));
    countSeen = loadWord(&header->count); // with the same trip
    filledSeen = acquireWord(&header->filled);
    return isFilled(filledSeen, useOf(piece)) && isOfUse(countSeen, useOf(piece));
  }

  /// Of the columns that are ready, those that this block may take: its own, or any if that is over
  /// or has not been ready for some looks. Of blocks that try to claim one piece all but one do so
  /// in vain.
  __device__ uint32_t mayHave(uint32_t ready, uint32_t over) {
    const uint32_t own = 1u << home;
    if ((ready & own) != 0)
      looks = 0;
    const bool mayOthers = (over & own) != 0 || looks == kPatience;
    if (ready == 0 || (ready & own) != 0 || mayOthers)
      return ready;
    ++looks;
    return 0;
  }
  /// The first one from its own on.
  __device__ uint32_t nextOf(uint32_t ready) const {
    const uint32_t later = ready & (~0u << home);
    return static_cast<uint32_t>(__ffs(static_cast<int>(later != 0 ? later : ready)) - 1);
  }

  /// After a look in vain. False: there is nothing more to do here.
  __device__ bool mayWaitOn(uint32_t index, bool isOver) {
    if (!watch.isDue())
      return true;
    const bool waits = isColumn && !isOver;
    const Verdict verdict = watch.look(waits ? direction.peer : ~0u);
    if (verdict == Verdict::Leave && __all_sync(~0u, isEntered || !isColumn))
      return !mayLeave();
    if (verdict == Verdict::GoOn || verdict == Verdict::Leave)
      return true;
    const uint32_t waiting = __ballot_sync(~0u, waits);
    if (verdict == Verdict::Late && lane == static_cast<uint32_t>(__ffs(waiting) - 1)) {
      GivingUp stuck = whereAbouts(partOf(index), 0);
      stuck.obstacle = {direction.isSend ? interpreter::BlockReason::Credit
                                         : interpreter::BlockReason::Data,
                        0, direction.peer};
      giveUp(arguments.bound, stuck);
    }
    __syncwarp();
    if (lane == 0) // for the kernels behind this one, also if the host has ended it
      atomicExch(arguments.bound.hasGivenUp, 1);
    end(false);
    return false;
  }

  /// Room on the device is others', unless this is the last block of the kernel that is there.
  __device__ bool mayLeave() {
    bool may = false;
    if (lane == 0) {
      const uint32_t ended = *static_cast<volatile uint32_t *>(&state.ended);
      may = ended + 1 < arguments.numBlocks && atomicCAS(&state.ended, ended, ended + 1) == ended;
    }
    may = __shfl_sync(~0u, may, 0);
    if (may)
      end(false);
    return may;
  }

  /// isCounted: all pieces are taken, and those of this block are done. The last block moves the
  /// numbers on.
  __device__ void end(bool isCounted) {
    if (lane == 0)
      shared.piece.isLast = true;
    if (!isCounted)
      return;
    bool isLast = false;
    __threadfence();
    if (lane == 0)
      isLast = atomicAdd(&state.ended, 1) + 1 == arguments.numBlocks;
    if (!__shfl_sync(~0u, isLast, 0))
      return;
    __threadfence();
    if (isColumn) {
      state.claimed[column] = 0;
      __threadfence();
    }
    __syncwarp();
    if (isFirst) {
      state.entered = 0;
      if (lane == 0)
        state.ended = 0;
      state.nextTransfer += direction.numParts;
      fenceSystem();
      storeWord(&state.nextPiece, base + direction.numPieces);
    }
    __syncwarp();
    if (lane == 0 && arguments.isOver != nullptr)
      *static_cast<volatile TransfersOver *>(arguments.isOver) = 1;
  }

  /// Piece `index` of the chosen lane's direction, which is this block's.
  __device__ void give(uint32_t chosen, uint32_t index) {
    const uint32_t d = __shfl_sync(~0u, number, static_cast<int>(chosen));
    const TransferDirection &of = arguments.directions[d];
    while (index >= endOf(shared.near[d][lastNear(d)]))
      load(d, shared.firstNear[d] + kPartsNear);
    while (index < shared.near[d][0].firstPiece) // of another column, which is behind
      load(d, shared.firstNear[d] - kPartsNear);
    const TransferPart &mine = shared.near[d][min(lane, lastNear(d))];
    const uint32_t begun = __ballot_sync(~0u, lane <= lastNear(d) && mine.firstPiece <= index);
    const uint32_t at = 31 - __clz(static_cast<int>(begun));
    if (lane == chosen)
      fill(of, shared.near[d][at], shared.firstNear[d] + at, index);
    __syncwarp();
  }
  __device__ void fill(const TransferDirection &of, const TransferPart &part, uint32_t which,
                       uint32_t index) {
    const PairGeometry &pairs = arguments.pairs;
    char *own = arguments.arenas[arguments.rank], *other = arguments.arenas[of.peer];
    const uint64_t piece = base + index, use = useOf(piece);
    const uint32_t slot = slotOf(piece);
    const uint64_t offset = (index - part.firstPiece) * pairs.slotBytes;
    const uint64_t left = part.bytes() - offset;
    Piece next;
    next.isLast = false;
    next.isSend = of.isSend;
    next.buffer = part.buffer + offset;
    next.bytes = static_cast<uint32_t>(left < pairs.slotBytes ? left : pairs.slotBytes);
    if (of.isSend) {
      SlotHeader *header = pairs.header(other, arguments.way, arguments.rank, slot);
      next.slot = pairs.slot(other, arguments.way, arguments.rank, slot);
      next.word = &header->filled;
      next.value = filledWord(use, part.type);
      next.countWord = &header->count;
      next.count = countWord(use, part.count);
    } else {
      next.slot = pairs.slot(own, arguments.way, of.peer, slot);
      next.word = pairs.emptied(other, arguments.way, arguments.rank, slot);
      next.value = use + 1;
      next.countWord = nullptr;
      if (countIn(countSeen) != part.count || typeIn(filledSeen) != part.type)
        return refuseOther(part, which);
    }
    shared.piece = next;
  }

  __device__ uint64_t endOf(const TransferPart &part) const {
    return part.firstPiece + arguments.pairs.pieces(part.bytes());
  }
  __device__ uint32_t lastNear(uint32_t d) const {
    return min(arguments.directions[d].numParts - shared.firstNear[d], kPartsNear) - 1;
  }
  /// Those of direction d from `first` on.
  __device__ void load(uint32_t d, uint32_t first) {
    const TransferDirection &of = arguments.directions[d];
    const TransferPart *parts =
        (arguments.parts != nullptr ? arguments.parts : arguments.inlined) + of.firstPart;
    __syncwarp();
    if (first + lane < of.numParts)
      shared.near[d][lane] = parts[first + lane];
    if (lane == 0)
      shared.firstNear[d] = first;
    __syncwarp();
  }
  /// Of this lane's direction, as far as this block knows.
  __device__ uint32_t partOf(uint32_t index) const {
    uint32_t at = lastNear(number);
    while (at != 0 && shared.near[number][at].firstPiece > index)
      --at;
    return shared.firstNear[number] + at;
  }

  __device__ GivingUp whereAbouts(uint32_t part, uint32_t isBeginning) const {
    GivingUp where{0,          arguments.bound.place, state.nextTransfer + part, {}, {}, blockIdx.x,
                   isBeginning};
    where.context.instruction = direction.isSend;
    return where;
  }
  /// One lane: the communicator is to fail.
  __device__ void refuse(uint32_t why, uint32_t peer, uint32_t part) {
    GivingUp where = whereAbouts(part, 1);
    where.obstacle = {interpreter::BlockReason::Announce, why, peer};
    giveUp(arguments.bound, where);
  }
  /// One lane: the sender has another count or type. The first such one is said.
  __device__ void refuseOther(const TransferPart &part, uint32_t which) {
    shared.piece.isLast = true;
    if (atomicCAS(&arguments.mismatch->isSaid, 0, 1) != 0)
      return;
    arguments.mismatch->ownCount = part.count;
    arguments.mismatch->otherCount = countIn(countSeen);
    arguments.mismatch->ownType = part.type;
    arguments.mismatch->otherType = typeIn(filledSeen);
    fenceSystem();
    refuse(kOtherCall, direction.peer, which);
  }

  const TransferArguments &arguments;
  Shared &shared;
  const uint32_t lane;
  const uint32_t columns, column; // of each direction; this lane's
  const uint32_t number;          // of this lane's direction
  const bool isColumn, isFirst;   // whether it has one; the first of its direction
  const TransferDirection &direction;
  DirectionState &state;
  WarpWatch watch;
  const uint32_t home; // the lane whose column is this block's own
  uint32_t looks = 0;  // at it in vain, while others were ready
  // This lane's direction.
  bool isEntered = false;
  uint64_t base = 0;                      // the number of the kernel's first piece
  uint64_t countSeen = 0, filledSeen = 0; // of the next one, of a receive
};

/// A thread block of the kernel, as those who copy together.
struct Copiers {
  __device__ uint32_t rank() const { return threadIdx.x; }
  __device__ constexpr uint32_t size() const { return kTransferThreads; }
};

__global__ void __launch_bounds__(kTransferThreads, 2)
    transfer(const __grid_constant__ TransferArguments arguments) {
  __shared__ Shared shared;
  // The first warp chooses pieces, all threads copy them.
  const auto copyGiven = [&] {
    const Piece &piece = shared.piece;
    device::detail::copy(Copiers(), piece.isSend ? piece.slot : piece.buffer,
                         piece.isSend ? piece.buffer : piece.slot, piece.bytes);
  };
  if (threadIdx.x >= 32) {
    for (;;) {
      __syncthreads();
      if (shared.piece.isLast)
        return;
      copyGiven();
      __syncthreads();
    }
  }
  Chooser chooser(arguments, shared);
  if (chooser.isTooLate()) {
    if (threadIdx.x == 0)
      shared.piece.isLast = true;
    __syncthreads();
    return;
  }
  for (;;) {
    chooser.choose();
    __syncthreads();
    if (shared.piece.isLast)
      return;
    copyGiven();
    __syncthreads();
    if (threadIdx.x == 0) {
      const Piece &piece = shared.piece;
      if (piece.countWord != nullptr)
        storeWord(piece.countWord, piece.count);
      fenceSystem();
      storeWord(piece.word, piece.value);
    }
    __syncwarp();
  }
}

} // namespace

int launchTransfers(const TransferArguments &arguments, void *stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = arguments.numBlocks;
  config.blockDim = kTransferThreads;
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelEx(&config, transfer, arguments);
}

int loadTransfers() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, transfer);
}

} // namespace occl::cuda
