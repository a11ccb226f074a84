#include "runtime/transport/segment.h"

#include <new>
#include <string>

namespace occl::transport {

namespace {

constexpr uint64_t roundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

constexpr uint64_t kPage = 4096;
constexpr uint64_t kIndexOffset = roundUp(sizeof(SegmentHeader), kPage);
constexpr uint64_t kTableOffset =
    kIndexOffset + roundUp(AnnounceTable::indexBytes(Segment::kCells), kPage);
constexpr uint64_t kArenaOffset =
    kTableOffset + roundUp(sizeof(AnnounceCell) * uint64_t{Segment::kCells}, kPage);

Status mismatch(uint32_t rank, const char *what, uint64_t expected, uint64_t got) {
  return {StatusCode::Mismatch, "segment of rank " + std::to_string(rank) + ": " + what +
                                    ": expected " + std::to_string(expected) + ", got " +
                                    std::to_string(got) +
                                    "; all ranks must use the same version of the library"};
}

} // namespace

uint64_t Segment::bytesFor(uint64_t arenaBytes, uint64_t heapBytes) {
  return kArenaOffset + roundUp(arenaBytes, kPage) + roundUp(heapBytes, kPage);
}

StatusOr<Segment> Segment::format(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks,
                                  uint64_t heapBytes) {
  heapBytes = roundUp(heapBytes, kPage);
  if (memory.size() < kArenaOffset + heapBytes)
    return Status(StatusCode::InvalidArgument,
                  "a segment needs " + std::to_string(kArenaOffset + heapBytes) +
                      " bytes and its arena, got " + std::to_string(memory.size()));
  // The announce table is left alone: zero is an empty one, and touching it would make it
  // resident.
  auto *header = new (memory.data()) SegmentHeader;
  header->rank = rank;
  header->numRanks = numRanks;
  header->arenaOffset = kArenaOffset;
  header->arenaBytes = memory.size() - kArenaOffset - heapBytes;
  header->heapBytes = heapBytes;
  header->magicAddress = reinterpret_cast<uint64_t>(&header->magic);
  return Segment(memory.data());
}

StatusOr<Segment> Segment::open(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks) {
  if (memory.size() < kArenaOffset)
    return mismatch(rank, "bytes", kArenaOffset, memory.size());
  const auto &header = *reinterpret_cast<const SegmentHeader *>(memory.data());
  if (header.magic != SegmentHeader::kMagic)
    return mismatch(rank, "magic number", SegmentHeader::kMagic, header.magic);
  if (header.version != SegmentHeader::kVersion)
    return mismatch(rank, "layout version", SegmentHeader::kVersion, header.version);
  if (header.rank != rank)
    return mismatch(rank, "rank", rank, header.rank);
  if (header.numRanks != numRanks)
    return mismatch(rank, "number of ranks", numRanks, header.numRanks);
  uint64_t shared = memory.size() - kArenaOffset; // arena and heap
  if (header.heapBytes > shared)
    return mismatch(rank, "at most so many heap bytes", shared, header.heapBytes);
  if (header.arenaOffset != kArenaOffset || header.arenaBytes != shared - header.heapBytes)
    return mismatch(rank, "arena bytes", shared - header.heapBytes, header.arenaBytes);
  return Segment(memory.data());
}

AnnounceTable Segment::announceTable() const {
  return AnnounceTable(std::span(reinterpret_cast<AnnounceCell *>(base + kTableOffset), kCells),
                       base + kIndexOffset);
}

} // namespace occl::transport
