// Epochs of partitioned sends and receives, as executors take them further.
#include "runtime/partitioned/request.h"

#include "runtime/control/records/pair_id.h"
#include "runtime/transfer/transfer.h"

#include <algorithm>
#include <new>

namespace occl::partitioned {

using interpreter::BlockContext;
using interpreter::BlockReason;
using interpreter::Obstacle;
using interpreter::StepResult;
using interpreter::StepStatus;

namespace {

uint64_t idOf(const Terms &terms, uint32_t rank) {
  return transport::partitionedIdOf(terms.isSend ? transport::Pair{rank, terms.peer}
                                                 : transport::Pair{terms.peer, rank});
}

} // namespace

Request::Request(daemon::Core &core, Matching &matching, const Terms &terms)
    : party{terms.isSend, terms.peer, terms.tag, terms.shape, terms.reference},
      sequence(idOf(terms, core.fabric->rank()), 0), core(core), matching(matching),
      sharesAddresses(core.fabric->sharesAddresses() || terms.peer == core.fabric->rank()) {
  sequence.counters.ensure(1);
}

std::string Request::describe() const { return party.describe(core.fabric->rank()); }

std::string Request::subject(uint64_t ordinal) const {
  return describe() + ", epoch " + std::to_string(ordinal);
}

bool Request::hasPeerStarted(uint64_t ofEpoch) const {
  const Counterpart *peer = party.counterpart.load(std::memory_order_acquire);
  return peer && peer->header && peer->header->started.load(std::memory_order_acquire) >= ofEpoch;
}

uint64_t Request::numMessages() const {
  if (party.isSend)
    return party.shape.numMessages();
  const Counterpart *sender = party.counterpart.load(std::memory_order_acquire);
  return sender ? sender->shape.numMessages() : 0;
}

Status Request::lookForStart(uint64_t ofEpoch) {
  // Gone and freed first: what it has started before that counts.
  const bool isGone = core.fabric->isGone(party.peer);
  const Counterpart *peer = lookForCounterpart();
  if (!failure.ok())
    return failure;
  const bool isFreed = peer && peer->isFreed.load(std::memory_order_acquire);
  if (hasPeerStarted(ofEpoch))
    return {};
  if (isFreed)
    (void)abandoned();
  else if (isGone)
    failure = {StatusCode::PeerFailed,
               core.fabric->describeGone(party.peer) + ", and has not started " + subject(ofEpoch)};
  return failure.ok() ? Status(StatusCode::InProgress, "") : failure;
}

const Counterpart *Request::lookForCounterpart() {
  if (const Counterpart *known = party.counterpart.load(std::memory_order_acquire))
    return known;
  if (Status looked = matching.look(party.peer); !looked.ok()) {
    failure = looked;
    return nullptr;
  }
  return party.counterpart.load(std::memory_order_acquire);
}

StepResult Request::abandoned() {
  failure = {StatusCode::Mismatch, subject(epoch) + ": rank " + std::to_string(party.peer) +
                                       " has freed its request and takes no part in this epoch"};
  return lost();
}

StepResult Request::damaged() {
  failure = {StatusCode::InternalError,
             describe() + ": a word of rank " + std::to_string(party.peer) +
                 " is of an epoch beyond this one: something has overwritten it in memory that "
                 "that rank writes"};
  return lost();
}

void SendRequest::useWords() {
  marks.setWords(MessageWords(party.header, party.shape.numMessages()));
}

StepResult SendRequest::run(BlockContext &, uint32_t) {
  const Counterpart *receiver = lookForCounterpart();
  if (!failure.ok())
    return lost();
  // Within an epoch marks are counted on from the last look.
  if (markedIn != epoch)
    markedBelow = 0;
  markedIn = epoch;
  markedBelow = marks.firstMissing(markedBelow, epoch);
  if (!receiver)
    return blocked(BlockReason::Credit, markedBelow, 0);
  // Freed first: what the receiver has said before that counts.
  const bool isFreed = receiver->isFreed.load(std::memory_order_acquire);
  if (!receiver->header)
    return abandoned();
  const uint64_t received = receiver->header->received.load(std::memory_order_acquire);
  // A receiver of nothing waits for no mark, and so may be epochs ahead.
  if (received > epoch && party.shape.numMessages() != 0)
    return damaged();
  if (received >= epoch)
    return {StepStatus::Finished, {}, 0};
  if (isFreed)
    return abandoned();
  return blocked(BlockReason::Credit, markedBelow, 0);
}

/// What this rank's program has to do is said before what the peer has.
std::string SendRequest::describe(uint64_t ordinal, const Obstacle &obstacle,
                                  const std::string &awaited) const {
  // Say the first partition that is not marked, and how many more there are.
  const uint64_t all = party.shape.partitions, first = marks.firstMissing(0, ordinal);
  if (first < all) {
    uint64_t missing = 0;
    for (uint64_t p = first; p < all; ++p)
      missing += marks.isMarked(p, ordinal) ? 0 : 1;
    const std::string of = " of " + std::to_string(all);
    return "partition " + std::to_string(first) +
           (missing == 1 ? of + " has"
                         : " and " + std::to_string(missing - 1) + " more" + of + " have") +
           " not been marked ready";
  }
  if (!party.counterpart.load(std::memory_order_acquire))
    return "waits for rank " + std::to_string(obstacle.peer) + ", which has no receive for it";
  return "all partitions are ready, waits for " + awaited;
}

/// The first time that a run finds it matched.
bool ReceiveRequest::bind(const Counterpart &sender) {
  if (isBound)
    return true;
  // A mismatch: who has found it makes the communicator fail.
  if (!party.shape.fits(sender.shape))
    return false;
  arrivals.bind(sender.shape);
  isBound = true;
  return true;
}

bool ReceiveRequest::isReady(const Counterpart &sender, uint64_t message) {
  const uint64_t word = sender.messages[message].load(std::memory_order_acquire);
  if (word > epoch)
    (void)damaged();
  return word == epoch;
}

/// Neighbours from this message on that are ready and have not been read, as many as are read at
/// once; none if this one is not.
plan::Range ReceiveRequest::readyFrom(const Counterpart &sender, uint64_t message) {
  const uint64_t size = sizeOf(party.shape.type);
  plan::Range ready{message, message};
  while (ready.end < sender.shape.numMessages() && !arrivals.has(ready.end) &&
         (ready.isEmpty() ||
          sender.shape.elementsOf({message, ready.end + 1}).length() * size <= kPieceBytes) &&
         isReady(sender, ready.end))
    ++ready.end;
  return ready;
}

/// The messages are in `partial` afterwards if there is more of them; else they have arrived.
bool ReceiveRequest::read(const Counterpart &sender, plan::Range messages, uint32_t &slices,
                          uint32_t maxSlices) {
  const plan::Range elements = sender.shape.elementsOf(messages);
  const uint64_t size = sizeOf(party.shape.type);
  const uint64_t begin = elements.begin * size, bytes = elements.length() * size;
  partial = messages;
  // In pieces, so that the executor sees other tasks and failures in between.
  while (readBytes < bytes && slices < maxSlices) {
    const uint64_t at = begin + readBytes, piece = std::min(bytes - readBytes, kPieceBytes);
    if (!transfer::readReferred(*core.fabric, party.peer, sharesAddresses, buffer + at,
                                sender.reference + at, piece))
      return false;
    readBytes += piece;
    slices += transfer::slicesIn(piece);
  }
  if (readBytes < bytes)
    return true;
  if (bytes != 0 && !transfer::wasReadOf(*core.fabric, party.peer, sharesAddresses))
    return false;
  for (uint64_t m = messages.begin; m < messages.end; ++m)
    arrivals.add(m);
  slices += bytes == 0 ? 1 : 0;
  partial = {};
  readBytes = 0;
  return true;
}

/// The sender sees the end only once it has been told of this request. That may wait for room in
/// the ring of notices, and afterwards nobody may be here who would write it: so it is a part of
/// the epoch. The sender's task is open, and takes notices, until it has this one.
StepResult ReceiveRequest::complete(uint32_t slices) {
  party.header->received.store(epoch, std::memory_order_release);
  if (!party.isTold.load(std::memory_order_relaxed)) {
    if (failure = matching.look(party.peer); !failure.ok())
      return lost();
    if (!party.isTold.load(std::memory_order_relaxed))
      return blocked(BlockReason::Credit, 0, slices);
  }
  peerBell().ring();
  return {StepStatus::Finished, {}, slices};
}

StepResult ReceiveRequest::run(BlockContext &, uint32_t maxSlices) {
  const Counterpart *sender = lookForCounterpart();
  if (!failure.ok())
    return lost();
  if (!sender)
    return blocked(BlockReason::Data, 0, 0);
  // Freed is read before the marks: those that came earlier count.
  const bool isFreed = sender->isFreed.load(std::memory_order_acquire);
  if (!sender->header)
    return abandoned();
  // The first look in this epoch, or the next one where there is no memory for it.
  try {
    if (!bind(*sender))
      return blocked(BlockReason::Data, 0, 0);
    if (arrivals.current() != epoch)
      arrivals.begin(epoch);
  } catch (const std::bad_alloc &) {
    return blocked(BlockReason::Data, 0, 0);
  }
  uint32_t slices = 0;
  // Go on with a message that has been read in part.
  if (!partial.isEmpty() && !read(*sender, partial, slices, maxSlices))
    return lost();
  // One pass: what becomes ready behind it is for the next look.
  for (uint64_t m = arrivals.firstMissing();
       m < sender->shape.numMessages() && slices < maxSlices;) {
    const plan::Range ready = arrivals.has(m) ? plan::Range{m, m} : readyFrom(*sender, m);
    if (!failure.ok() || (!ready.isEmpty() && !read(*sender, ready, slices, maxSlices)))
      return lost();
    m = std::max(m + 1, ready.end);
  }
  if (arrivals.isComplete())
    return complete(slices);
  if (slices >= maxSlices)
    return {StepStatus::Progressed, {}, slices};
  if (isFreed) // it has ended all its epochs, so this is none of them
    return abandoned();
  return blocked(BlockReason::Data, sender->shape.partitionsOf(arrivals.firstMissing()).begin,
                 slices);
}

std::string ReceiveRequest::describe(uint64_t, const Obstacle &obstacle,
                                     const std::string &awaited) const {
  if (!party.counterpart.load(std::memory_order_acquire))
    return "waits for rank " + std::to_string(obstacle.peer) + ", which has no send for it";
  return "partition " + std::to_string(obstacle.what) + " of the sender is missing, waits for " +
         awaited;
}

} // namespace occl::partitioned
