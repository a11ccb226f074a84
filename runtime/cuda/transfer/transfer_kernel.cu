// Transfers in a stream: one kernel is one group of a rank. Its groups of threads take pieces of
// any direction as they become possible, so that one of them, wherever it finds room, could do all;
// see docs/decisions/gpu/device-transfers.md.
#include "runtime/api/occl_device_groups.cuh"
#include "runtime/base/system_words.cuh"
#include "runtime/cuda/transfer/piece_chooser.cuh"
#include "runtime/cuda/transfer/piece_lines.cuh"
#include "runtime/cuda/transfer/transfer_table.h"

#include <cuda_runtime.h>

namespace occl::cuda {

namespace {

/// Of a group, the first warp chooses pieces and tells the other side, those behind it copy: one
/// piece, while the first looks for the next one.
constexpr uint32_t kCopyWarps = kGroupThreads / 32 - 1;

/// Those who copy.
struct Copiers {
  __device__ uint32_t rank() const { return threadIdx.x % kGroupThreads - 32; }
  __device__ constexpr uint32_t size() const { return kCopyWarps * 32; }
};

/// Where they meet for the number-th piece.
__device__ uint32_t meetingOf(uint32_t number) {
  return threadIdx.x / kGroupThreads * 2 + number % 2 + 1;
}

/// Copies of a group's pieces.
class Carrier {
public:
  __device__ Carrier(const WaitBound &bound, GroupShared &shared) : bound(bound), shared(shared) {}

  __device__ void run() {
    for (uint32_t number = 0;; ++number) {
      // The leader arrives at this barrier with each piece that it gives.
      asm volatile("bar.sync %0, %1;" ::"r"(meetingOf(number)), "n"(kGroupThreads) : "memory");
      const Piece &piece = shared.pieces[number % 2];
      if (piece.isNone)
        return;
      carry(piece);
      // The leader counts the warps that have copied, not the threads.
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
        __threadfence_block();
        atomicAdd(&shared.numCopied, 1);
      }
      __syncwarp();
    }
  }

private:
  __device__ void carry(const Piece &piece) {
    const Copiers group;
    if (piece.lineFlag == 0)
      return device::detail::copy(group, piece.isSend ? piece.slot : piece.buffer,
                                  piece.isSend ? piece.buffer : piece.slot, piece.bytes);
    PieceLines<4> lines(piece.slot, piece.lineFlag, piece.bytes, group.rank(), group.size());
    if (!piece.isSend)
      return load(lines, piece.buffer);
    for (uint32_t time = 0; time < lines.times(); ++time)
      lines.store(time, piece.buffer);
  }
  /// The sender has begun to store them: they come, unless it has died, for which the first warp
  /// looks.
  __device__ void load(PieceLines<4> &lines, char *buffer) {
    constexpr uint32_t kLooks = 256;
    uint32_t looks = 0;
    for (uint32_t time = 0; time < lines.times(); ++time) {
      while (!__all_sync(~0u, lines.look(time)))
        if (++looks % kLooks == 0 && __any_sync(~0u, device::detail::look(bound.hasGivenUp) != 0)) {
          atomicExch(&shared.hasFailed, 1);
          return;
        }
      lines.unpack(time, buffer);
    }
  }

  const WaitBound &bound;
  GroupShared &shared;
};

/// A group's first warp.
class Leader {
public:
  __device__ Leader(const TransferArguments &arguments, GroupShared &shared, uint32_t group)
      : shared(shared), chooser(arguments, shared, group) {}

  __device__ void run() {
    using Found = PieceChooser::Found;
    bool isOver = chooser.isTooLate();
    while (!isOver) {
      tellOfCopied();
      if (hasFailed())
        break;
      const Piece *const busy = given != told ? &shared.pieces[told % 2] : nullptr;
      // With two pieces given there is no place for a third: only look whether the copies still
      // move.
      const Found found = given - told == 2 ? chooser.lookAround(*busy)
                                            : chooser.look(shared.pieces[given % 2], busy);
      if (found == Found::Piece)
        give();
      isOver = found == Found::Stop || (found == Found::All && chooser.end());
    }
    while (given - told == 2)
      tellOfCopied(); // the place is needed
    __syncwarp();
    // An empty piece tells the carriers that nothing follows.
    if (threadIdx.x % 32 == 0)
      shared.pieces[given % 2].isNone = true;
    meet();
  }

private:
  __device__ void give() {
    const Piece &piece = shared.pieces[given % 2];
    __syncwarp();
    if (threadIdx.x % 32 == 0 && piece.isSend && piece.lineFlag != 0) {
      storeWord(piece.countWord, piece.count);
      storeWord(piece.word, piece.value);
    }
    meet();
    ++given;
  }
  /// The other side, of pieces that are copied. Of what was received all loads have ended: their
  /// values were stored.
  __device__ void tellOfCopied() {
    // A piece is copied once each copying warp has counted it.
    const uint32_t copied = device::detail::look(&shared.numCopied);
    if (given == told || !__all_sync(~0u, copied - told * kCopyWarps >= kCopyWarps))
      return;
    const Piece &piece = shared.pieces[told % 2];
    // After a failure the other side is told nothing.
    if (threadIdx.x % 32 == 0 && piece.word != nullptr && !hasFailed()) {
      __threadfence_block();
      if (!piece.isSend) {
        storeWord(piece.word, piece.value);
      } else if (piece.lineFlag == 0) {
        // The count comes before `filled`, and both behind the data.
        storeWord(piece.countWord, piece.count);
        fenceSystem();
        storeWord(piece.word, piece.value);
      }
    }
    __syncwarp();
    ++told;
  }
  __device__ bool hasFailed() const { return device::detail::look(&shared.hasFailed) != 0; }
  /// Does not wait for those who copy.
  __device__ void meet() const {
    __threadfence_block();
    __syncwarp();
    asm volatile("bar.arrive %0, %1;" ::"r"(meetingOf(given)), "n"(kGroupThreads) : "memory");
  }

  GroupShared &shared;
  PieceChooser chooser;
  uint32_t given = 0, told = 0; // pieces
};

__global__ void __launch_bounds__(kGroupThreads *kGroupsOfBlock, 1)
    transfer(const __grid_constant__ TransferArguments arguments) {
  // The thread groups of a block work independently of each other.
  __shared__ GroupShared all[kGroupsOfBlock];
  GroupShared &shared = all[threadIdx.x / kGroupThreads];
  if (threadIdx.x % kGroupThreads == 0) {
    shared.numCopied = 0;
    shared.hasFailed = 0;
  }
  __syncthreads();
  const uint32_t group = (blockIdx.x * blockDim.x + threadIdx.x) / kGroupThreads;
  if (group >= arguments.numGroups)
    return;
  // The first warp leads; the others carry what it gives them.
  if (threadIdx.x % kGroupThreads < 32)
    Leader(arguments, shared, group).run();
  else
    Carrier(arguments.bound, shared).run();
}

} // namespace

int launchTransfers(const TransferArguments &arguments, void *stream) {
  // What takes long is to leave multiprocessors to others.
  const bool isShort = arguments.isSpread && arguments.numGroups <= kGroupsApart;
  const uint32_t groups = isShort ? 1 : kGroupsOfBlock;
  cudaLaunchConfig_t config = {};
  config.gridDim = (arguments.numGroups + groups - 1) / groups;
  config.blockDim = kGroupThreads * groups;
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelEx(&config, transfer, arguments);
}

int loadTransfers() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, transfer);
}

} // namespace occl::cuda
