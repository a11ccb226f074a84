// Sorts the transfers of a group by direction, cuts them into pieces, and divides the pieces among
// thread groups.
#include "runtime/cuda/transfer/group_layout.h"

#include <algorithm>
#include <bit>
#include <string>

namespace occl::cuda {

namespace {

constexpr uint64_t kMostBytes = 32 << 20, kMostSlotBytes = 128 << 10, kMostLineBytes = 4 << 10;
constexpr uint64_t kEnoughMemory = 128 << 20;

/// Which group of threads does a piece is a rank's own business, and found when it runs: the other
/// side may have more or fewer.
void divideGroups(GroupLayout &layout) {
  uint64_t wanted = 0;
  for (const TransferDirection &direction : layout.directions)
    wanted += std::min(direction.numPieces, kMostDirectionGroups);
  const uint32_t most = wanted <= kMostGroups
                            ? kMostDirectionGroups
                            : kSharedGroups / static_cast<uint32_t>(layout.directions.size());
  // Each group has a piece of its own, unless some direction has more pieces than groups.
  layout.isSpread = true;
  for (TransferDirection &direction : layout.directions) {
    direction.firstGroup = layout.numGroups;
    direction.numGroups = std::min(direction.numPieces, most);
    layout.numGroups += direction.numGroups;
    layout.isSpread &= direction.numGroups == direction.numPieces;
  }
}

/// If what the rank sends to itself is what it receives from itself.
void copyToItself(GroupLayout &layout, uint32_t rank) {
  const auto find = [&](bool isSend) {
    return std::ranges::find_if(layout.directions, [&](const TransferDirection &one) {
      return one.peer == rank && one.isSend == isSend;
    });
  };
  // The group must have both sides, with as many parts.
  const auto sent = find(true), received = find(false);
  const auto end = layout.directions.end();
  if (sent == end || received == end || sent->numParts != received->numParts)
    return;
  // Part for part, both sides must have the same count and type.
  for (uint32_t i = 0; i < sent->numParts; ++i) {
    const TransferPart &from = layout.parts[sent->firstPart + i];
    const TransferPart &to = layout.parts[received->firstPart + i];
    if (from.count != to.count || from.type != to.type)
      return;
  }
  // The receives become copies of the sends, which are no direction any more.
  received->isCopy = true;
  received->copiedFrom = sent->firstPart;
  received->numPieces = 0;
  for (uint32_t i = 0; i < received->numParts; ++i) {
    TransferPart &part = layout.parts[received->firstPart + i];
    part.firstPiece = received->numPieces;
    received->numPieces += static_cast<uint32_t>(
        PairGeometry::piecesOf(part.bytes(), PairGeometry::copiedBytes(part.bytes())));
  }
  layout.directions.erase(sent);
}

/// See GroupLayout::warpsEach.
uint32_t warpsFor(const GroupLayout &layout, const PairGeometry &pairs) {
  constexpr uint64_t kMostDirectionBytes = 16 << 10, kMostSmallBytes = 64 << 10;
  constexpr uint64_t kBytesOfWarp = 1 << 10;
  constexpr uint32_t kMostWarps = kSmallThreads / 32, kMostSmallPieces = 32;
  // The group is small if each direction, and all together, have few bytes and pieces.
  uint64_t bytes = 0, largest = 0;
  for (const TransferDirection &direction : layout.directions) {
    uint64_t own = 0;
    for (uint32_t p = 0; p < direction.numParts; ++p) {
      const uint64_t part = layout.parts[direction.firstPart + p].bytes();
      if (!pairs.isInLines(part, false))
        return 0;
      own += part;
    }
    if (direction.numPieces > kMostSmallPieces)
      return 0;
    bytes += own;
    largest = std::max(largest, own);
  }
  if (largest > kMostDirectionBytes || bytes > kMostSmallBytes ||
      layout.parts.size() > kPartsInline)
    return 0;
  static_assert(kMostDirections <= kMostWarps);
  // A warp for each KiB of the largest direction, as far as the block has warps for all.
  const uint64_t most = kMostWarps / layout.directions.size();
  const uint64_t enough = std::bit_ceil((largest + kBytesOfWarp - 1) / kBytesOfWarp);
  return static_cast<uint32_t>(std::min(std::max<uint64_t>(enough, 1), std::bit_floor(most)));
}

} // namespace

/// Small sends end without their receivers: so there are many slots, and room for what
/// occl_transfer.h promises.
PairGeometry PairGeometry::forMemory(uint64_t begin, uint32_t numRanks, uint64_t memoryBytes,
                                     bool hasLines) {
  constexpr uint64_t kUnit = 256, kFewestLineBytes = 512;
  PairGeometry pairs;
  pairs.begin = begin;
  pairs.numRanks = numRanks;
  pairs.numSlots = kSlotsOfPair;
  const uint64_t bytes =
      memoryBytes >= kEnoughMemory ? std::min(memoryBytes / 8, kMostBytes) : memoryBytes / 16;
  const auto perSlot = [&](uint64_t of, uint64_t rings) {
    return of / std::max<uint64_t>(rings, 1) / kSlotsOfPair / kUnit * kUnit;
  };
  // Lines get an eighth, unless their slots would become too small.
  if (hasLines && perSlot(bytes / 8, numRanks) >= kFewestLineBytes)
    pairs.lineBytes = std::min(perSlot(bytes / 8, numRanks), kMostLineBytes);
  const uint64_t lines = 2 * pairs.lineBytes * numRanks * kSlotsOfPair;
  pairs.slotBytes = std::min(perSlot(bytes - lines, pairs.numRings()), kMostSlotBytes);
  // Small sends must end without their receivers, which needs room for them.
  if (pairs.slotBytes * kSlotsOfPair < transfer::kEagerBytes)
    pairs.numSlots = 0;
  return pairs;
}

StatusOr<GroupLayout> GroupLayout::of(std::span<const daemon::Transfer> transfers,
                                      const PairGeometry &pairs, uint32_t ownRank, bool mayCopy) {
  // By direction and peer; transfers of one direction stay in the order of their calls.
  std::vector<const daemon::Transfer *> sorted;
  for (const daemon::Transfer &transfer : transfers)
    sorted.push_back(&transfer);
  std::ranges::stable_sort(sorted, [](const auto *a, const auto *b) {
    return a->isSend != b->isSend ? a->isSend : a->peer < b->peer;
  });
  GroupLayout layout;
  for (const daemon::Transfer *transfer : sorted) {
    if (layout.directions.empty() || layout.directions.back().isSend != transfer->isSend ||
        layout.directions.back().peer != transfer->peer) {
      TransferDirection next;
      next.peer = transfer->peer;
      next.isSend = transfer->isSend;
      next.firstPart = static_cast<uint32_t>(layout.parts.size());
      layout.directions.push_back(next);
    }
    TransferDirection &direction = layout.directions.back();
    const transfer::Part &part = transfer->part;
    // Its pieces follow those of the parts before.
    const uint64_t pieces = pairs.pieces(part.bytes(), transfer->peer == ownRank);
    if (direction.numPieces + pieces > kMostPieces)
      return Status(StatusCode::InvalidArgument,
                    "more than " + std::to_string(kMostPieces * pairs.slotBytes >> 30) +
                        " GiB go to one rank, or come from one, in a group");
    layout.parts.push_back({part.buffer, part.count, direction.numPieces,
                            static_cast<uint32_t>(part.type),
                            static_cast<uint32_t>(sizeOf(part.type))});
    ++direction.numParts;
    direction.numPieces += static_cast<uint32_t>(pieces);
  }
  if (mayCopy)
    copyToItself(layout, ownRank);
  divideGroups(layout);
  layout.warpsEach = warpsFor(layout, pairs);
  return layout;
}

} // namespace occl::cuda
