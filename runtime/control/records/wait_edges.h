// What a rank's stuck executors wait for, published in its segment so that any rank can tell who
// waits for whom.
#pragma once

#include "runtime/sync/atomic.h"
#include "runtime/sync/sequence_lock.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace occl::transport {

enum class WaitReason : uint32_t {
  Announce,   // the peer has not submitted the invocation
  Data,       // a message
  Credit,     // room for one
  Dependency, // another thread block of the rank
  Signal,
  Begin, // the peer has submitted the invocation, and not finished the one before
};
inline constexpr size_t kNumWaitReasons = 6;

/// As dependencies number what the rank's own program has to mark as ready, behind thread blocks.
inline constexpr uint32_t kFirstPartition = 1u << 31;

const char *toString(WaitReason reason);

/// One thread block of an open invocation that cannot go on until `peer` does something. For a
/// dependency the peer is the rank itself.
struct WaitEdge {
  uint64_t collective = 0;
  uint64_t ordinal = 0;
  uint32_t block = 0;
  uint32_t instruction = 0; // position in the block
  WaitReason reason = WaitReason::Announce;
  uint32_t peer = 0;
  uint32_t thing = 0; // for a dependency: the thread block, or from kFirstPartition on a partition
  /// Since when, in ticks(), which processes of a machine share; 0 if unknown.
  uint64_t since = 0;

  bool operator==(const WaitEdge &) const = default;
};

/// A consistent copy of what a rank published last. The version grows with every publication and
/// every progress.
struct WaitSnapshot {
  uint64_t version = 0;
  uint64_t confirmations = 0;
  std::vector<WaitEdge> edges;
};

/// A sequence lock over a bounded list of edges: one writer at a time, readers in any process.
class WaitEdgeBoard {
public:
  static constexpr uint32_t kMaxEdges = 128;

  /// Owner only, one thread at a time. Edges beyond kMaxEdges are dropped. Publishing what is
  /// already there changes nothing, the version neither.
  void publish(std::span<const WaitEdge> edges);
  /// Something moved: no edge is valid any more. Cheap if nothing was published.
  void clear() {
    if (numEdges.load(std::memory_order_relaxed) != 0)
      publish({});
  }
  /// The owner has looked at everything it waits for once more and found nothing. Any thread of the
  /// owner.
  void confirm() { confirmations.fetch_add(1, std::memory_order_release); }
  /// Never waits: empty, with version 0, if the owner keeps writing (or died while it did).
  WaitSnapshot read() const;

private:
  static constexpr uint32_t kWordsPerEdge = 6;

  bool holds(std::span<const WaitEdge> edges) const;

  SequenceLock lock;
  Atomic<uint64_t> confirmations{0};
  Atomic<uint32_t> numEdges{0};
  Atomic<uint64_t> words[kMaxEdges * kWordsPerEdge];
};

} // namespace occl::transport
