// A rank's view of the segments of all ranks, and how a failure spreads through them.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/records/failure_word.h"
#include "runtime/control/records/segment.h"
#include "runtime/exec/host/peer_memory.h"
#include "runtime/memory/shared_heap.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/doorbell.h"

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace occl::daemon {

/// Thread safety: any, once connect() has succeeded.
class Fabric {
public:
  /// `group` is not null. Every rank has a shared heap of so many bytes, the same on all.
  explicit Fabric(std::unique_ptr<bootstrap::Group> group, uint64_t heapBytes = 0);
  ~Fabric();

  /// Makes this rank's segment. All ranks do it, then all meet, then all connect. `orderPolicy` is
  /// the number of the one that the rank's device has.
  Status format(uint32_t orderPolicy);
  /// Returns when all ranks have called it; errors as bootstrap::Group::barrier.
  Status meet(const Deadline &deadline) { return group->barrier(deadline); }
  /// Opens the segments of all ranks. Mismatch if one has another layout or order policy. Ranks
  /// that are processes then find out whether they can read each other's memory; they meet for
  /// that.
  Status connect(const Deadline &deadline = Deadline(std::chrono::seconds(30)));

  uint32_t rank() const { return group->rank(); }
  uint32_t numRanks() const { return group->numRanks(); }
  /// Whether an address of one rank is good on all.
  bool sharesAddresses() const { return !group->acrossProcesses(); }
  /// The connections to ranks of other machines; null if there are none.
  net::Network *network() const { return group->network(); }
  bool isLocal(uint32_t r) const { return group->isLocal(r); }
  /// By rank: whether it is of another machine. Empty without a network.
  std::vector<bool> remoteRanks() const;
  const transport::Segment &own() const { return segments[rank()]; }
  const transport::Segment &of(uint32_t r) const { return segments[r]; }
  transport::SharedHeap &heap() const { return *sharedHeap; }
  /// By rank: what this rank can access of it.
  const interpreter::PeerMemory *peerMemory() const { return memory.data(); }
  /// How others of this machine may refer to this rank's buffer: mapped if it lies in the heap,
  /// else as an address if all of them can read this process; 0 if they cannot. Between threads
  /// always 0: a peer that reads after a failure would do so behind its owner's back.
  interpreter::Reference referenceTo(const void *buffer, uint64_t bytes) const;
  /// Before this rank stores to buffers in the heap of rank r, which it may only read till then.
  /// SystemError.
  Status allowHeapStores(uint32_t r) const;
  /// By rank; null for this rank.
  Doorbell *const *doorbells() const { return bells.data(); }

  const bootstrap::Group &ranks() const { return *group; }

  /// The process of rank r is gone, and it had not destroyed its communicator before.
  bool isDead(uint32_t r) const { return !group->isAlive(r) && !hasLeft(r); }
  /// Rank r has destroyed its communicator.
  bool hasLeft(uint32_t r) const;
  /// Either: rank r does nothing any more.
  bool isGone(uint32_t r) const { return hasLeft(r) || isDead(r); }
  /// "the process of rank 1 is gone", or that it has destroyed its communicator. It isGone().
  std::string describeGone(uint32_t r) const;
  /// Tells the others that this rank has destroyed its communicator.
  void leave();

  /// Whether the communicator has failed, on whatever rank. Once this rank has seen it, it stays
  /// so, also if another process takes the word back. Loads of lines that do not change.
  bool failed() const {
    const uint32_t failedBy =
        watched.load(std::memory_order_acquire)->load(std::memory_order_acquire);
    return failedBy != 0 && remember(failedBy);
  }
  /// Makes the communicator fail on all ranks. The first cause counts, wherever it was seen; among
  /// the ranks of each machine.
  void fail(const Status &cause);
  /// Fails if check(), which returns a Status, does not succeed, or has no memory to say so: then
  /// with outOfMemory(). Does not throw std::bad_alloc.
  template <class Check> void failUnless(Check check) {
    try {
      if (Status status = check(); !status.ok())
        fail(status);
    } catch (const std::bad_alloc &) {
      fail(outOfMemory());
    }
  }
  /// If it has failed for rank r, as far as that one knows, it has for all ranks afterwards. False:
  /// not for r yet.
  bool spreadFailureOf(uint32_t r);
  /// Why it failed, as this rank has first read it; Success only if failed() is false.
  Status failure() const;
  /// Of failure(); SystemError where there is no memory for its text.
  StatusCode failureCode() const;

  /// Before an executor of this rank loads from or stores to buffers of other ranks itself. False:
  /// the communicator has failed, nothing is accessed; else endAccess() follows, soon. Who fails
  /// can so find out that nobody accesses its buffers any more: see isAccessing().
  bool beginAccess();
  /// Wakes who may wait for that.
  void endAccess();
  /// After failed() and spreadFailureOf(rank()): whether rank r may still access buffers of other
  /// ranks. Once false, it does not begin again. A process that is gone accesses nothing; one that
  /// is stopped in the middle stays there.
  bool isAccessing(uint32_t r) const;

private:
  Atomic<uint32_t> &failureWord(uint32_t r) const { return of(r).words().failedBy; }
  void tell(uint32_t r, uint32_t failedBy);
  void tellAll(uint32_t failedBy);
  uint32_t firstLocal() const;
  /// True. Only what is remembered first counts.
  bool remember(uint32_t failedBy) const;
  Status causeOf(uint32_t failedBy) const;
  void findReadable();

  std::unique_ptr<bootstrap::Group> group;
  const uint64_t heapBytes;
  std::unique_ptr<transport::SharedHeap> sharedHeap;
  std::vector<interpreter::PeerMemory> memory; // by rank
  bool allReadAll = false;
  std::vector<transport::Segment> segments; // by rank
  std::vector<Doorbell *> bells;            // by rank
  /// What other processes cannot write: the first failure that this rank has seen, as in its
  /// failure word, and the cause.
  mutable Atomic<uint32_t> seen{0};
  mutable transport::FailureCause seenCause;
  /// Where failed() looks: the own failure word, then `seen`.
  mutable Atomic<const Atomic<uint32_t> *> watched{&seen};
};

/// A connected view of a group's ranks: makes this rank's segment, meets the others, opens theirs.
StatusOr<std::unique_ptr<Fabric>> makeFabric(std::unique_ptr<bootstrap::Group> group,
                                             uint32_t orderPolicy, const Deadline &deadline,
                                             uint64_t heapBytes);

} // namespace occl::daemon
