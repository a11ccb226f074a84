// Where the transfers of each ordered pair of ranks lie in device memory: see
// docs/decisions/gpu/device-transfers.md. Plain numbers, the same on host and device.
//
// A transfer is one or more pieces. Piece g of a pair, counted over all its transfers, lies in slot
// g % numSlots, and is that slot's use g / numSlots. The source writes it once `emptied`, which
// lies with the source, says that so many uses of the slot are over; then it stores the use in
// `filled` at the destination, who reads and then stores `emptied`. Nothing wraps: uses have 48
// bits.
//
// Small transfers go in lines of protocol LL: `filled` is stored first, and each line says for
// itself that it is there, by a flag made of its use (lineFlag). So the source waits for no store,
// and the destination looks at `filled` and lines at a time. Flags wrap after 2^32 - 1 uses of a
// slot; then a line would be taken for new that has not been written since, were all uses in
// between shorter.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/cuda/tables/limits.h"

#include <cstdint>

namespace occl::cuda {

/// Beside a slot, at the destination; zero at first. What the source says of a transfer in each of
/// its pieces: both sides must have the same count and type.
struct alignas(16) SlotHeader {
  uint64_t count;  // countWord()
  uint64_t filled; // filledWord(): stored behind the slot, but before lines
};

/// Pieces of a direction are claimed in up to so many columns: piece i in the (i % columns)-th,
/// each in order, so that thread groups do not wait for each other's claims.
inline constexpr uint32_t kMostColumns = 16;

/// The first pieces of a direction in a kernel are claimed one by one.
inline constexpr uint32_t kFirstPieces = 64;

/// What a rank knows of its transfers to, or from, one rank: nobody else looks at it. Zero at
/// first.
struct alignas(32) DirectionState {
  /// As the kernel finds them that has the direction; moved on at a time by the last of its thread
  /// groups.
  uint64_t nextPiece, nextTransfer;
  uint64_t freeUntil;             // of what is sent: pieces before this one have slots
  uint64_t taken;                 // of that kernel's first pieces: a bit of each
  uint32_t claimed[kMostColumns]; // and of those behind, by column
  uint32_t entered;               // its groups that have begun
  uint32_t ended; // of a kernel of which this is the first direction: its groups that have ended,
                  // and 2^16 for each that made room before
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

/// Slots of a pair. Transfers are cut into so many pieces, for as many thread groups, if pieces do
/// not become too small or too large; those in lines have at most so many.
inline constexpr uint32_t kSlotsOfPair = 128;
inline constexpr uint64_t kPiecesForGroups = 64, kLinePieces = 64;

/// How the slots lie in each rank's memory, from `begin` on: the same on all ranks.
struct PairGeometry {
  uint64_t begin = 0; // in bytes from the begin of the arena
  uint32_t numRanks = 0;
  uint32_t numSlots = 0; // of each pair: kSlotsOfPair, or 0: there is too little memory
  uint64_t slotBytes = 0;
  uint64_t lineBytes = 0; // of data that fit into the lines of a slot; 0: there are none

  /// For so many ranks with so much device memory each: at most 32 MiB and an eighth, of less than
  /// 128 MiB a sixteenth.
  static PairGeometry forMemory(uint64_t begin, uint32_t numRanks, uint64_t memoryBytes,
                                bool hasLines);

  /// Whether a transfer of so many bytes goes in lines. Those of a rank to itself do where there
  /// are lines.
  OCCL_INLINE bool isInLines(uint64_t bytes, bool isToItself) const {
    return lineBytes != 0 && (isToItself || bytes <= kLinePieces * lineBytes);
  }
  /// Of its pieces but the last.
  OCCL_INLINE uint64_t pieceBytes(uint64_t bytes, bool isToItself) const {
    return isInLines(bytes, isToItself) ? lineBytes : evenly(bytes, kPiecesForGroups, slotBytes);
  }
  /// The same of what a rank copies to itself without slots.
  static OCCL_INLINE uint64_t copiedBytes(uint64_t bytes) {
    return evenly(bytes, kPiecesForGroups / 4, 128 << 10);
  }
  OCCL_INLINE uint64_t pieces(uint64_t bytes, bool isToItself) const {
    return piecesOf(bytes, pieceBytes(bytes, isToItself));
  }
  static OCCL_INLINE uint64_t piecesOf(uint64_t bytes, uint64_t each) {
    return bytes == 0 ? 1 : (bytes + each - 1) / each;
  }
  /// What is zero at first comes first.
  OCCL_INLINE uint64_t clearedBytes() const {
    return wordBytes() + uint64_t(numRanks) * numSlots * bytesInLines();
  }
  OCCL_INLINE uint64_t bytes() const { return clearedBytes() + bytesOfSlots(); }
  OCCL_INLINE uint64_t bytesOfSlots() const { return uint64_t(numRings()) * numSlots * slotBytes; }
  /// What slot() takes for an arena where slots lie in memory of their own from `slots` on.
  char *arenaFor(char *slots) const {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(slots) - begin - clearedBytes());
  }

  /// In a rank's device memory: DeviceMemory::onDevice().
  OCCL_INLINE DirectionState *state(char *own, bool isSend, uint32_t peer) const {
    return reinterpret_cast<DirectionState *>(own + begin) + (isSend ? numRanks : 0) + peer;
  }
  // In a rank's arena.
  /// Of what this rank receives from `source`.
  OCCL_INLINE SlotHeader *header(char *arena, uint32_t source, uint32_t slot) const {
    return reinterpret_cast<SlotHeader *>(arena + begin + 2 * numRanks * sizeof(DirectionState)) +
           uint64_t(source) * numSlots + slot;
  }
  /// Of what this rank sends to `destination`: how many uses of the slot are over.
  OCCL_INLINE uint64_t *emptied(char *arena, uint32_t destination, uint32_t slot) const {
    return reinterpret_cast<uint64_t *>(header(arena, numRanks, 0)) +
           uint64_t(destination) * numSlots + slot;
  }
  OCCL_INLINE char *lines(char *arena, uint32_t source, uint32_t slot) const {
    return arena + begin + wordBytes() + (uint64_t(source) * numSlots + slot) * bytesInLines();
  }
  /// In rank `owner`'s, or of arenaFor(). Where there are lines there is none for what it sends to
  /// itself.
  OCCL_INLINE char *slot(char *arena, uint32_t owner, uint32_t source, uint32_t slot) const {
    const uint32_t ring = lineBytes != 0 && source > owner ? source - 1 : source;
    return arena + begin + clearedBytes() + (uint64_t(ring) * numSlots + slot) * slotBytes;
  }
  /// Of slots.
  OCCL_INLINE uint32_t numRings() const { return lineBytes != 0 ? numRanks - 1 : numRanks; }

private:
  static OCCL_INLINE uint64_t evenly(uint64_t bytes, uint64_t pieces, uint64_t most) {
    constexpr uint64_t kSmallest = 32 << 10, kUnit = 4 << 10;
    const uint64_t even = (bytes / pieces + kUnit - 1) / kUnit * kUnit;
    const uint64_t enough = even < kSmallest ? kSmallest : even;
    return enough < most ? enough : most;
  }
  OCCL_INLINE uint64_t bytesInLines() const { return 2 * lineBytes; }
  OCCL_INLINE uint64_t wordBytes() const {
    return 2 * numRanks * sizeof(DirectionState) +
           uint64_t(numRanks) * numSlots * (sizeof(SlotHeader) + sizeof(uint64_t));
  }
};

/// What the lines of a use have as their flag; not 0, as they begin.
OCCL_INLINE uint32_t lineFlag(uint64_t use) { return static_cast<uint32_t>(use % 0xffffffff) + 1; }

} // namespace occl::cuda
