#include "runtime/cuda/transfer/group_layout.h"

#include <algorithm>
#include <bit>
#include <string>

namespace occl::cuda {

namespace {

constexpr uint64_t kMostBytes = 16 << 20, kMostSlotBytes = 64 << 10;
constexpr uint64_t kEnoughMemory = 128 << 20;
constexpr uint32_t kMostSlots = 64;

/// Which thread block does a piece is a rank's own business, and found when it runs: the other side
/// may have more or fewer.
uint32_t blocksFor(const GroupLayout &layout) {
  uint64_t number = 0;
  for (const TransferDirection &direction : layout.directions)
    number += std::min(direction.numPieces, kMostDirectionBlocks);
  return static_cast<uint32_t>(std::min<uint64_t>(number, kMostTransferBlocks));
}

} // namespace

/// Small sends end without their receivers: so there are many slots, and room for what
/// occl_transfer.h promises.
PairGeometry PairGeometry::forMemory(uint64_t begin, uint32_t numRanks, uint64_t memoryBytes) {
  PairGeometry pairs;
  pairs.begin = begin;
  pairs.numRanks = numRanks;
  const uint64_t bytes = memoryBytes >= kEnoughMemory ? kMostBytes : memoryBytes / 16;
  const uint64_t ring = std::bit_floor(bytes / (kTransferWays * numRanks));
  if (ring < transfer::kEagerBytes)
    return pairs;
  pairs.numSlots = kMostSlots;
  pairs.slotBytes = std::min(ring / kMostSlots, kMostSlotBytes);
  return pairs;
}

StatusOr<GroupLayout> GroupLayout::of(std::span<const daemon::Transfer> transfers,
                                      const PairGeometry &pairs) {
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
    const uint64_t pieces = pairs.pieces(part.bytes());
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
  layout.numBlocks = blocksFor(layout);
  return layout;
}

} // namespace occl::cuda
