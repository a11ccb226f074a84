// The driver of hosts: it polls a step, executes it, publishes it and goes on.
#include "runtime/exec/host/step_driver.h"

#include "runtime/base/cache_line.h"
#include "runtime/base/host_device.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/doorbell.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace occl::interpreter {

OCCL_INLINE StepDriver::Cut StepDriver::cutSlice() const {
  const BoundInstruction &now = *step->first;
  const uint64_t length = detail::messageElements(program, now, tile);
  Cut cut;
  cut.begin = slice * now.sliceElements;
  cut.end = cut.begin + now.sliceElements;
  cut.isLast = cut.end >= length;
  cut.end = cut.isLast ? length : cut.end;
  cut.done = cut.isLast ? program.slicesPerMessage : uint64_t(slice) + 1;
  return cut;
}

//===-- Poll --------------------------------------------------------------------------------===//

bool StepDriver::areAnnounced() {
  for (const BoundNeed &need : std::span(step->needs, step->numNeeds))
    if (placeOf(need.place) == nullptr)
      return lacks(BlockReason::Announce, need.connection, need.peer);
  return true;
}

OCCL_INLINE bool StepDriver::haveWords() {
  // A word of a place that is not announced cannot be looked at.
  for (const BoundAcquire &awaited :
       std::span(program.acquires + step->first->firstAcquire, step->first->numAcquires)) {
    char *base = placeOf(awaited.place);
    if (base == nullptr)
      return lacks(BlockReason::Announce, awaited.what, awaited.peer);
    const int64_t value = awaited.value + static_cast<int64_t>(tile) * awaited.perTile +
                          static_cast<int64_t>(awaited.isSliced ? cut.done : 0);
    // Values up to 0 have been reached from the start.
    if (value > 0 &&
        HostTarget::acquire(wordAt(base + awaited.offset)) < static_cast<uint64_t>(value))
      return lacks(awaited.reason, awaited.what, awaited.peer);
  }
  return true;
}

OCCL_INLINE bool StepDriver::isThere(const char *base, const StepTable::Polled &polled) const {
  return HostTarget::linesArrived(program.line, base + polled.offset, polled.bytes,
                                  invocation.flagBase + polled.flag);
}

OCCL_INLINE bool StepDriver::isSliceThere(const StepTable::Polled &polled) const {
  const BoundOperand &operand = program.operands[polled.operand];
  return HostTarget::linesArrived(program.line, slotOf(operand), sliceBytes(), flagOf(operand));
}

/// Lines that have been there once are there until the step is done.
template <bool kFixed> OCCL_INLINE bool StepDriver::haveLines() {
  for (; polled != step->polledEnd; ++polled) {
    const char *base = placeOf(polled->place);
    if (base == nullptr || !(kFixed ? isThere(base, *polled) : isSliceThere(*polled)))
      return lacks(base == nullptr ? BlockReason::Announce : BlockReason::Data, polled->connection,
                   polled->peer);
  }
  return true;
}

template <bool kFixed> OCCL_INLINE bool StepDriver::arrived() {
  return (step->numNeeds == 0 || areAnnounced()) && (!step->awaitsWords || haveWords()) &&
         haveLines<kFixed>();
}

/// Whether the partitions are there that the step's operands in the rank's own buffers need.
template <bool kFixed> bool StepDriver::mayAccess() {
  return forEachOfUsers<kFixed>([&](const BoundOperand &operand, bool, plan::Range elements) {
    const auto partition = partitions->missing(operand.kind, elements);
    return !partition || lacks(BlockReason::Dependency, kFirstPartition + *partition, program.rank);
  });
}

/// The destinations of what it has sent by reference have consumed everything.
bool StepDriver::pollDrains() {
  // Nothing was sent by reference.
  if ((invocation.references[0] | invocation.references[1]) == 0)
    return true;
  for (uint32_t drain : std::span(program.drains + table.block.firstDrain, table.block.numDrains)) {
    const ConnectionEnd &end = program.ends[drain];
    char *heads = placeOf(arenaPlace(end.creditRank)) + end.headsOffset;
    for (uint32_t p = 0; p < end.numPeers; ++p)
      if (HostTarget::acquire(wordAt(heads + p * kControlStride)) < end.lastCredit)
        return lacks(BlockReason::Credit, end.connection, program.peers[end.firstPeer + p]);
  }
  return true;
}

//===-- Execute: a fixed step ---------------------------------------------------------------===//

/// What is only copied goes straight from where it lies to where it belongs.
void StepDriver::copy(const StepTable::Member &member, const StepTable::Operand *operands) {
  const uint64_t bytes = member.bytes;
  const char *from = addressOf(operands[0]);
  if (program.line.bytes == 0) {
    char **const pointers = target.pointers();
    for (uint32_t i = 0; i <= member.numDestinations; ++i)
      pointers[i] = addressOf(operands[i]);
    return copyToAll(pointers, member.numDestinations, bytes);
  }
  // From packets: unpacked once, into the first buffer or, if all destinations are packets, aside.
  if (operands[0].flag != 0) {
    char *to = operands[1].flag != 0 ? target.stage() : addressOf(operands[1]);
    HostTarget::unpackLines(program.line, from, to, bytes);
    from = to;
  }
  for (const StepTable::Operand &destination : std::span(operands + 1, member.numDestinations)) {
    char *to = addressOf(destination);
    if (destination.flag != 0)
      HostTarget::packLines(program.line, from, to, bytes, invocation.flagBase + destination.flag);
    else if (to != from)
      std::memcpy(to, from, bytes);
  }
}

void StepDriver::reduce(const StepTable::Member &member, const StepTable::Operand *operands) {
  const uint64_t bytes = member.bytes;
  const bool isPadded = member.isPadded;
  const std::span destinations(operands + member.numSources, member.numDestinations);
  char **pointer = target.pointers();
  char *stage = target.stage();
  // Each source is folded where it lies, or unpacked or padded into the stage.
  for (const StepTable::Operand &source : std::span(operands, member.numSources)) {
    char *const address = addressOf(source);
    if (isPadded) // so that nothing is folded that somebody has left there
      std::memset(stage + member.stageBytes - kCacheLine, 0, kCacheLine);
    if (source.flag != 0)
      HostTarget::unpackLines(program.line, address, stage, bytes);
    else if (isPadded)
      std::memcpy(stage, address, bytes);
    *pointer++ = isPadded || source.flag != 0 ? stage : address;
    stage += member.stageBytes;
  }
  // Results that cannot go straight to their destination stay in the stage.
  char **result = pointer;
  for (const StepTable::Operand &destination : destinations) {
    *pointer++ = isPadded || destination.flag != 0 ? stage : addressOf(destination);
    stage += member.stageBytes;
  }
  member.fold(target.pointers(), member.numSources, member.numDestinations, member.elements,
              member.divisor);
  // Pack or copy the results out of the stage.
  for (const StepTable::Operand &destination : destinations) {
    const char *from = *result++;
    if (destination.flag != 0)
      HostTarget::packLines(program.line, from, addressOf(destination), bytes,
                            invocation.flagBase + destination.flag);
    else if (isPadded)
      std::memcpy(addressOf(destination), from, bytes);
  }
}

OCCL_INLINE void StepDriver::executeFixed() {
  const StepTable::Operand *operands = step->operands;
  for (const StepTable::Member &member : std::span(step->members, step->numMembers)) {
    member.fold ? reduce(member, operands) : copy(member, operands);
    operands += member.numSources + member.numDestinations;
  }
}

//===-- Execute: a slice --------------------------------------------------------------------===//

/// False, with nothing published, if memory of a peer cannot be read any more, or is not what it
/// was.
OCCL_INLINE bool StepDriver::executeSlice() {
  const BoundInstruction &now = *step->first;
  if (!now.movesData)
    return true;
  const auto operands = operandsOf(now);
  const auto stageOf = [&](const BoundOperand &operand) {
    return target.stage() + (&operand - operands.data()) * program.stageStride;
  };
  const bool hasLines = program.line.bytes != 0;
  // Packets are unpacked to staging areas, reduced there, and packed again.
  if (hasLines)
    for (const BoundOperand &source : operands.first(now.numSources))
      if (isInLines(source))
        HostTarget::unpackLines(program.line, slotOf(source), stageOf(source), sliceBytes());
  if (!foldPieces() || (now.readsPeers && !sourcesWereKept()))
    return false;
  if (hasLines)
    for (const BoundOperand &destination : operands.subspan(now.numSources))
      if (isInLines(destination))
        HostTarget::packLines(program.line, stageOf(destination), slotOf(destination), sliceBytes(),
                              flagOf(destination));
  return true;
}

/// Calls visit(inSlice, inUser, inScratch, elements), as foldPiece() has them, for what the slice
/// has of each chunk, or once, if the chunks lie side by side. Ends with the first that returns
/// false.
template <class Visit> OCCL_INLINE bool StepDriver::forEachPiece(Visit visit) const {
  const BoundInstruction &now = *step->first;
  const uint64_t tileBegin = tile * program.tileElements;
  if (now.contiguous) {
    // With several chunks there is one tile only.
    const uint64_t element = tileBegin + cut.begin;
    return visit(0, element, element, cut.end - cut.begin);
  }
  uint64_t packed = 0; // where in the message the chunk's piece begins
  detail::ChunkCursor cursor(program, now.extent);
  for (uint32_t i = 0; i < now.count && packed < cut.end; ++i, cursor.next()) {
    const uint64_t length = detail::inTile(cursor.size(), tile, program.tileElements);
    const uint64_t from = std::max(packed, cut.begin), to = std::min(packed + length, cut.end);
    if (from < to) {
      const uint64_t element = tileBegin + from - packed;
      if (!visit(from - cut.begin, cursor.position + element, i * program.scratchStride + element,
                 to - from))
        return false;
    }
    packed += length;
  }
  return true;
}

OCCL_INLINE bool StepDriver::foldPieces() {
  return forEachPiece(
      [&](uint64_t inSlice, uint64_t inUser, uint64_t inScratch, uint64_t elements) {
        return foldPiece(inSlice, inUser, inScratch, elements);
      });
}

/// `elements` elements, `inSlice` elements after the slice's begin; in user buffers `inUser`
/// elements after the first chunk's begin, in scratch `inScratch`.
OCCL_INLINE bool StepDriver::foldPiece(uint64_t inSlice, uint64_t inUser, uint64_t inScratch,
                                       uint64_t elements) {
  const BoundInstruction &now = *step->first;
  const uint32_t numSources = now.numSources;
  const uint32_t numDestinations =
      referenceOfSlice() != 0 ? now.numLocalDestinations : now.numDestinations;
  if (numDestinations == 0)
    return true;
  const BoundOperand *operands = program.operands + now.firstOperand;
  char **const pointers = target.pointers();
  // Addresses; then those that the sender has referred to; then the loops over elements.
  for (uint32_t i = 0; i < numSources + numDestinations; ++i) {
    const BoundOperand &operand = operands[i];
    const uint64_t element = isMessage(operand)                           ? inSlice
                             : operand.kind == plan::OperandKind::Scratch ? inScratch
                                                                          : inUser;
    char *base = isInLines(operand) ? target.stage() + i * program.stageStride : slotOf(operand);
    pointers[i] = base + element * program.elementBytes;
  }
  for (uint32_t i = 0; i < numSources; ++i)
    if (operands[i].mayRefer && !followReference(i, inSlice, elements))
      return false;
  target.fold(program, numSources, numDestinations, elements, now.divides ? program.numRanks : 1);
  return true;
}

/// The address of source i's piece, or the piece itself, if its slot refers to the sender's buffer.
bool StepDriver::followReference(uint32_t source, uint64_t inSlice, uint64_t elements) {
  const BoundInstruction &now = *step->first;
  const BoundOperand &operand = program.operands[now.firstOperand + source];
  // The reference lies beside the tail, and was stored before it.
  const ConnectionEnd &connection = program.ends[operand.end];
  char *tail = placeOf(arenaPlace(connection.dataRank)) + connection.tailOffset;
  Reference reference = loadShared(referenceWord(tail, operand), std::memory_order_relaxed);
  if (reference == 0)
    return true;
  reference += inSlice * program.elementBytes;
  missing = {BlockReason::Data, connection.connection, connection.dataRank};
  const PeerMemory &memory = invocation.peerMemory[connection.dataRank];
  const uint64_t bytes = elements * program.elementBytes;
  char **const pointers = target.pointers();
  if (reference & kMappedReference) {
    pointers[source] = memory.at(reference, bytes);
    return pointers[source] != nullptr;
  }
  // Only to receivers that copy: the first destination's other ones are filled from there.
  pointers[source] = pointers[now.numSources];
  return memory.read(reference, pointers[source], bytes);
}

/// After the fold: whether what was read of other ranks' buffers is what they hold for this
/// invocation. A rank that fails gives its buffers back to its program, whoever reads them.
bool StepDriver::sourcesWereKept() {
  if (invocation.peerMemory == nullptr)
    return true;
  const BoundInstruction &now = *step->first;
  for (const BoundOperand &operand : operandsOf(now).first(now.numSources)) {
    const ConnectionEnd *end = isMessage(operand) ? &program.ends[operand.end] : nullptr;
    const uint32_t rank = end ? end->dataRank : operand.rank;
    if (rank != program.rank && (!end || operand.mayRefer) &&
        invocation.peerMemory[rank].mayHaveChanged())
      return lacks(BlockReason::Data, end ? end->connection : 0, rank);
  }
  return true;
}

/// What the slice's receivers are referred to; 0: its data goes into slots.
OCCL_INLINE Reference StepDriver::referenceOfSlice() const {
  const BoundInstruction &now = *step->first;
  if (now.refers == 0)
    return 0;
  const BoundOperand &operand = program.operands[now.firstOperand + now.refers - 1];
  const Reference base = invocation.references[static_cast<uint32_t>(operand.kind)];
  // Who does not copy would need a copy of the data to fold from: a slot is no worse.
  if (base == 0 || (invocation.inPlace && !now.refersInPlace) ||
      (!(base & kMappedReference) && !now.copyReceivers))
    return 0;
  return base + operand.offset + (tile * program.tileElements + cut.begin) * program.elementBytes;
}

//===-- The user's buffers, in partitions ---------------------------------------------------===//

/// Calls visit(operand, isStored, elements) for the ranges of the rank's own input and output that
/// the step accesses. Ends with the first that returns false.
template <bool kFixed, class Visit> bool StepDriver::forEachOfUsers(Visit visit) const {
  // Places up to Output are the rank's own input and output.
  const auto visitPiece = [&](const BoundInstruction &now, uint64_t inUser, uint64_t elements) {
    const auto operands = operandsOf(now);
    for (size_t i = 0; elements != 0 && i < operands.size(); ++i) {
      const BoundOperand &operand = operands[i];
      if (operand.place > static_cast<Place>(plan::OperandKind::Output))
        continue;
      const uint64_t begin = operand.offset / program.elementBytes + inUser;
      if (!visit(operand, i >= now.numSources, plan::Range{begin, begin + elements}))
        return false;
    }
    return true;
  };
  // A sliced step has one instruction; a fixed one may have several, each as a whole.
  if (!kFixed)
    return forEachPiece([&](uint64_t, uint64_t inUser, uint64_t, uint64_t elements) {
      return visitPiece(*step->first, inUser, elements);
    });
  for (const BoundInstruction &now : std::span(step->first, step->numMembers))
    if (!visitPiece(now, 0, now.elements))
      return false;
  return true;
}

template <bool kFixed> void StepDriver::noteStored() {
  forEachOfUsers<kFixed>([&](const BoundOperand &, bool isStored, plan::Range elements) {
    if (isStored)
      partitions->stored(elements);
    return true;
  });
}

//===-- Publish, advance --------------------------------------------------------------------===//

OCCL_INLINE void StepDriver::publish() {
  for (const BoundRelease &released :
       std::span(program.releases + step->first->firstRelease, step->first->numReleases)) {
    // A value beyond the limit is looked at by nobody.
    const uint64_t value = valueOf(released);
    if (!released.isStored || value > released.limit)
      continue;
    char *address = placeOf(released.place) + released.offset;
    // The reference is in its place before the word that says so.
    if (released.mayRefer)
      storeShared(referenceWord(address, program.operands[released.operand]), referenceOfSlice(),
                  std::memory_order_relaxed);
    HostTarget::release(wordAt(address), value);
  }
  if (step->first->published && cut.isLast)
    HostTarget::release(wordAt(placeOf(kProgressPlace) + table.index * kControlStride),
                        tile * table.block.numInstructions + step->index + step->numMembers);
}

OCCL_INLINE void StepDriver::ringOne(uint32_t rank) const {
  if (Doorbell *bell = invocation.doorbells[rank])
    bell->ringFenced();
}

/// One fence for all: a fence waits until other processors have given up the lines of all stores
/// before it, and goes on with what can be read meanwhile if it comes late.
void StepDriver::ringAll() {
  if (invocation.doorbells != nullptr) {
    threadFence(std::memory_order_seq_cst);
    for (uint32_t rank : std::span(toRing, rungTo))
      ringOne(rank);
    for (uint32_t rank : std::span(noted).first(numNoted))
      ringOne(rank);
  }
  toRing = rungTo;
  numNoted = 0;
}

/// The ranks that may sleep until what was just published; the own one for the sake of executors of
/// other thread blocks.
OCCL_INLINE void StepDriver::noteRung() {
  for (const BoundRelease &released :
       std::span(program.releases + step->first->firstRelease, step->first->numReleases))
    if (valueOf(released) <= released.limit)
      for (uint32_t p = 0; p < released.numPeers; ++p)
        noteRung(program.peers[released.firstPeer + p]);
  if (step->first->published && cut.isLast)
    noteRung(program.rank);
}

OCCL_INLINE void StepDriver::noteRung(uint32_t rank) {
  if (numNoted == noted.size())
    ringNoted();
  noted[numNoted++] = rank;
}

/// A fixed table is of one tile.
template <bool kFixed> OCCL_INLINE void StepDriver::nextStep() {
  slice = 0;
  step = step->next;
  if (step != end)
    return;
  ++tile;
  if (!kFixed && tile != program.numTiles)
    step = table.steps.data();
}

/// What goes in lines is small: the next steps are done before anybody would have woken.
template <bool kFixed> OCCL_INLINE void StepDriver::goOn() {
  numDone += step->numMembers;
  kFixed ? void(rungTo += step->numRung) : noteRung();
  // Protocol Simple rings after each step.
  if (program.line.bytes == 0)
    ringNoted();
  if (kFixed || cut.isLast)
    nextStep<kFixed>();
  else
    ++slice;
  polled = step->polled;
}

template <bool kFixed> StepStatus StepDriver::advanceOf(uint32_t maxSlices) {
  for (;;) {
    if (numDone >= maxSlices)
      return StepStatus::Progressed;
    if (step == end)
      return table.block.numDrains == 0 || pollDrains() ? StepStatus::Finished
                                                        : StepStatus::Blocked;
    // Poll, execute, publish, advance. Nothing of a step that is blocked has been stored.
    if (!kFixed)
      cut = cutSlice();
    if (!arrived<kFixed>())
      return StepStatus::Blocked;
    if (partitions != nullptr && !mayAccess<kFixed>())
      return StepStatus::Blocked;
    if (kFixed)
      executeFixed();
    else if (!executeSlice())
      return StepStatus::PeerLost;
    if (partitions != nullptr)
      noteStored<kFixed>();
    if (step->storesWords)
      publish();
    goOn<kFixed>();
  }
}

template StepStatus StepDriver::advanceOf<true>(uint32_t maxSlices);
template StepStatus StepDriver::advanceOf<false>(uint32_t maxSlices);

BlockContext StepDriver::context() const {
  return {.tile = tile, .instruction = step == end ? 0 : step->index, .slice = slice};
}

StepResult runOnHost(const Invocation &invocation, const StepTable &table, BlockContext &context,
                     HostTarget &target, uint32_t maxSlices, Partitions *partitions) {
  StepDriver driver(table, invocation, context, target, partitions);
  StepResult result;
  result.status = driver.advance(maxSlices);
  result.slices = driver.slices();
  // Others wake before the caller does anything else.
  if (result.slices != 0) {
    driver.ring();
    context = driver.context();
  }
  result.obstacle = driver.obstacle();
  return result;
}

uint32_t waitingInstruction(const Program &program, uint32_t block, uint32_t instruction,
                            const Obstacle &obstacle) {
  // Of a joined step, look for the instruction that reads the connection.
  const BoundInstruction *step =
      &program.instructions[program.blocks[block].firstInstruction + instruction];
  for (uint32_t i = 0; i < step->numInstructions && step->numInstructions > 1; ++i)
    for (const BoundOperand &source :
         std::span(program.operands + step[i].firstOperand, step[i].numSources))
      if (source.slotBytes != 0 && program.ends[source.end].connection == obstacle.what)
        return instruction + i;
  return instruction;
}

} // namespace occl::interpreter
