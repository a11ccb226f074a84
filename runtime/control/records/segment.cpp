// Lays a segment out in memory, and checks one that another rank has laid out.
#include "runtime/control/records/segment.h"

#include "runtime/sync/read_once.h"

#include <new>
#include <string>

namespace occl::transport {

namespace {

// Nothing but kVersion tells a rank of another build where everything lies.
static_assert(SegmentHeader::kVersion == 13 && sizeof(AnnounceCell) == 640);

Status mismatch(uint32_t rank, const char *what, uint64_t expected, uint64_t got) {
  return {StatusCode::Mismatch, "segment of rank " + std::to_string(rank) + ": " + what +
                                    ": expected " + std::to_string(expected) + ", got " +
                                    std::to_string(got) +
                                    "; all ranks must use the same version of the library"};
}

/// Of a ring, where there are so many.
uint64_t ringBytes(uint32_t numRanks) {
  uint64_t bytes = 256 << 10;
  while (bytes * numRanks > Segment::kRingsBytes)
    bytes /= 2;
  return bytes;
}

} // namespace

Segment::Segment(std::byte *base, uint32_t numRanks, uint64_t arenaBytes, uint64_t heapBytes)
    : base(base), sharedWords(reinterpret_cast<SharedWords *>(base + kArenaOffset + 2 * arenaBytes +
                                                              2 * kHeadsBytes)),
      bytesOfRing(ringBytes(numRanks)), bytesOfArena(arenaBytes), bytesOfHeap(heapBytes) {}

uint64_t Segment::bytesFor(uint64_t arenaBytes, uint64_t heapBytes) {
  return kFixedBytes + 2 * wholePages(arenaBytes) + wholePages(heapBytes);
}

StatusOr<Segment> Segment::format(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks,
                                  uint64_t heapBytes) {
  heapBytes = wholePages(heapBytes);
  if (numRanks > kMostRanks)
    return Status(StatusCode::InvalidArgument, "a segment is for at most " +
                                                   std::to_string(kMostRanks) + " ranks, got " +
                                                   std::to_string(numRanks));
  if (memory.size() < kFixedBytes + heapBytes)
    return Status(StatusCode::InvalidArgument,
                  "a segment needs " + std::to_string(kFixedBytes + heapBytes) +
                      " bytes and its arena, got " + std::to_string(memory.size()));
  // The announce table and the rings are left alone: zero is an empty one, and touching it would
  // make it resident.
  auto *header = new (memory.data()) SegmentHeader;
  header->rank = rank;
  header->numRanks = numRanks;
  // Arena and shared arena are equal halves of the rest, in whole pages.
  header->arenaBytes = (memory.size() - kFixedBytes - heapBytes) / 2 / kSegmentPage * kSegmentPage;
  header->heapBytes = heapBytes;
  header->magicAddress = reinterpret_cast<uint64_t>(&header->magic);
  Segment segment(memory.data(), numRanks, header->arenaBytes, heapBytes);
  new (&segment.words()) SharedWords;
  return segment;
}

StatusOr<Segment> Segment::open(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks) {
  if (memory.size() < kFixedBytes)
    return mismatch(rank, "bytes", kFixedBytes, memory.size());
  const auto &header = *reinterpret_cast<const SegmentHeader *>(memory.data());
  // Its owner may damage it at any time: each field is read once.
  const uint64_t magic = readOnce(header.magic), arenaBytes = readOnce(header.arenaBytes),
                 heapBytes = readOnce(header.heapBytes);
  const uint32_t version = readOnce(header.version), itsRank = readOnce(header.rank),
                 itsNumRanks = readOnce(header.numRanks);
  if (magic != SegmentHeader::kMagic)
    return mismatch(rank, "magic number", SegmentHeader::kMagic, magic);
  if (version != SegmentHeader::kVersion)
    return mismatch(rank, "layout version", SegmentHeader::kVersion, version);
  if (itsRank != rank)
    return mismatch(rank, "rank", rank, itsRank);
  if (itsNumRanks != numRanks)
    return mismatch(rank, "number of ranks", numRanks, itsNumRanks);
  // The sizes of arena and heap must explain the size of the memory.
  const uint64_t shared = memory.size() - kFixedBytes; // arenas and heap
  if (heapBytes > shared || heapBytes % kSegmentPage != 0)
    return mismatch(rank, "at most so many heap bytes", shared, heapBytes);
  if (uint64_t expected = (shared - heapBytes) / 2 / kSegmentPage * kSegmentPage;
      arenaBytes != expected)
    return mismatch(rank, "arena bytes", expected, arenaBytes);
  return Segment(memory.data(), numRanks, arenaBytes, heapBytes);
}

AnnounceTable Segment::announceTable() const {
  return AnnounceTable(std::span(reinterpret_cast<AnnounceCell *>(base + kTableOffset), kCells),
                       base + kIndexOffset);
}

PairRing Segment::ringTo(uint32_t r) const {
  return {reinterpret_cast<RingPosition *>(base + kTailsOffset) + r,
          reinterpret_cast<RingPosition *>(sharedArena() + bytesOfArena + kHeadsBytes) + r,
          base + kRingsOffset + r * bytesOfRing, bytesOfRing};
}

std::span<std::byte> Segment::tailsAndRings() const {
  return {base + kTailsOffset, kTailsBytes + kRingsBytes};
}

PairRing Segment::noticesTo(uint32_t r) const {
  return {reinterpret_cast<RingPosition *>(base + kNoticeTailsOffset) + r,
          reinterpret_cast<RingPosition *>(sharedArena() + bytesOfArena) + r,
          base + kNoticeRingsOffset + r * kNoticeRingBytes, kNoticeRingBytes};
}

std::span<std::byte> Segment::partitionedWords() const {
  return {base + kPartitionedWordsOffset, kPartitionedWordsBytes};
}

std::span<std::byte> Segment::heap() const {
  return {sharedArena() + bytesOfArena + 2 * kHeadsBytes + kWordsBytes, bytesOfHeap};
}

std::span<std::byte> Segment::sharedPages() const {
  return {sharedArena(), bytesOfArena + 2 * kHeadsBytes + kWordsBytes};
}

} // namespace occl::transport
