// The ends of a pair's transfers: lines and data through the ring, large data by reference.
#include "runtime/transfer/transfer.h"

#include <algorithm>
#include <cerrno>

namespace occl::transfer {

using interpreter::BlockContext;
using interpreter::BlockReason;
using interpreter::StepResult;
using interpreter::StepStatus;

namespace {

/// Of data through the ring: after so much the other side can begin, or go on.
constexpr uint64_t kPieceBytes = 32 << 10;
/// Of data that are read where they lie: between two looks whether the sender has failed.
constexpr uint64_t kReferredPieceBytes = 256 << 10;

std::string nameOfType(uint64_t type) {
  return type < kNumDataTypes ? nameOf(static_cast<DataType>(type)) : "an unknown type";
}

} // namespace

bool readReferred(const daemon::Fabric &fabric, uint32_t peer, bool sharesAddresses, char *to,
                  interpreter::Reference from, uint64_t bytes) {
  const interpreter::PeerMemory &memory = fabric.peerMemory()[peer];
  const char *source = reinterpret_cast<const char *>(from);
  // Not mapped here: the system copies it from the other process.
  if (!sharesAddresses && (from & interpreter::kMappedReference) == 0)
    return memory.read(from, to, bytes) && !memory.mayHaveChanged();
  if (!sharesAddresses)
    source = memory.at(from, bytes);
  if (!source)
    return false;
  touchShared(source);
  if (source != to) // a rank may send to itself from the place that it receives to
    std::memcpy(to, source, bytes);
  // Data that may have changed before they were read do not count.
  return !memory.mayHaveChanged();
}

bool wasReadOf(const daemon::Fabric &fabric, uint32_t peer, bool sharesAddresses) {
  if (sharesAddresses || !fabric.isDead(peer))
    return true;
  errno = ESRCH;
  return false;
}

StepResult Parts::run(BlockContext &context, uint32_t maxSlices) {
  return end->run(*this, context, maxSlices);
}

const Status &Parts::error() const { return end->error(); }
bool Parts::isSending() const { return end->isSend; }

uint64_t Parts::bytes() const {
  uint64_t sum = 0;
  for (const Part &part : parts)
    sum += part.bytes();
  return sum;
}

std::string Parts::subject(uint64_t ordinal) const {
  return (parts.size() == 1 ? "transfer " : "transfers ") + std::to_string(ordinal) +
         (parts.size() == 1 ? "" : " to " + std::to_string(ordinal + parts.size() - 1)) + " " +
         transport::describe(end->pair);
}

/// There may be no such part when all have been read since.
std::string Parts::describe(uint64_t ordinal, const interpreter::Obstacle &obstacle,
                            const std::string &awaited) const {
  if (obstacle.what >= parts.size())
    return "what was sent waits for " + awaited;
  const Part &part = parts[obstacle.what];
  return "transfer " + std::to_string(ordinal + obstacle.what) + ", " + std::to_string(part.count) +
         " elements of " + nameOf(part.type) + ", waits for " + awaited;
}

End::End(const daemon::Fabric &fabric, bool isSend, uint32_t peer, Doorbell &selfBell)
    : pair(isSend ? transport::Pair{fabric.rank(), peer} : transport::Pair{peer, fabric.rank()}),
      isSend(isSend), fabric(fabric), peer(peer),
      sharesAddresses(fabric.sharesAddresses() || peer == fabric.rank()),
      bell(peer == fabric.rank() ? selfBell : *fabric.doorbells()[peer]) {}

StepResult End::damaged(const char *what) {
  failure = {StatusCode::InternalError, std::string(what) + " of the transfers " +
                                            transport::describe(pair) +
                                            " is damaged: something has overwritten it in memory "
                                            "that rank " +
                                            std::to_string(peer) + " writes"};
  return lost();
}

std::string End::describe(uint64_t number) const {
  return "transfer " + std::to_string(number) + " " + transport::describe(pair);
}

void End::finishPart(BlockContext &context) {
  ++context.instruction;
  context.tile = 0;
  context.slice = 0;
}

SendEnd::SendEnd(const daemon::Fabric &fabric, uint32_t destination, Doorbell &selfBell)
    : End(fabric, true, destination, selfBell), ring(fabric.own().ringTo(destination)) {}

interpreter::Reference SendEnd::referenceTo(const Part &part) const {
  if (part.bytes() <= kEagerBytes || !fabric.isLocal(peer))
    return 0;
  return sharesAddresses ? reinterpret_cast<interpreter::Reference>(part.buffer)
                         : fabric.referenceTo(part.buffer, part.bytes());
}

void SendEnd::publish() {
  ring.publish();
  ringPeer();
}

StepResult SendEnd::run(Parts &parts, BlockContext &context, uint32_t maxSlices) {
  StepResult result = runParts(parts, context, maxSlices);
  // Less than a whole piece may be left.
  if (ring.unpublished() != 0)
    publish();
  return result;
}

StepResult SendEnd::runParts(Parts &parts, BlockContext &context, uint32_t maxSlices) {
  uint32_t slices = 0;
  while (context.instruction < parts.parts.size()) {
    if (slices >= maxSlices)
      return progressed(slices);
    Part &part = parts.parts[context.instruction];
    // The head is a word of the other rank: one that makes no sense is damage.
    const auto room = ring.room();
    if (!room)
      return damaged("the head");
    if (*room == 0)
      return blocked(BlockReason::Credit, context.instruction, slices);
    ++slices;
    // The line says what follows, or where the data lie.
    if (context.slice == 0) {
      const interpreter::Reference reference = referenceTo(part);
      const Line line = {parts.firstNumber + context.instruction, part.count,
                         static_cast<uint64_t>(part.type), reference};
      ring.write(&line, sizeof line);
      part.position = ring.position();
      context.slice = 1;
      if (reference != 0)
        referredUpTo = ring.position();
      if (reference != 0 || part.bytes() == 0)
        finishPart(context);
      continue;
    }
    // As much as there is room for; the peer is rung once for each piece.
    const uint64_t bytes = std::min({part.bytes() - context.tile, *room, kPieceBytes});
    ring.write(part.buffer + context.tile, bytes);
    context.tile += bytes;
    if (context.tile == part.bytes())
      finishPart(context);
    if (ring.unpublished() >= kPieceBytes)
      publish();
  }
  // The head is trusted below, so it is checked once more.
  if (!ring.room())
    return damaged("the head");
  if (!ring.isConsumed(referredUpTo)) // the buffers are still read
    return blocked(BlockReason::Credit, firstUnread(parts), slices);
  return {StepStatus::Finished, {}, slices};
}

/// All are in the ring. Small ones have ended when they are.
uint32_t SendEnd::firstUnread(const Parts &parts) const {
  const auto unread = std::ranges::partition_point(
      parts.parts, [&](const Part &part) { return ring.isConsumed(part.position); });
  const auto referred =
      std::find_if(unread, parts.parts.end(), [&](const Part &part) { return referenceTo(part); });
  return static_cast<uint32_t>(std::distance(parts.parts.begin(), referred));
}

ReceiveEnd::ReceiveEnd(const daemon::Fabric &fabric, uint32_t source, Doorbell &selfBell)
    : End(fabric, false, source, selfBell), ring(fabric.of(source).ringTo(fabric.rank())) {}

void ReceiveEnd::release() {
  ring.release();
  ringPeer();
}

StepResult ReceiveEnd::run(Parts &parts, BlockContext &context, uint32_t maxSlices) {
  StepResult result = runParts(parts, context, maxSlices);
  if (ring.unreleased() != 0 && result.status != StepStatus::PeerLost)
    release();
  return result;
}

StepResult ReceiveEnd::runParts(Parts &parts, BlockContext &context, uint32_t maxSlices) {
  uint32_t slices = 0;
  while (context.instruction < parts.parts.size()) {
    if (slices >= maxSlices)
      return progressed(slices);
    const Part &part = parts.parts[context.instruction];
    const uint64_t rest = part.bytes() - context.tile;
    // By reference: the data are read where they lie, in large pieces.
    if (context.slice == 1 && reference != 0) {
      const uint64_t bytes = std::min(rest, kReferredPieceBytes);
      if (!readReferred(fabric, peer, sharesAddresses, part.buffer + context.tile,
                        reference + context.tile, bytes))
        return lost();
      slices += slicesIn(bytes);
      context.tile += bytes;
      if (bytes < rest)
        continue;
      if (!wasReadOf(fabric, peer, sharesAddresses))
        return lost();
      ring.skip(sizeof(Line)); // it stands for the sender's buffer
      release();
      finishPart(context);
      continue;
    }
    // The tail is a word of the other rank, as the head.
    const auto available = ring.available();
    if (!available)
      return damaged("the tail");
    if (*available == 0)
      return blocked(BlockReason::Data, context.instruction, slices);
    ++slices;
    // Check the line against this rank's receive.
    if (context.slice == 0) {
      Line line;
      ring.look(&line, sizeof line);
      if (!accept(line, part, parts.firstNumber + context.instruction))
        return lost();
      reference = line.reference;
      context.slice = 1;
      // The line of a reference stays in the ring: it tells the sender to keep its buffer.
      if (reference == 0)
        ring.skip(sizeof line);
    } else {
      // Copy what has come; the peer is rung once for each piece of room.
      const uint64_t bytes = std::min({rest, *available, kPieceBytes});
      ring.look(part.buffer + context.tile, bytes);
      ring.skip(bytes);
      context.tile += bytes;
      if (ring.unreleased() >= kPieceBytes)
        release();
    }
    if (reference == 0 && context.tile == part.bytes())
      finishPart(context);
  }
  return {StepStatus::Finished, {}, slices};
}

bool ReceiveEnd::accept(const Line &line, const Part &part, uint64_t number) {
  const bool agrees = line.count == part.count && line.type == static_cast<uint64_t>(part.type);
  // A reference makes sense for large data of this machine, or where ranks disagree on the size.
  const bool mayRefer = fabric.isLocal(peer) && (part.bytes() > kEagerBytes || !agrees);
  if (line.number != number || (line.reference != 0 && !mayRefer)) {
    damaged("the ring");
    return false;
  }
  if (agrees)
    return true;
  // The program's error: both ranks are named with what they have said.
  failure = {StatusCode::Mismatch,
             describe(number) + ": ranks disagree: rank " + std::to_string(pair.source) +
                 " sends " + std::to_string(line.count) + " elements of " + nameOfType(line.type) +
                 ", rank " + std::to_string(pair.destination) + " receives " +
                 std::to_string(part.count) + " of " + nameOf(part.type)};
  return false;
}

} // namespace occl::transfer
