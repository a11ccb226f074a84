// One submitted invocation on one rank, from admission until its memory is free again.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/control/records/wait_edges.h"
#include "runtime/exec/host/partitions.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/step.h"
#include "runtime/invocation/collective.h"
#include "runtime/invocation/lane.h"
#include "runtime/observe/counters/collective_counters.h"
#include "runtime/observe/trace/trace_event.h"
#include "runtime/queue/request_table.h"
#include "runtime/sched/policy/task_queue.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/transfer/operation.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace occl::transport {
struct Home;
}

namespace occl::daemon {

/// One thread block of it. While claimed, `context` is the claimer's; the rest is under the task
/// board's lock.
struct BlockTask : scheduler::Task {
  OpenInvocation *invocation = nullptr;
  uint32_t block = 0;
  /// Where it stands: saved only after progress.
  interpreter::BlockContext context;
  /// What its last visit was blocked by, and at which instruction.
  interpreter::Obstacle obstacle;
  uint32_t instruction = 0;
  insight::BlockMeter::Span wait;   // the same, and since when
  SteadyClock::time_point lookedAt; // without preemption: when that visit began
  uint64_t lookedIn = 0;            // the place's epoch when that visit began
  uint64_t claimedIn = 0;           // the same of the last visit, which may be under way
  /// The claimer's.
  insight::BlockMeter meter;

  /// As it is before its first visit, of the same block. It is not in the queue.
  void renew(OpenInvocation &invocation);
};

class BoardPlace;
struct Core;
class Exchange;

/// A copy of a rank's input, in which each element is scaled or as it was: of the workspaces, or of
/// the heap, where peers can access it.
struct ScaledInput {
  std::byte *data = nullptr; // null: there is none
  uint64_t bytes = 0;
  bool isInHeap = false;
};

struct OpenInvocation {
  using Clock = SteadyClock;

  // Constant from admission on.
  Core *core = nullptr;
  BoardPlace *place = nullptr; // the core's
  Collective *collective = nullptr;
  IdState *id = nullptr;
  uint64_t ordinal = 0;
  RequestId request = 0; // 0: the result is `own`
  bool hasCallback = false;
  bool usesRing = false; // its block, if it needs one, is the ring's
  int32_t priority = 0;
  bool callbacksNeverBlock = false;
  std::chrono::milliseconds timeout{0}; // 0: the communicator's
  std::string name;                     // of the call, for reports; may be empty
  Clock::time_point deadline;           // a few milliseconds late at most
  insight::InvocationTimes times;
  uint64_t arenaOffset = 0;        // of its block, if it has one
  transport::Home *home = nullptr; // that is its block
  std::byte *workspace = nullptr;  // places, progress, tasks, scratch
  ScaledInput scaled;              // what it reads in place of the user's input
  Lane lane;                       // known only if it uses the ring; under the admission's lock
  interpreter::Invocation view;
  /// Of whose buffers parts are there, and used, before the whole; null: they are there.
  interpreter::Partitions *partitions = nullptr;
  std::span<BlockTask> tasks;
  /// Its one task executes this; `view`, `arenaOffset` and `workspace` are nothing then. Null: it
  /// executes a plan.
  transfer::Operation *operation = nullptr;
  Exchange *exchange = nullptr; // that it is a part of; its result is that one's

  /// Executors': ranks below it have announced the invocation; numRanks + 1 once its tasks stand as
  /// all ranks have them.
  Atomic<uint32_t> announcedBelow{0};
  /// The highest that a rank was seen to give it, and whom to look at next.
  Atomic<int32_t> highestPriority{0};
  Atomic<uint32_t> nextLook{0};

  // Under the task board's lock.
  uint32_t blocksLeft = 0;
  OpenInvocation *nextWaiting = nullptr; // see InvocationList

  /// Set when no executor of this rank refers to it any more, but for its result.
  Atomic<bool> finished{false};
  OwnResult own;

  // Under the admission's lock: all invocations that are not reclaimed.
  OpenInvocation *previous = nullptr, *next = nullptr;

  /// "'name' (id 7), invocation 3".
  std::string describe() const;
  /// "collective 'name' (id 7), invocation 3", or "transfers 5 to 7 from rank 0 to rank 1".
  std::string subject() const;
};

inline void InvocationList::add(OpenInvocation &invocation) {
  invocation.nextWaiting = nullptr;
  (last ? last->nextWaiting : first) = &invocation;
  last = &invocation;
}

inline void InvocationList::append(InvocationList &other) {
  if (!other.first)
    return;
  (last ? last->nextWaiting : first) = other.first;
  last = other.last;
  other = {};
}

inline OpenInvocation *InvocationList::take() {
  OpenInvocation *taken = first;
  if (taken)
    first = taken->nextWaiting;
  if (!first)
    last = nullptr;
  return taken;
}

/// The Mismatch of two ranks that have different things in mind with a call.
Status disagreement(const std::string &call, uint32_t rank, const transport::CollectiveTraits &mine,
                    uint32_t peer, const transport::CollectiveTraits &theirs,
                    bool isPartitioned = false);

/// Private memory that an invocation of the collective takes.
uint64_t workspaceBytes(const Collective &collective, uint32_t numRanks);

/// Lays out the workspace of `invocation` (collective, id, workspace and arenaOffset are set) and
/// makes it ready to run on the user's buffers. Zeroes the control words of its arena block.
void prepare(OpenInvocation &invocation, const Fabric &fabric, const void *input, void *output);

/// Binds the arena blocks of the peers that have announced this invocation since, if `awaited` is
/// one of them. True if it is. Mismatch if a peer has announced something else, saying what each
/// has. Several executors may do it at once.
StatusOr<bool> bindPeers(OpenInvocation &invocation, const Fabric &fabric, uint32_t awaited);

/// For an invocation that may use rings and waits for data of rank `peer`: whether `peer` has
/// announced it. Binds the block that its record names, which is another one if `peer` has
/// forgotten the sequence and come back to it, or got its ring later. Mismatch as bindPeers.
StatusOr<bool> confirmPeer(OpenInvocation &invocation, const Fabric &fabric, uint32_t peer);

/// Looks at the records of the ranks that the invocation, which has been announced, is compared
/// with. Of two ranks that do, one sees the other's. Mismatch as bindPeers.
Status compareNeighbours(const OpenInvocation &invocation, const Fabric &fabric);

/// The cell of the invocation's collective in rank r's segment, or nullptr if r has never submitted
/// it.
const transport::AnnounceCell *peerCell(IdState &id, const Fabric &fabric, uint32_t r);

/// What `obstacle` means for a task that stands at `instruction`.
insight::BlockMeter::Wait waitFor(const interpreter::Obstacle &obstacle, uint32_t instruction,
                                  OpenInvocation &invocation, const Fabric &fabric);

/// An event of the invocation.
insight::TraceEvent eventOf(insight::TraceKind kind, const OpenInvocation &invocation, Ticks from,
                            Ticks to);

/// What a blocked task waits for, as its rank publishes it.
transport::WaitEdge edgeOf(const BlockTask &task);

/// "thread block 0, instruction 2 (recv) at ring.coll:12 waits for data from rank 3", or that it
/// was not reached yet.
std::string describeObstacle(const BlockTask &task);
/// The same for a block that is at this instruction and meets this obstacle.
std::string describeObstacle(const OpenInvocation &invocation, uint32_t block, uint32_t instruction,
                             const interpreter::Obstacle &obstacle);

} // namespace occl::daemon
