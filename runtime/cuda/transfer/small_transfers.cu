// Small groups of transfers in a stream: one thread block does all of one, some warps each
// direction, and nothing is claimed. See docs/decisions/gpu/device-transfers.md.
#include "runtime/api/occl_device_groups.cuh"
#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/bound.cuh"
#include "runtime/cuda/transfer/piece_lines.cuh"
#include "runtime/cuda/transfer/transfer_reports.cuh"
#include "runtime/cuda/transfer/transfer_table.h"

#include <cuda_runtime.h>

namespace occl::cuda {

namespace {

using Lines = PieceLines<4>;

struct SmallShared {
  uint32_t numDone[kMostDirections]; // warps of each direction
};

/// The threads of a direction, as those who copy together.
struct WarpsOfDirection {
  const uint32_t member, number;
  __device__ uint32_t rank() const { return member; }
  __device__ uint32_t size() const { return number; }
};

/// Apart, since it takes many registers.
__device__ __noinline__ void copyPart(char *to, const char *from, uint32_t bytes, uint32_t rank,
                                      uint32_t size) {
  device::detail::copy(WarpsOfDirection{rank, size}, to, from, bytes);
}

/// A warp of a direction. Functions are called by all lanes.
class SmallDirection {
public:
  __device__ SmallDirection(const TransferArguments &arguments, SmallShared &shared)
      : arguments(arguments), shared(shared), lane(threadIdx.x % 32),
        number(threadIdx.x / 32 / arguments.warpsEach),
        warp(threadIdx.x / 32 % arguments.warpsEach), direction(arguments.directions[number]),
        state(*arguments.pairs.state(arguments.onDevice, direction.isSend, direction.peer)),
        reports{arguments, direction, state}, watch(arguments.bound, false) {}

  __device__ void run() {
    // Pieces are done beside each other as far as there are warps.
    while (2 * numParallel <= arguments.warpsEach && numParallel < direction.numPieces)
      numParallel *= 2;
    size = arguments.warpsEach / numParallel * 32;
    rank = warp / numParallel * 32 + lane;
    // What is known before is loaded at a time.
    const uint32_t hasGivenUp = device::detail::look(arguments.bound.hasGivenUp);
    numbers = DirectionNumbers::load(state);
    if (direction.isSend)
      loadCredit();
    uint32_t before = warp == 0 && lane == 0 ? atomicAdd(&state.entered, 1) : 0;
    if (__any_sync(~0u, hasGivenUp != 0))
      return; // a kernel before has left words as they were
    before = __shfl_sync(~0u, before, 0);
    if (before != 0) {
      if (lane == 0)
        reports.refuseTwo();
      return;
    }
    for (uint32_t p = 0; p < direction.numParts; ++p)
      if (!doPart(p))
        return;
    end();
  }

private:
  /// False: it gave up.
  __device__ bool doPart(uint32_t which) {
    const TransferPart &part = arguments.inlined[direction.firstPart + which];
    // A copy to oneself: all warps of the direction share it.
    if (direction.isCopy) {
      copyPart(part.buffer, arguments.inlined[direction.copiedFrom + which].buffer,
               static_cast<uint32_t>(part.bytes()), warp * 32 + lane, arguments.warpsEach * 32);
      return true;
    }
    const PairGeometry &pairs = arguments.pairs;
    const auto bytes = static_cast<uint32_t>(part.bytes());
    const auto most = static_cast<uint32_t>(pairs.lineBytes);
    uint64_t index = part.firstPiece;
    // Each set of warps does its own pieces; a part without bytes has one piece, too.
    uint32_t offset = 0;
    do {
      const bool isDone =
          index % numParallel != warp % numParallel ||
          doPiece(part, which, numbers.nextPiece + index, offset, min(bytes - offset, most));
      if (!isDone)
        return false;
      ++index;
      offset += most;
    } while (offset < bytes);
    return true;
  }
  __device__ bool doPiece(const TransferPart &part, uint32_t which, uint64_t piece, uint32_t offset,
                          uint32_t bytes) {
    const PairGeometry &pairs = arguments.pairs;
    const auto slot = static_cast<uint32_t>(piece & (pairs.numSlots - 1));
    const uint64_t use = piece / pairs.numSlots;
    char *lines = pairs.lines(arena(direction.isSend), sourceRank(), slot);
    SlotHeader *header = pairs.header(arena(direction.isSend), sourceRank(), slot);
    Lines mine(lines, lineFlag(use), bytes, rank, size);
    return direction.isSend ? send(part, which, offset, mine, header, slot, use)
                            : receive(part, which, offset, mine, header, use);
  }

  /// Of the one that has the slots: the destination.
  __device__ char *arena(bool isPeers) const {
    return arguments.arenas[isPeers ? direction.peer : arguments.rank];
  }
  __device__ uint32_t sourceRank() const {
    return direction.isSend ? arguments.rank : direction.peer;
  }

  /// How many uses are over of all slots, some for each lane.
  __device__ void loadCredit() {
#pragma unroll
    for (uint32_t k = 0; k < kSlotsOfLane; ++k)
      credit[k] = loadWord(arguments.pairs.emptied(arena(false), direction.peer, k * 32 + lane));
  }
  __device__ bool awaitCredit(uint32_t which, uint32_t slot, uint64_t use) {
    uint64_t over = 0;
    // The lane that looked at this slot tells the others.
#pragma unroll
    for (uint32_t k = 0; k < kSlotsOfLane; ++k)
      if (const uint64_t here = __shfl_sync(~0u, credit[k], static_cast<int>(slot % 32));
          slot / 32 == k)
        over = here;
    while (over < use) {
      if (!mayWaitOn(which))
        return false;
      over = loadWord(arguments.pairs.emptied(arena(false), direction.peer, slot));
      // The first look is from before the part: look again until the use is over.
      over = __shfl_sync(~0u, over, 0);
    }
    return true;
  }

  __device__ bool send(const TransferPart &part, uint32_t which, uint32_t offset,
                       const Lines &lines, SlotHeader *header, uint32_t slot, uint64_t use) {
    if (!awaitCredit(which, slot, use))
      return false;
    // The header comes before the lines, which say by themselves that they are there.
    if (rank == 0) {
      storeWord(&header->count, countWord(use, part.count));
      storeWord(&header->filled, filledWord(use, part.type));
    }
    for (uint32_t time = 0; time < lines.times(); ++time)
      lines.store(time, part.buffer + offset);
    return true;
  }

  /// At least once, since a transfer of no bytes has to come, too.
  __device__ bool receive(const TransferPart &part, uint32_t which, uint32_t offset, Lines &lines,
                          const SlotHeader *header, uint64_t use) {
    uint32_t time = 0;
    do {
      for (;;) {
        uint64_t filled = loadWord(&header->filled), count = loadWord(&header->count);
        const bool haveLines = lines.look(time);
        filled = __shfl_sync(~0u, filled, 0); // all decide alike
        count = __shfl_sync(~0u, count, 0);
        const bool isFilledNow = isFilled(filled, use) && isOfUse(count, use);
        if (isFilledNow && (countIn(count) != part.count || typeIn(filled) != part.type)) {
          if (lane == 0)
            reports.refuseOther(part, which, filled, count);
          return false;
        }
        if (__all_sync(~0u, isFilledNow && haveLines))
          break;
        if (!mayWaitOn(which))
          return false;
      }
      lines.unpack(time, part.buffer + offset);
    } while (++time < lines.times());
    return true;
  }

  /// After a look in vain.
  __device__ bool mayWaitOn(uint32_t which) {
    // Most polls look at nothing but the words that are waited for.
    if (!watch.isDue())
      return true;
    const Verdict verdict = watch.look(direction.peer);
    if (verdict == Verdict::GoOn)
      return true;
    if (lane == 0) {
      if (verdict == Verdict::Late)
        reports.late(which);
      atomicExch(arguments.bound.hasGivenUp, 1); // also if the host has ended it
    }
    return false;
  }

  /// The last warp of the direction says that slots are free, and moves the numbers on. Kernels
  /// behind this one in its stream find all of it, those that wait for the number nothing else.
  __device__ void end() {
    bool isLast = false;
    // The warp that comes last goes on: all others have loaded and stored.
    __syncwarp();
    if (lane == 0) {
      __threadfence_block();
      isLast = atomicAdd(&shared.numDone[number], 1) + 1 == arguments.warpsEach;
    }
    if (!__shfl_sync(~0u, isLast, 0))
      return;
    // Slots of received pieces are free for the source.
    const bool isReceived = !direction.isSend && !direction.isCopy;
    for (uint32_t i = lane; isReceived && i < direction.numPieces; i += 32) {
      const uint64_t piece = numbers.nextPiece + i;
      const auto slot = static_cast<uint32_t>(piece & (arguments.pairs.numSlots - 1));
      storeWord(arguments.pairs.emptied(arena(true), arguments.rank, slot),
                piece / arguments.pairs.numSlots + 1);
    }
    if (lane != 0)
      return;
    // The numbers move on before the next kernel may take the direction.
    numbers.nextTransfer += direction.numParts;
    if (!direction.isCopy)
      numbers.nextPiece += direction.numPieces;
    numbers.store(state);
    atomicSub(&state.entered, 1);
  }

  static constexpr uint32_t kSlotsOfLane = kSlotsOfPair / 32;

  const TransferArguments &arguments;
  SmallShared &shared;
  const uint32_t lane;
  const uint32_t number, warp; // of the direction; of the warp among its own
  const TransferDirection &direction;
  DirectionState &state;
  const TransferReports reports;
  WarpWatch watch;
  uint32_t numParallel = 1;      // pieces; a power of two
  uint32_t rank = 0, size = 0;   // of the thread among those of a piece
  DirectionNumbers numbers = {}; // as the kernel found them
  uint64_t credit[kSlotsOfLane] = {};
};

__global__ void __launch_bounds__(kSmallThreads)
    transferSmall(const __grid_constant__ TransferArguments arguments) {
  __shared__ SmallShared shared;
  if (threadIdx.x < arguments.numDirections)
    shared.numDone[threadIdx.x] = 0;
  __syncthreads();
  SmallDirection(arguments, shared).run();
}

} // namespace

int launchSmallTransfers(const TransferArguments &arguments, void *stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = arguments.numDirections * arguments.warpsEach * 32;
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelEx(&config, transferSmall, arguments);
}

int loadSmallTransfers() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, transferSmall);
}

} // namespace occl::cuda
