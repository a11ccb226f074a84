// What a kernel of transfers is given: plain structures, see pair_slots.h.
#pragma once

#include "runtime/cuda/tables/bound.h"
#include "runtime/cuda/transfer/pair_slots.h"

#include <cstdint>

namespace occl::cuda {

/// One send or receive of a group.
struct alignas(16) TransferPart {
  char *buffer;
  uint64_t count;      // elements
  uint64_t firstPiece; // of the direction's in this group
  uint32_t type;       // a DataType
  uint32_t elementBytes;

  OCCL_INLINE uint64_t bytes() const { return count * elementBytes; }
};

/// Of a group: those to one rank, or from one, in the order of the calls.
struct TransferDirection {
  static constexpr uint64_t kAny = ~0ull;

  uint32_t peer = 0;
  bool isSend = false;
  /// Of receives from oneself: the sends are of the same group, from part `copiedFrom` on, and are
  /// no direction. Nothing goes through slots.
  bool isCopy = false;
  uint32_t copiedFrom = 0;
  uint32_t firstPart = 0, numParts = 0;
  uint32_t numPieces = 0;
  uint32_t firstGroup = 0, numGroups = 0; // thread groups, each first of all for one of the pieces
  /// The number that the first transfer must have: the kernel waits for those before. kAny:
  /// whichever it is, since kernels with the direction run one after the other.
  uint64_t firstTransfer = kAny;
};

/// Device to host, in pinned memory: the first transfer whose sides differ.
struct TransferMismatch {
  uint32_t isSaid = 0; // somebody has it
  uint64_t ownCount = 0, otherCount = 0;
  uint32_t ownType = 0, otherType = 0;
};

/// Likewise: 1 once a kernel is over, and nobody looks at its table any more.
using TransfersOver = uint32_t;

inline constexpr uint32_t kMostDirections = 2 * kMaxRanks;
/// So many parts travel with the kernel's arguments.
inline constexpr uint32_t kPartsInline = 24;

/// The kernel's argument.
struct TransferArguments {
  char *arenas[kMaxRanks] = {}; // by rank, as this one maps them
  char *slots[kMaxRanks] = {};  // likewise: PairGeometry::slot() counts from there
  char *onDevice = nullptr;     // where the states of directions lie: this rank's arena, or, if
                                // that is host memory, device memory with the same offsets
  uint32_t rank = 0;
  PairGeometry pairs;
  uint32_t numGroups = 0; // thread groups: of kGroupThreads
  /// Each of them is for one piece, and there are no others.
  bool isSpread = false;
  uint32_t warpsEach = 0;     // 0, or launchSmallTransfers(): warps of each direction
  uint32_t numDirections = 0; // at least one
  TransferDirection directions[kMostDirections];
  const TransferPart *parts = nullptr; // null: inlined
  TransferPart inlined[kPartsInline];
  WaitBound bound;
  TransferMismatch *mismatch = nullptr;
  TransfersOver *isOver = nullptr; // null: nobody asks
};
static_assert(sizeof(TransferArguments) <= 4096, "what kernels can be given");

/// Threads that choose and copy together: a warp chooses, eight copy; and as many groups as a
/// thread block has at most.
inline constexpr uint32_t kGroupThreads = 288, kGroupsOfBlock = 2;
/// So many that have a piece each are in thread blocks of their own.
inline constexpr uint32_t kGroupsApart = 128;

/// Threads of a block that does a small group, at most.
inline constexpr uint32_t kSmallThreads = 512;

/// Enqueues the kernel in a stream of the current device. A cudaError_t.
int launchTransfers(const TransferArguments &arguments, void *stream);
/// The same for what one thread block can do (GroupLayout::warpsEach), with parts inlined.
int launchSmallTransfers(const TransferArguments &arguments, void *stream);
/// Load them on the current device, see loadInStream(). A cudaError_t.
int loadTransfers();
int loadSmallTransfers();

} // namespace occl::cuda
