// Where the transfers of each ordered pair of ranks lie in device memory: see
// docs/decisions/gpu/device-transfers.md. Plain numbers, the same on host and device.
//
// A transfer is one or more pieces. Piece g of a pair, counted over all its transfers, lies in slot
// g % numSlots, and is that slot's use g / numSlots. The source writes it once `emptied`, which
// lies with the source, says that so many uses of the slot are over; then it stores the use in
// `filled` at the destination, who reads and then stores `emptied`. Nothing wraps: uses have 48
// bits.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/cuda/tables/limits.h"

#include <cstdint>

namespace occl::cuda {

/// Two sequences of each pair: transfers that are work of streams, and asynchronous ones.
inline constexpr uint32_t kTransferWays = 2;

/// Beside a slot, at the destination; zero at first. What the source says of a transfer in each of
/// its pieces: both sides must have the same count and type.
struct alignas(16) SlotHeader {
  uint64_t count;  // countWord(): stored before
  uint64_t filled; // filledWord(): stored last
};

/// Pieces of a direction are claimed in up to so many columns: piece i in the (i % columns)-th,
/// each in order, so that thread blocks do not wait for each other's claims.
inline constexpr uint32_t kMostColumns = 16;

/// What a rank knows of its transfers to, or from, one rank: nobody else looks at it. Zero at
/// first.
struct alignas(32) DirectionState {
  /// As the kernel finds them that has the direction; moved on by the last of its thread blocks.
  uint64_t nextPiece, nextTransfer;
  uint32_t claimed[kMostColumns]; // pieces of that kernel that thread blocks have taken, by column
  uint32_t entered;               // its thread blocks that have begun
  uint32_t ended; // of a kernel of which this is the first direction: its blocks that have ended
};

/// A slot's use has come. type: a DataType.
OCCL_INLINE uint64_t filledWord(uint64_t use, uint32_t type) { return (use + 1) << 8 | type; }
OCCL_INLINE bool isFilled(uint64_t word, uint64_t use) { return word >> 8 > use; }
OCCL_INLINE uint32_t typeIn(uint64_t filledWord) { return filledWord & 0xff; }
/// The two words are loaded in any order: the low bits say whose use the count is of, and of none
/// as long as they are zero. Counts are below 2^48.
OCCL_INLINE uint64_t countWord(uint64_t use, uint64_t count) {
  return count << 16 | ((use + 1) & 0xffff);
}
OCCL_INLINE bool isOfUse(uint64_t countWord, uint64_t use) {
  return ((countWord ^ (use + 1)) & 0xffff) == 0;
}
OCCL_INLINE uint64_t countIn(uint64_t countWord) { return countWord >> 16; }

/// How the slots lie in each rank's memory, from `begin` on: the same on all ranks.
struct PairGeometry {
  uint64_t begin = 0; // in bytes from the begin of the arena
  uint32_t numRanks = 0;
  uint32_t numSlots = 0; // of each pair and way; a power of two; 0: there is too little memory
  uint64_t slotBytes = 0;

  /// For so many ranks with so much device memory each: of 128 MiB or more at most 16 MiB, of less
  /// at most a sixteenth.
  static PairGeometry forMemory(uint64_t begin, uint32_t numRanks, uint64_t memoryBytes);

  OCCL_INLINE uint64_t pieces(uint64_t bytes) const {
    return bytes == 0 ? 1 : (bytes + slotBytes - 1) / slotBytes;
  }
  /// What is zero at first comes first.
  OCCL_INLINE uint64_t wordBytes() const {
    return kTransferWays *
           (2 * numRanks * sizeof(DirectionState) +
            uint64_t(numRanks) * numSlots * (sizeof(SlotHeader) + sizeof(uint64_t)));
  }
  OCCL_INLINE uint64_t bytes() const {
    return wordBytes() + uint64_t(kTransferWays) * numRanks * numSlots * slotBytes;
  }

  /// In a rank's device memory: DeviceMemory::onDevice().
  OCCL_INLINE DirectionState *state(char *own, uint32_t way, bool isSend, uint32_t peer) const {
    return reinterpret_cast<DirectionState *>(own + begin) +
           (way * 2 + (isSend ? 1 : 0)) * numRanks + peer;
  }
  // In a rank's arena.
  /// Of what this rank receives from `source`.
  OCCL_INLINE SlotHeader *header(char *arena, uint32_t way, uint32_t source, uint32_t slot) const {
    char *headers = arena + begin + kTransferWays * 2 * numRanks * sizeof(DirectionState);
    return reinterpret_cast<SlotHeader *>(headers) +
           (uint64_t(way) * numRanks + source) * numSlots + slot;
  }
  /// Of what this rank sends to `destination`: how many uses of the slot are over.
  OCCL_INLINE uint64_t *emptied(char *arena, uint32_t way, uint32_t destination,
                                uint32_t slot) const {
    SlotHeader *behind = header(arena, kTransferWays, 0, 0);
    return reinterpret_cast<uint64_t *>(behind) +
           (uint64_t(way) * numRanks + destination) * numSlots + slot;
  }
  OCCL_INLINE char *slot(char *arena, uint32_t way, uint32_t source, uint32_t slot) const {
    return arena + begin + wordBytes() +
           ((uint64_t(way) * numRanks + source) * numSlots + slot) * slotBytes;
  }
};

} // namespace occl::cuda
