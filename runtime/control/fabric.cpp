// The segments of all ranks as this rank sees them, and the way of a failure through them.
#include "runtime/control/fabric.h"

#include "runtime/net/network.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/read_once.h"

#include <string>
#include <utility>

namespace occl::daemon {

Fabric::Fabric(std::unique_ptr<bootstrap::Group> joined, uint64_t heapBytes)
    : group(std::move(joined)), heapBytes(heapBytes), memory(group->numRanks()),
      segments(group->numRanks()), bells(group->numRanks(), nullptr) {}

Fabric::~Fabric() {
  if (network())
    network()->stop(); // its threads call fail()
}

Status Fabric::format(uint32_t orderPolicy) {
  auto segment = transport::Segment::format(group->segment(rank()), rank(), numRanks(), heapBytes);
  if (!segment.ok())
    return segment.status();
  segments[rank()] = *segment;
  sharedHeap = std::make_unique<transport::SharedHeap>(segment->heap());
  own().header().orderPolicy = orderPolicy;
  // failed() looks at the own word from here on.
  watched.store(&failureWord(rank()), std::memory_order_release);
  // The network tells peers why this rank has failed, and this rank that a peer has.
  if (network())
    network()->attach(own(), {[this] { return failure(); },
                              [this](const Status &cause) {
                                if (!failed())
                                  fail(cause);
                              }});
  return {};
}

std::vector<bool> Fabric::remoteRanks() const {
  std::vector<bool> isRemote;
  for (uint32_t r = 0; network() && r < numRanks(); ++r)
    isRemote.push_back(!isLocal(r));
  return isRemote;
}

Status Fabric::connect(const Deadline &deadline) {
  for (uint32_t r = 0; r < numRanks(); ++r) {
    // Check the segment, and make writable the pages that all ranks store to.
    auto segment = transport::Segment::open(group->segment(r), r, numRanks());
    if (!segment.ok())
      return segment.status();
    if (Status allowed = group->allowStores(r, segment->sharedPages()); !allowed.ok())
      return allowed;
    uint32_t theirs = readOnce(segment->header().orderPolicy), mine = own().header().orderPolicy;
    if (theirs != mine)
      return {StatusCode::Mismatch, "rank " + std::to_string(r) + " has order policy " +
                                        std::to_string(theirs) + ", rank " +
                                        std::to_string(rank()) + " has " + std::to_string(mine) +
                                        "; use the same config->orderPolicy on all ranks"};
    segments[r] = *segment;
    bells[r] = r == rank() ? nullptr : &group->bell(r);
    std::span<std::byte> heap = segment->heap();
    // Executors find buffers of the rank by this.
    memory[r] = {reinterpret_cast<char *>(heap.data()), heap.size(), 0, &failureWord(r)};
  }
  if (!group->acrossProcesses())
    return {};
  // Each rank says whether it can read the others; after the meeting all know it.
  findReadable();
  Status met = meet(deadline);
  allReadAll = true;
  for (uint32_t r = 0; r < numRanks(); ++r)
    if (isLocal(r))
      allReadAll &= of(r).header().readsPeers.load(std::memory_order_acquire) != 0;
  return met;
}

void Fabric::findReadable() {
  bool readsAll = true; // of this machine
  for (uint32_t r = 0; r < numRanks(); ++r) {
    if (!isLocal(r))
      continue;
    memory[r].process = group->process(r).pid;
    readsAll &= interpreter::canRead(memory[r].process, readOnce(of(r).header().magicAddress),
                                     transport::SegmentHeader::kMagic);
  }
  own().header().readsPeers.store(readsAll, std::memory_order_release);
}

interpreter::Reference Fabric::referenceTo(const void *buffer, uint64_t bytes) const {
  if (sharesAddresses())
    return 0;
  // Only memory of the heap is mapped by the other ranks.
  if (auto offset = sharedHeap->offsetOf(buffer, bytes))
    return interpreter::kMappedReference | *offset;
  return allReadAll ? reinterpret_cast<interpreter::Reference>(buffer) : 0;
}

Status Fabric::allowHeapStores(uint32_t r) const { return group->allowStores(r, of(r).heap()); }

bool Fabric::hasLeft(uint32_t r) const {
  return of(r).header().state.load(std::memory_order_acquire) == transport::SegmentHeader::Left;
}

std::string Fabric::describeGone(uint32_t r) const {
  const std::string rank = "rank " + std::to_string(r);
  if (hasLeft(r))
    return rank + " has destroyed its communicator";
  return isLocal(r) ? "the process of " + rank + " is gone" : network()->describeDown(r);
}

void Fabric::leave() {
  own().header().state.store(transport::SegmentHeader::Left, std::memory_order_release);
  // Executors of the others may wait for this rank.
  for (Doorbell *bell : bells)
    if (bell)
      bell->ring();
}

void Fabric::tell(uint32_t r, uint32_t failedBy) {
  uint32_t none = 0;
  // The first rank whose failure arrives counts.
  failureWord(r).compare_exchange_strong(none, failedBy, std::memory_order_seq_cst);
  group->bell(r).ring();
}

/// Of this machine; the network tells the others what this rank has seen.
void Fabric::tellAll(uint32_t failedBy) {
  for (uint32_t r = 0; r < numRanks(); ++r)
    if (isLocal(r))
      tell(r, failedBy);
    else
      group->bell(r).ring();
}

uint32_t Fabric::firstLocal() const {
  uint32_t r = 0;
  while (!isLocal(r))
    ++r;
  return r;
}

void Fabric::fail(const Status &cause) {
  // The cause comes before the words, so that each rank which sees one finds it.
  own().header().failure.writeCause(cause);
  // The first rank's word decides whose cause is the first.
  uint32_t decided = 0;
  uint32_t mine = rank() + 1;
  if (failureWord(firstLocal()).compare_exchange_strong(decided, mine, std::memory_order_acq_rel))
    decided = mine;
  tellAll(decided);
  remember(decided); // after the own word: see PeerMemory::failedBy
}

bool Fabric::remember(uint32_t failedBy) const {
  if (watched.load(std::memory_order_relaxed) != &seen) {
    // Only the first failure is kept, also if several threads see one at once.
    uint32_t none = 0;
    seen.compare_exchange_strong(none, failedBy, std::memory_order_acq_rel);
    watched.store(&seen, std::memory_order_release);
  }
  return true;
}

bool Fabric::spreadFailureOf(uint32_t from) {
  uint32_t failedBy = failureWord(from).load(std::memory_order_acquire);
  // Another process may have taken the own word back; the copy stays.
  if (from == rank() && failed())
    failedBy = seen.load(std::memory_order_acquire);
  if (failedBy == 0)
    return false;
  for (uint32_t r = 0; r < numRanks(); ++r)
    if (isLocal(r) && failureWord(r).load(std::memory_order_acquire) == 0)
      tell(r, failedBy);
  return remember(failedBy);
}

bool Fabric::beginAccess() {
  // This rank counts itself and then looks for a failure; isAccessing() does the reverse.
  own().header().accessing.fetch_add(1, std::memory_order_seq_cst);
  fenceAfterUpdate();
  if (!failed())
    return true;
  endAccess();
  return false;
}

void Fabric::endAccess() {
  own().header().accessing.fetch_sub(1, std::memory_order_seq_cst);
  fenceAfterUpdate();
  if (!failed())
    return;
  // A rank that has failed may wait for the end of this access.
  for (Doorbell *bell : bells)
    if (bell)
      bell->ringFenced();
}

bool Fabric::isAccessing(uint32_t r) const {
  threadFence(std::memory_order_seq_cst); // its failure word is set: one of us sees the other
  return of(r).header().accessing.load(std::memory_order_acquire) != 0 && !isDead(r);
}

Status Fabric::failure() const {
  if (!failed())
    return {};
  if (Status known = seenCause.readCause(); !known.ok())
    return known;
  Status cause = causeOf(seen.load(std::memory_order_acquire));
  if (cause.ok()) // perhaps it is just being written: this is not remembered
    return {StatusCode::PeerFailed, "rank " +
                                        std::to_string(seen.load(std::memory_order_relaxed) - 1) +
                                        " failed without saying why"};
  seenCause.writeCause(cause);
  Status first = seenCause.readCause(); // of another thread, which may still be writing
  return first.ok() ? cause : first;
}

StatusCode Fabric::failureCode() const {
  try {
    return failure().code();
  } catch (const std::bad_alloc &) {
    return outOfMemory().code();
  }
}

/// Success if that rank has said nothing.
Status Fabric::causeOf(uint32_t failedBy) const {
  // Any rank may have damaged the word.
  if (failedBy > numRanks())
    return {StatusCode::InternalError, "the failure word of this rank's segment is damaged"};
  return of(failedBy - 1).header().failure.readCause();
}

StatusOr<std::unique_ptr<Fabric>> makeFabric(std::unique_ptr<bootstrap::Group> group,
                                             uint32_t orderPolicy, const Deadline &deadline,
                                             uint64_t heapBytes) {
  // The segment of this rank, then a meeting, then the segments of the others.
  auto fabric = std::make_unique<Fabric>(std::move(group), heapBytes);
  Status status = fabric->format(orderPolicy);
  if (status.ok())
    status = fabric->meet(deadline);
  if (status.ok())
    status = fabric->connect(deadline);
  if (!status.ok())
    return status;
  return fabric;
}

} // namespace occl::daemon
