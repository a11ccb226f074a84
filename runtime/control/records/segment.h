// The memory of one rank that all ranks map: who it is, failure word and wait edges, its announce
// table, and the arena from which the connectors of its invocations come. Ranks map it at different
// addresses, so everything in it is an offset.
//
//   header | announce index | announce cells (kCells)            written by the owner alone
//   tails and rings of notices | words of partitioned requests   likewise
//   tails and rings of transfers | arena                         likewise
//   shared arena | heads of notices | heads of transfers |
//   shared words                                                 written by all ranks
//   heap                                                         by the owner, and by ranks whose
//                                                                plans store there directly
//
// Each group begins at a page. Ranks that are other processes map what they do not write for
// reading only (daemon::Fabric). The shared arena is as large as the arena: the heads of a block of
// the arena, which its receivers store, lie there at the block's own offset. For transfers there is
// a ring for each rank that the owner sends to, and one for notices of partitioned requests
// (runtime/partitioned), whose words the peers read. The heap is memory of the user's that all
// ranks can access.
#pragma once

#include "runtime/base/largest_page.h"
#include "runtime/base/status.h"
#include "runtime/control/records/announce_table.h"
#include "runtime/control/records/failure_word.h"
#include "runtime/control/records/shrink_board.h"
#include "runtime/control/records/shrink_record.h"
#include "runtime/control/records/split_record.h"
#include "runtime/control/records/wait_edges.h"
#include "runtime/sync/atomic.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace occl::transport {

/// Written by the owner alone.
struct SegmentHeader {
  static constexpr uint64_t kMagic = 0x4f43434c5345474dull; // "OCCLSEGM"
  static constexpr uint32_t kVersion = 13;

  enum State : uint32_t { Alive = 1, Left = 2 };

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t rank = 0;
  uint32_t numRanks = 0;
  uint32_t orderPolicy = 0; // all ranks must use the same; set before others open the segment
  uint64_t arenaBytes = 0;
  uint64_t heapBytes = 0;
  /// Where the owner has `magic`: whoever can read it there can read the owner's memory.
  uint64_t magicAddress = 0;
  /// Whether the owner can read the memory of all other ranks of its machine.
  Atomic<uint32_t> readsPeers{0};
  /// Left once the owner has destroyed its communicator: it will start nothing any more.
  alignas(64) Atomic<uint32_t> state{Alive};
  /// Visits of the owner's executors that are under way and may access buffers of other ranks; see
  /// Fabric::beginAccess().
  alignas(64) Atomic<uint32_t> accessing{0};
  FailureCause failure;
  ShrinkBoard shrink;      // of one machine
  ShrinkCell shrinkRecord; // of several
  WaitEdgeBoard waitEdges;
  SplitRecord split;
  /// What the owner had read from SharedWords::reportsAsked before it published its wait edges.
  alignas(64) Atomic<uint32_t> reportsAnswered{0};

  /// Whether the owner has published since SharedWords::askForReport returned `number`.
  bool hasAnswered(uint32_t number) const {
    return static_cast<int32_t>(reportsAnswered.load(std::memory_order_acquire) - number) >= 0;
  }
};

/// Written by all ranks, so that any of them may damage it: who reads a word believes it only as
/// far as it can be checked.
struct SharedWords {
  /// 0 while all is well; else 1 + the rank whose cause counts. Set once, by any rank.
  alignas(64) Atomic<uint32_t> failedBy{0};
  ShrinkWords shrink; // rank 0's is used
  /// How often others have asked the owner to publish its wait edges at once.
  alignas(64) Atomic<uint32_t> reportsAsked{0};

  /// The number to wait for.
  uint32_t askForReport() { return reportsAsked.fetch_add(1, std::memory_order_acq_rel) + 1; }
};

/// How far one side of a ring has come, in bytes since the communicator was made.
struct alignas(64) RingPosition {
  Atomic<uint64_t> bytes{0};
};

/// Where the transfers of an ordered pair of ranks go through, or notices; see
/// transfer/pair_ring.h.
struct PairRing {
  RingPosition *tail = nullptr; // written by the source
  RingPosition *head = nullptr; // written by the destination
  std::byte *data = nullptr;    // written by the source
  uint64_t size = 0;            // a power of two
};

/// What the groups of a segment begin at multiples of.
inline constexpr uint64_t kSegmentPage = kLargestPage;
constexpr uint64_t wholePages(uint64_t bytes) {
  return (bytes + kSegmentPage - 1) / kSegmentPage * kSegmentPage;
}

/// One rank's segment as mapped here. A view: the memory is the caller's. What its header says of
/// sizes is read once, when it is opened. Thread safety: that of the parts.
class Segment {
public:
  static constexpr uint32_t kCells = 1u << 14;
  static constexpr uint32_t kMostRanks = 1024;
  /// Of tails and rings, whose pages are taken as they are touched.
  static constexpr uint64_t kTailsBytes = wholePages(sizeof(RingPosition) * uint64_t{kMostRanks});
  static constexpr uint64_t kRingsBytes = uint64_t{128} << 20;
  /// Of a ring of notices, and the words of all partitioned requests of the owner; likewise.
  static constexpr uint64_t kNoticeRingBytes = 4096;
  static constexpr uint64_t kPartitionedWordsBytes = uint64_t{16} << 20;
  static constexpr uint64_t kPartitionedBytes =
      kTailsBytes + kMostRanks * kNoticeRingBytes + kPartitionedWordsBytes;

  /// Memory that a segment with such an arena needs, in bytes.
  static uint64_t bytesFor(uint64_t arenaBytes, uint64_t heapBytes = 0);
  /// Makes a segment of `memory`, which is zero and page aligned; done once by its owner before
  /// others open it. InvalidArgument if the memory is too small.
  static StatusOr<Segment> format(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks,
                                  uint64_t heapBytes = 0);
  /// Opens what another rank has formatted; the memory may be mapped for reading only. Mismatch,
  /// with expected and got, if it is something else.
  static StatusOr<Segment> open(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks);

  Segment() = default;

  SegmentHeader &header() const { return *reinterpret_cast<SegmentHeader *>(base); }
  SharedWords &words() const { return *sharedWords; }
  AnnounceTable announceTable() const;
  std::byte *arena() const { return base + kArenaOffset; }
  uint64_t arenaBytes() const { return bytesOfArena; }
  /// As large as the arena, and right behind it.
  std::byte *sharedArena() const { return arena() + bytesOfArena; }
  std::span<std::byte> heap() const;
  /// Of the transfers from the owner to rank r; all rings of a communicator have one size.
  PairRing ringTo(uint32_t r) const;
  /// Tails and data of all these; it alone writes them.
  std::span<std::byte> tailsAndRings() const;
  /// Of the owner's notices to rank r.
  PairRing noticesTo(uint32_t r) const;
  /// Of the owner's partitioned requests; it alone writes them.
  std::span<std::byte> partitionedWords() const;
  /// What ranks other than the owner must be able to write: whole pages.
  std::span<std::byte> sharedPages() const;

private:
  static constexpr uint64_t kIndexOffset = wholePages(sizeof(SegmentHeader));
  static constexpr uint64_t kTableOffset =
      kIndexOffset + wholePages(AnnounceTable::indexBytes(kCells));
  static constexpr uint64_t kNoticeTailsOffset =
      kTableOffset + wholePages(sizeof(AnnounceCell) * uint64_t{kCells});
  static constexpr uint64_t kNoticeRingsOffset = kNoticeTailsOffset + kTailsBytes;
  static constexpr uint64_t kPartitionedWordsOffset =
      kNoticeRingsOffset + kMostRanks * kNoticeRingBytes;
  static constexpr uint64_t kTailsOffset = kNoticeTailsOffset + kPartitionedBytes;
  static constexpr uint64_t kRingsOffset = kTailsOffset + kTailsBytes;
  static constexpr uint64_t kArenaOffset = kRingsOffset + kRingsBytes;
  static constexpr uint64_t kHeadsBytes = kTailsBytes; // of transfers, and of notices
  static constexpr uint64_t kWordsBytes = wholePages(sizeof(SharedWords));
  /// Of a segment without arena and heap.
  static constexpr uint64_t kFixedBytes = kArenaOffset + 2 * kHeadsBytes + kWordsBytes;

  Segment(std::byte *base, uint32_t numRanks, uint64_t arenaBytes, uint64_t heapBytes);

  std::byte *base = nullptr;
  SharedWords *sharedWords = nullptr;
  uint64_t bytesOfRing = 0;
  uint64_t bytesOfArena = 0, bytesOfHeap = 0;
};

} // namespace occl::transport
