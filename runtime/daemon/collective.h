// What a rank knows of a collective: the registered version, and what outlives a registration under
// the same id.
#pragma once

#include "plan/aliasing.h"
#include "plan/plan.h"
#include "runtime/base/atomic.h"
#include "runtime/base/status.h"
#include "runtime/insight/collective_counters.h"
#include "runtime/interpreter/bind.h"
#include "runtime/interpreter/flat_lines.h"
#include "runtime/transport/announce.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace occl::daemon {

class Lane;
struct OpenInvocation;

/// What the caller registers.
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

/// A registered collective of one rank. Immutable but for `counters`, `unreclaimed` and what `flat`
/// works in.
struct Collective {
  CollectiveSpec spec;
  std::shared_ptr<const interpreter::Binding> binding;
  transport::CollectiveTraits traits;
  /// Ranks that read this rank's arena block or access its buffers, and so read its announce
  /// record; ascending.
  std::vector<uint32_t> readers;
  DirectAccess direct;
  uint64_t bytesSent = 0, bytesReceived = 0; // of one invocation
  /// Its arena blocks are small and nothing but lines: see IdState::resident.
  bool mayBeResident = false;
  /// The first step of its one thread block rings all readers.
  bool firstStepRingsReaders = false;
  /// If its one thread block is such.
  std::unique_ptr<interpreter::FlatLines> flat;
  /// Small: who submits it with a callback makes the first visit.
  bool beginsAtOnce = false;
  /// How its callers' buffers may lie.
  plan::Aliasing aliasing;
  /// From the first submission on.
  std::unique_ptr<insight::CollectiveCounters> counters;
  /// Invocations that refer to it; under the admission's lock.
  uint32_t unreclaimed = 0;

  /// "'name' (id 7)".
  std::string describe() const;
  /// Of rank r's input and output; nothing of its scratch.
  std::array<uint64_t, 3> accessedBytes(uint32_t r) const;
};

/// Of one invocation of a collective.
struct BlockBytes {
  uint64_t sent = 0, received = 0;
};

/// What thread block `block` moves to and from other ranks.
BlockBytes bytesOf(const Collective &collective, uint32_t block);

/// Where a rank is that binds a plan.
struct BindPlace {
  uint32_t rank = 0;
  /// From a block of the arena to its heads: transport::Segment::sharedArena().
  uint64_t headsDistance = 0;
  /// Then it refers to large messages, and awaits only who stores.
  bool acrossProcesses = false;
};

/// Binds the plan. Errors: those of bind().
StatusOr<std::unique_ptr<Collective>> makeCollective(CollectiveSpec spec, const BindPlace &place);

/// An id's announce cells, ordinals and invocations; lives while it is registered or has a cell.
/// `nextOrdinal` invocations of it have been before.
struct IdState {
  IdState(uint64_t id, uint32_t numRanks);
  ~IdState();

  const uint64_t id;
  /// In the own segment; from the first submission on, see AnnounceCells.
  transport::AnnounceCell *cell = nullptr;
  /// In the peers' segments, once found.
  std::vector<Atomic<const transport::AnnounceCell *>> peerCells;

  /// Where the peers' leased rings lie, once found, as long as `resident` is: each invocation would
  /// touch some pages of every peer's segment for it.
  std::vector<Atomic<char *>> leases;
  /// How often one of them has turned out to be old.
  Atomic<uint32_t> leasesForgotten{0};

  // Under the admission's lock.
  /// Known as long as it has a cell, and has found out with what the others count.
  uint64_t nextOrdinal = 0;
  bool isCounted = false;
  bool isActive = false;  // submitted since it was registered
  bool isRetired = false; // AnnounceCells looks after it
  /// All ranks are through with all invocations below it.
  uint64_t settledBelow = 0;
  /// By ordinal % kRecords: invocations whose record and memory are not yet free.
  std::array<OpenInvocation *, transport::AnnounceCell::kRecords> unreclaimed{};
  std::unique_ptr<Collective> registered;
  /// Resident: a ring of arena blocks is its own as long as it has its cell, whose lease says
  /// where. Only the first registration that may be is; others reserve a block for each invocation.
  const Collective *resident = nullptr;
  bool hasLease = false;
  uint64_t ringOffset = 0, ringBytes = 0;
  /// All readers have finished so many invocations, or more.
  uint64_t finishedByReaders = 0;
  /// While it is resident, and may be null.
  std::unique_ptr<Lane> lane;

  // Under the task board's lock: invocation i + 1 starts when i is finished on this rank.
  OpenInvocation *running = nullptr;
  OpenInvocation *firstWaiting = nullptr, *lastWaiting = nullptr;
};

} // namespace occl::daemon
