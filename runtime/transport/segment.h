// The memory of one rank that all ranks map: who it is, failure word and wait edges,
// its announce table, and the arena from which the connectors of its invocations come. Ranks map it
// at different addresses, so everything in it is an offset.
//
//   header | announce index | announce cells (kCells) | arena | heap
//
// The heap is memory of the user's that all ranks can access.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/base/status.h"
#include "runtime/transport/announce_table.h"
#include "runtime/transport/failure_word.h"
#include "runtime/transport/shrink_board.h"
#include "runtime/transport/split_record.h"
#include "runtime/transport/wait_edges.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace occl::transport {

/// How others ask a rank to publish its wait edges at once. The owner stores into `answered` what
/// it had read from `asked` before it published.
struct ReportRequests {
  alignas(64) Atomic<uint32_t> asked{0};
  Atomic<uint32_t> answered{0};

  /// The number to wait for.
  uint32_t ask() { return asked.fetch_add(1, std::memory_order_acq_rel) + 1; }
  bool hasAnswered(uint32_t number) const {
    return static_cast<int32_t>(answered.load(std::memory_order_acquire) - number) >= 0;
  }
};

struct SegmentHeader {
  static constexpr uint64_t kMagic = 0x4f43434c5345474dull; // "OCCLSEGM"
  static constexpr uint32_t kVersion = 5;

  enum State : uint32_t { Alive = 1, Left = 2 };

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t rank = 0;
  uint32_t numRanks = 0;
  uint32_t orderPolicy = 0; // all ranks must use the same; set before others open the segment
  uint64_t arenaOffset = 0; // from the start of the segment
  uint64_t arenaBytes = 0;
  uint64_t heapBytes = 0;
  /// Where the owner has `magic`: whoever can read it there can read the owner's memory.
  uint64_t magicAddress = 0;
  /// Whether the owner can read the memory of all other ranks.
  Atomic<uint32_t> readsPeers{0};
  /// Left once the owner has destroyed its communicator: it will start nothing any more.
  alignas(64) Atomic<uint32_t> state{Alive};
  FailureWord failure;
  ShrinkBoard shrink;
  WaitEdgeBoard waitEdges;
  SplitRecord split;
  ReportRequests reports;
};

/// One rank's segment as mapped here. A view: the memory is the caller's. Thread safety: that of
/// the parts.
class Segment {
public:
  static constexpr uint32_t kCells = 1u << 14;

  /// Memory that a segment with such an arena needs, in bytes.
  static uint64_t bytesFor(uint64_t arenaBytes, uint64_t heapBytes = 0);
  /// Makes a segment of `memory`, which is zero and page aligned; done once by its owner before
  /// others open it. InvalidArgument if the memory is too small.
  static StatusOr<Segment> format(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks,
                                  uint64_t heapBytes = 0);
  /// Opens what another rank has formatted. Mismatch, with expected and got, if it is something
  /// else.
  static StatusOr<Segment> open(std::span<std::byte> memory, uint32_t rank, uint32_t numRanks);

  Segment() = default;

  SegmentHeader &header() const { return *reinterpret_cast<SegmentHeader *>(base); }
  AnnounceTable announceTable() const;
  std::byte *arena() const { return base + header().arenaOffset; }
  uint64_t arenaBytes() const { return header().arenaBytes; }
  std::span<std::byte> heap() const { return {arena() + arenaBytes(), header().heapBytes}; }

private:
  explicit Segment(std::byte *base) : base(base) {}

  std::byte *base = nullptr;
};

} // namespace occl::transport
