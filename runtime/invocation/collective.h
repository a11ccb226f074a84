// What a rank knows of collectives. A shape is a plan bound to a count, a type and an operation; a
// sequence is what pairs calls: the k-th of a rank belongs to the k-th of the others. The calls of
// a sequence may have any shapes.
#pragma once

#include "plan/model/aliasing.h"
#include "plan/model/plan.h"
#include "runtime/base/status.h"
#include "runtime/control/records/announce.h"
#include "runtime/exec/bind/bind.h"
#include "runtime/observe/counters/collective_counters.h"
#include "runtime/sync/atomic.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::net {
class Crossing;
}

namespace occl::daemon {

struct OpenInvocation;

/// What a shape is made of; id, name, priority, timeout and callbacksNeverBlock are of collectives
/// registered on devices.
struct CollectiveSpec {
  uint64_t id = 0;
  std::string name; // for reports; may be empty
  std::shared_ptr<const plan::Plan> plan;
  uint64_t planHash = 0;
  uint64_t count = 0; // elements of one part
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  int32_t priority = 0;
  std::chrono::milliseconds timeout{0};
  bool callbacksNeverBlock = false;
  uint32_t rounds = 1; // that the plan has; then planHash is as hashInRounds() makes it
};

/// What a plan accesses in the buffers of other ranks, without messages. Lists are ascending.
struct DirectAccess {
  bool exists = false;             // on any rank
  bool reachesScratch = false;     // of another rank
  bool byThisRank = false;         // to buffers of others
  std::vector<uint32_t> accessors; // ranks that access this rank's buffers
  /// Of these, those that this rank waits for after a failure (Core::settleFailure).
  std::vector<uint32_t> awaited;
  std::vector<uint32_t> storedTo; // ranks to whose buffers this rank stores
};

/// The sequence of the calls that have no id.
inline constexpr uint64_t kCallSequence = ~uint64_t{0};

/// What a call says about its shape; the same on all ranks.
struct Signature {
  uint64_t planHash = 0; // of a plan of the caller's own; 0 if it is chosen
  uint64_t count = 0;
  uint32_t root = 0;
  uint8_t kind = 0; // the API's value
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;

  bool operator==(const Signature &) const = default;
};

/// How one call is treated, whatever its shape.
struct CallOptions {
  int32_t priority = 0;
  std::chrono::milliseconds timeout{0};
  bool callbacksNeverBlock = false;
  const char *name = nullptr; // for reports
};

/// Ascending; never null in a shape.
using RankList = std::shared_ptr<const std::vector<uint32_t>>;

/// What a thread block moves to and from other ranks in one invocation.
struct BlockBytes {
  uint64_t sent = 0, received = 0;
};

/// A shape of one rank. Immutable but for `unreclaimed`.
struct Collective {
  CollectiveSpec spec;
  /// Of the calls that have this shape.
  Signature signature;
  std::shared_ptr<const interpreter::Binding> binding;
  /// What of it goes to other machines; null if all ranks are local.
  std::shared_ptr<const net::Crossing> crossing;
  transport::CollectiveTraits traits;
  /// Ranks that read this rank's arena block or access its buffers, and so read its announce
  /// record; ascending.
  std::vector<uint32_t> readers;
  DirectAccess direct;
  /// By rank whose buffers this one accesses directly: the bytes of input and output there, and
  /// nothing of scratch. Empty if there is none.
  std::vector<std::optional<std::array<uint64_t, 3>>> accessedBytes;
  bool accesses(uint32_t r) const { return !accessedBytes.empty() && accessedBytes[r]; }
  /// Neighbours of this rank, (rank +- 1) mod numRanks, whose calls its own can end without: it
  /// looks at their records all the same. So all ranks are compared, over one another.
  std::vector<uint32_t> compared;
  /// `readers`, and who compares itself with this rank: they read its record.
  RankList recordReaders;
  std::vector<BlockBytes> bytesOfBlocks;
  uint64_t bytesSent = 0, bytesReceived = 0; // of one invocation
  /// Its arena blocks are nothing but lines of 64-bit flags, of which it has few: they may lie in a
  /// pre-posted ring, where they fit. The same on all ranks.
  bool mayUseRing = false;
  /// A hash of the traits.
  uint64_t flagTag = 0;
  /// The first step of its one thread block rings all readers.
  bool firstStepRingsReaders = false;
  /// Small: who submits it with a callback makes the first visit.
  bool beginsAtOnce = false;
  /// What an average of floats divides each input by, so that it is bound as a sum; else 1.
  uint32_t inputDivisor = 1;
  /// Its calls may have a factor for their input: it reduces, and runs out of place.
  bool mayHaveFactor = false;
  /// How its callers' buffers may lie.
  plan::Aliasing aliasing;
  /// Invocations that refer to it; under the admission's lock.
  uint32_t unreclaimed = 0;

  /// "'name' (id 7)" as one of a sequence; "'name'" of kCallSequence. An empty name is the plan's.
  std::string describe(uint64_t sequence, const std::string &name = "") const;
  /// Whether rank r's block of an invocation lies in r's pre-posted ring. A rank that needs no
  /// block needs no ring.
  bool fits(const transport::PrepostedRing &ring, uint32_t r) const {
    return mayUseRing && binding->arenaBytes(r) <= ring.largest;
  }
  /// The first of those that take most of their arena for an invocation.
  uint32_t neediestRank() const;
  /// What the flags of an invocation exceed by its slices' numbers, less than 2^kSliceBits. For
  /// blocks in rings: whatever has been in one, no line in it has a flag of today, but for hashes
  /// of traits and sequences that are equal, or as far apart as two calls (docs/memory.md). Else 0,
  /// for cleared blocks.
  uint64_t flagBase(uint64_t sequence, uint64_t ordinal) const;
  static constexpr unsigned kSliceBits = 8;
};

/// "'name' (id 7)"; "'name'" of kCallSequence.
std::string describe(uint64_t sequence, const std::string &name);

/// "allreduce" of a kind of the API; of 0, or what is none, "a plan of its own".
std::string nameOfKind(uint32_t kind);

/// Of a plan in so many rounds, 1 to 256, from that of the plan; no plan's own.
uint64_t hashInRounds(uint64_t planHash, uint32_t rounds);
inline constexpr uint64_t kRoundsMask = 0x1ff; // where such a hash has them
constexpr uint64_t roundsOf(uint64_t hash) { return hash & kRoundsMask; }

/// "allreduce, count 4, ..." for errors; of a partitioned one with its rounds, which its hash
/// tells.
std::string describe(const transport::CollectiveTraits &traits, bool isPartitioned = false);

/// What thread block `block` moves.
BlockBytes bytesOf(const interpreter::Program &program, uint32_t block);

/// Where a rank is that binds a plan.
struct BindPlace {
  uint32_t rank = 0;
  /// From a block of the arena to its heads: transport::Segment::sharedArena().
  uint64_t headsDistance = 0;
  /// Then it refers to large messages, and awaits only who stores.
  bool acrossProcesses = false;
  /// By rank: of another machine. Empty: none is. Else protocol Simple is used, nothing is referred
  /// to, and all ranks look at all records.
  std::vector<bool> isRemote = {};
};

/// Binds the plan. Errors: those of bind().
StatusOr<std::unique_ptr<Collective>> makeCollective(CollectiveSpec spec, const BindPlace &place);

/// Invocations one behind the other, by `nextWaiting`; each is in one list at a time. No memory is
/// needed for it.
class InvocationList {
public:
  bool isEmpty() const { return !first; }
  OpenInvocation *front() const { return first; }
  void add(OpenInvocation &invocation);
  /// Behind these those of the other list, which is empty then.
  void append(InvocationList &other);
  /// The first one, which is taken off; nullptr if there is none.
  OpenInvocation *take();

private:
  OpenInvocation *first = nullptr, *last = nullptr;
};

/// A sequence: an id's announce cells, ordinals and invocations; lives while it has a cell.
/// `nextOrdinal` invocations of it have been before.
struct IdState {
  IdState(uint64_t id, uint32_t numRanks) : id(id), peerCells(numRanks), peerRings(numRanks) {}

  const uint64_t id;
  /// In the own segment; from the first submission on, see AnnounceCells.
  transport::AnnounceCell *cell = nullptr;
  /// In the peers' segments, once found.
  std::vector<Atomic<const transport::AnnounceCell *>> peerCells;

  /// Where the peers' pre-posted rings lie, packed, once found: each invocation would touch some
  /// pages of every peer's segment for it.
  std::vector<Atomic<uint64_t>> peerRings;
  /// How often some of them were forgotten.
  Atomic<uint32_t> ringsForgotten{0};

  // Under the admission's lock.
  /// Known as long as it has a cell, and has found out with what the others count.
  uint64_t nextOrdinal = 0;
  bool isCounted = false;
  bool isActive = false;  // may be submitted: its cell is not on its way to another sequence
  bool isRetired = false; // AnnounceCells looks after it
  /// While it is active: the one submitted next after it, and the one before it.
  IdState *newer = nullptr, *older = nullptr;
  /// All ranks are through with all invocations below it.
  uint64_t settledBelow = 0;
  /// By ordinal % kRecords: invocations whose record and memory are not yet free.
  std::array<OpenInvocation *, transport::AnnounceCell::kRecords> unreclaimed{};
  /// Of its last invocation, for reports; no plan before the first. An empty name is the plan's.
  std::string name;
  std::shared_ptr<const plan::Plan> plan;
  uint32_t rounds = 1;
  /// The invocation that has the same, as long as it is not reclaimed.
  const OpenInvocation *named = nullptr;
  /// "'name' (id 7)"; it has a plan.
  std::string describe() const;
  /// Its own as long as it has its cell, which says where; from the first invocation on that needs
  /// it.
  transport::PrepostedRing ring;
  /// By ordinal % kRecords, if the last invocation there uses the ring: who reads its block or its
  /// record. The shape may be gone.
  std::array<RankList, transport::AnnounceCell::kRecords> ringReaders;
  /// All of them have finished so many invocations, or more.
  uint64_t finishedByReaders = 0;

  /// Its `submitted` and their number under the admission's lock, the rest as it says.
  insight::CollectiveCounters counters;

  // Under the task board's lock: invocation i + 1 starts when i is finished on this rank.
  OpenInvocation *running = nullptr;
  InvocationList waiting;
};

} // namespace occl::daemon
