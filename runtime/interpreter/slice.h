// One slice of one instruction: what it needs, where its operands lie, what it publishes. The parts
// of a step; see step.h.
//
// Memory order. A tail or head is stored with release after everything that it stands for, and
// loaded with acquire before anything that relies on it: so a receiver that sees a tail sees the
// slice's data, and a source that sees a head may overwrite what its receiver has finished reading.
// The same holds for progress words between thread blocks of a rank, and for signals, whose tail
// stands for all that came before. The lines of protocols LL and LL128 have no tail: how a line's
// flag and data come together is the target's business.
#pragma once

#include "plan/chunking.h"
#include "runtime/interpreter/invocation.h"

#include <cstdint>

namespace occl::interpreter {

enum class BlockReason : uint8_t {
  None,
  Announce,   // rank `peer` has not announced this invocation, or not begun it
  Data,       // the next slice of connection `what` from rank `peer`
  Credit,     // a free slot of connection `what`: its destination `peer` lags behind
  Dependency, // thread block `what` of this rank
  Signal,     // of counter `what`, by rank `peer`
};

/// What a blocked step waits for; each is a stable condition: once true, true until the step is
/// done.
struct Obstacle {
  BlockReason reason = BlockReason::None;
  uint32_t what = 0; // the connection in the plan, or the thread block
  uint32_t peer = 0; // rank

  bool operator==(const Obstacle &) const = default;
};

/// PeerLost: memory that a peer has referred to cannot be read any more. The step has published
/// nothing.
enum class StepStatus : uint8_t { Progressed, Finished, Blocked, PeerLost };

namespace detail {

OCCL_HOST_DEVICE constexpr uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/// Elements of tile `tile` of something that has `elements` in all.
OCCL_HOST_DEVICE constexpr uint64_t inTile(uint64_t elements, uint64_t tile,
                                           uint64_t tileElements) {
  uint64_t begin = tile * tileElements;
  return begin >= elements ? 0 : smaller(elements - begin, tileElements);
}

/// Walks the chunks of an instruction.
struct ChunkCursor {
  const Program &program;
  uint64_t chunk;        // of a part
  uint64_t position = 0; // elements from the first chunk's begin to this chunk's

  OCCL_HOST_DEVICE ChunkCursor(const Program &program, uint32_t extent)
      : program(program), chunk(extent) {}

  OCCL_HOST_DEVICE uint64_t size() const {
    return program.chunkBegins[chunk + 1] - program.chunkBegins[chunk];
  }
  OCCL_HOST_DEVICE void next() {
    position += size();
    chunk = chunk + 1 == program.partChunks ? 0 : chunk + 1;
  }
};

OCCL_HOST_DEVICE inline uint64_t
messageElements(const Program &program, const BoundInstruction &instruction, uint64_t tile) {
  if (instruction.contiguous)
    return inTile(instruction.elements, tile, instruction.span);
  uint64_t total = 0;
  ChunkCursor cursor(program, instruction.extent);
  for (uint32_t i = 0; i < instruction.count; ++i, cursor.next())
    total += inTile(cursor.size(), tile, program.tileElements);
  return total;
}

/// The first sending end of a thread block with a destination that has not consumed everything.
template <class Target>
OCCL_HOST_DEVICE Obstacle pollDrains(const Invocation &invocation, const BoundBlock &block,
                                     Target &target) {
  const Program &program = *invocation.program;
  if ((invocation.references[0] | invocation.references[1]) == 0)
    return {};
  for (uint32_t i = target.thread(); i < block.numDrains; i += target.numThreads()) {
    const ConnectionEnd &end = program.ends[program.drains[block.firstDrain + i]];
    for (uint32_t p = 0; p < end.numPeers; ++p) {
      char *head = invocation.arenas[end.creditRank] + end.headsOffset + p * kControlStride;
      if (target.acquire(reinterpret_cast<uint64_t *>(head)) < end.lastCredit)
        return {BlockReason::Credit, end.connection, program.peers[end.firstPeer + p]};
    }
  }
  return {};
}

/// kLines: of a program with protocol LL or LL128. Known when compiled, so that programs without
/// lines have nothing of their code among theirs.
template <class Target, bool kLines> class Slice {
public:
  OCCL_HOST_DEVICE Slice(const Invocation &invocation, const BoundBlock &block,
                         const BlockContext &context, Target &target)
      : invocation(invocation), program(*invocation.program), block(block),
        instruction(program.instructions[block.firstInstruction + context.instruction]),
        operands(program.operands + instruction.firstOperand), context(context), target(target) {
    uint64_t length = messageElements(program, instruction, context.tile);
    begin = context.slice * instruction.sliceElements;
    end = begin + instruction.sliceElements;
    isLast = end >= length;
    end = isLast ? length : end;
  }

  /// The first thing that is missing, of those that this thread looks at.
  OCCL_HOST_DEVICE Obstacle poll() const {
    uint32_t numSources = instruction.numSources, step = target.numThreads();
    uint32_t numOperands = numSources + instruction.numDestinations;
    for (uint32_t i = target.thread(); i < numOperands; i += step) {
      Obstacle obstacle = operands[i].kind != plan::OperandKind::Connection
                              ? pollBuffer(operands[i])
                          : i < numSources ? pollData(operands[i])
                                           : pollCredit(operands[i]);
      if (obstacle.reason != BlockReason::None)
        return obstacle;
    }
    for (uint32_t i = target.thread(); i < instruction.numDependencies; i += step) {
      const BoundDependency &dependency = program.dependencies[instruction.firstDependency + i];
      if (target.acquire(progressWord(dependency.block)) <
          completion(program.blocks[dependency.block], dependency.instruction))
        return {BlockReason::Dependency, dependency.block, program.rank};
    }
    if constexpr (kLines && !Target::kLinesInRegisters)
      return pollLines();
    return {};
  }

  /// Only after all threads' polls found nothing missing. Progressed; PeerLost if a peer's memory
  /// is gone; Blocked, with nothing stored, where the target looks at lines while it folds them.
  OCCL_HOST_DEVICE StepStatus fold() {
    if (instruction.count == 0)
      return StepStatus::Progressed;
    if constexpr (kLines && Target::kLinesInRegisters) {
      return foldLines();
    } else {
      if constexpr (kLines)
        unpackSources();
      if (!foldPieces())
        return StepStatus::PeerLost;
      if constexpr (kLines)
        packDestinations();
      return StepStatus::Progressed;
    }
  }

  /// Only after all threads have folded.
  OCCL_HOST_DEVICE void publish(uint32_t blockIndex) {
    uint32_t numSources = instruction.numSources, step = target.numThreads();
    uint32_t numOperands = numSources + instruction.numDestinations;
    for (uint32_t i = target.thread(); i < numOperands; i += step) {
      if (operands[i].kind != plan::OperandKind::Connection)
        continue;
      const ConnectionEnd &connection = program.ends[operands[i].end];
      if (i >= numSources) {
        if constexpr (Target::kHasReferences)
          if (connection.mayRefer)
            target.store(referenceWord(connection, operands[i]), referenceOfSlice());
        if (!isInLines(connection))
          target.release(tailWord(connection), counter(connection, operands[i]));
      } else if (returnsCredit(connection, operands[i]))
        target.release(headWord(connection, 0), counter(connection, operands[i]));
    }
    if (isLast && instruction.published && target.thread() == 0)
      target.release(progressWord(blockIndex), completion(block, context.instruction));
    if constexpr (Target::kHasDoorbells)
      ring();
  }

  /// What fold() found missing, or whose memory it could not read.
  OCCL_HOST_DEVICE const Obstacle &missing() const { return missingInFold; }

  OCCL_HOST_DEVICE void advance(BlockContext &next) const {
    if (!isLast) {
      ++next.slice;
      return;
    }
    next.slice = 0;
    if (++next.instruction == block.numInstructions) {
      next.instruction = 0;
      ++next.tile;
    }
  }

private:
  OCCL_HOST_DEVICE bool foldPieces() {
    if (instruction.contiguous) {
      // With several chunks there is one tile only.
      uint64_t element = context.tile * program.tileElements + begin;
      return foldPiece(0, element, element, end - begin);
    }
    uint64_t packed = 0; // where in the message the chunk's piece begins
    ChunkCursor cursor(program, instruction.extent);
    for (uint32_t i = 0; i < instruction.count && packed < end; ++i, cursor.next()) {
      uint64_t length = inTile(cursor.size(), context.tile, program.tileElements);
      uint64_t from = packed < begin ? begin : packed, to = smaller(packed + length, end);
      if (from < to) {
        uint64_t element = context.tile * program.tileElements + from - packed;
        target.barrier(); // the addresses of the piece before are no longer in use
        if (!foldPiece(from - begin, cursor.position + element, i * program.scratchStride + element,
                       to - from))
          return false;
      }
      packed += length;
    }
    return true;
  }

  OCCL_HOST_DEVICE uint64_t message(const ConnectionEnd &connection,
                                    const BoundOperand &operand) const {
    return context.tile * connection.messagesPerTile + operand.message;
  }
  /// What the operand's tail or head is once this slice is done.
  OCCL_HOST_DEVICE uint64_t counter(const ConnectionEnd &connection,
                                    const BoundOperand &operand) const {
    uint64_t number = message(connection, operand);
    return isLast ? (number + 1) * program.slicesPerMessage
                  : number * program.slicesPerMessage + context.slice + 1;
  }
  OCCL_HOST_DEVICE bool returnsCredit(const ConnectionEnd &connection,
                                      const BoundOperand &operand) const {
    return counter(connection, operand) <= connection.lastCredit;
  }
  OCCL_HOST_DEVICE uint64_t completion(const BoundBlock &of, uint32_t position) const {
    return context.tile * of.numInstructions + position + 1;
  }

  OCCL_HOST_DEVICE static uint64_t *word(char *address) {
    return reinterpret_cast<uint64_t *>(address);
  }
  OCCL_HOST_DEVICE uint64_t *progressWord(uint32_t blockIndex) const {
    return word(invocation.progress + blockIndex * kControlStride);
  }
  OCCL_HOST_DEVICE uint64_t *tailWord(const ConnectionEnd &connection) const {
    return word(invocation.arenas[connection.dataRank] + connection.tailOffset);
  }
  OCCL_HOST_DEVICE uint64_t *headWord(const ConnectionEnd &connection, uint32_t head) const {
    return word(invocation.arenas[connection.creditRank] + connection.headsOffset +
                head * kControlStride);
  }

  OCCL_HOST_DEVICE bool isAnnounced(const ConnectionEnd &connection) const {
    return target.acquire(invocation.arenas + connection.dataRank) != nullptr &&
           target.acquire(invocation.arenas + connection.creditRank) != nullptr;
  }

  OCCL_HOST_DEVICE bool isOwn(const BoundOperand &operand) const {
    return operand.rank == program.rank;
  }

  OCCL_HOST_DEVICE Obstacle pollBuffer(const BoundOperand &operand) const {
    if (isOwn(operand) || target.acquire(invocation.arenas + operand.rank) != nullptr)
      return {};
    return {BlockReason::Announce, 0, operand.rank};
  }

  OCCL_HOST_DEVICE bool isInLines(const ConnectionEnd &connection) const {
    return kLines && !connection.isCounter;
  }
  OCCL_HOST_DEVICE bool isInLines(const BoundOperand &operand) const {
    return operand.kind == plan::OperandKind::Connection && isInLines(program.ends[operand.end]);
  }
  OCCL_HOST_DEVICE uint64_t flag(const BoundOperand &operand) const {
    return invocation.flagBase + counter(program.ends[operand.end], operand);
  }
  OCCL_HOST_DEVICE uint64_t sliceBytes() const { return (end - begin) * program.elementBytes; }
  OCCL_HOST_DEVICE char *stageOf(uint32_t operand) const {
    return target.stage() + operand * program.stageStride;
  }

  OCCL_HOST_DEVICE Obstacle pollLines() const {
    for (uint32_t i = 0; i < instruction.numSources; ++i)
      if (isInLines(operands[i]) &&
          !target.linesArrived(program.line, slot(operands[i]), sliceBytes(), flag(operands[i])))
        return lineOf(i);
    return {};
  }
  OCCL_HOST_DEVICE Obstacle lineOf(uint32_t source) const {
    const ConnectionEnd &connection = program.ends[operands[source].end];
    return {BlockReason::Data, connection.connection, program.peers[connection.firstPeer]};
  }

  /// For targets that hold a slice in registers.
  OCCL_HOST_DEVICE StepStatus foldLines() {
    auto &task = target.lineTask();
    uint32_t numOperands = instruction.numSources + instruction.numDestinations;
    target.barrier(); // the task before is no longer in use
    for (uint32_t i = target.thread(); i < numOperands; i += target.numThreads()) {
      const BoundOperand &operand = operands[i];
      if (isInLines(operand))
        task.operands[i] = {slot(operand), flag(operand), false};
      else
        task.operands[i] = {bufferOf(operand) + operand.offset, 0,
                            operand.kind == plan::OperandKind::Scratch};
    }
    if (target.thread() == 0) {
      task.program = &program;
      task.instruction = &instruction;
      task.tile = context.tile;
      task.begin = begin;
      task.end = end;
      task.divisor = instruction.divides ? program.numRanks : 1;
      task.numSources = instruction.numSources;
      task.numDestinations = instruction.numDestinations;
    }
    if (target.foldLines())
      return StepStatus::Progressed;
    missingInFold = lineOf(task.missing);
    return StepStatus::Blocked;
  }

  OCCL_HOST_DEVICE void unpackSources() {
    for (uint32_t i = 0; i < instruction.numSources; ++i)
      if (isInLines(operands[i]))
        target.unpackLines(program.line, slot(operands[i]), stageOf(i), sliceBytes());
    target.barrier();
  }

  OCCL_HOST_DEVICE void packDestinations() {
    target.barrier();
    uint32_t numSources = instruction.numSources;
    for (uint32_t i = numSources; i < numSources + instruction.numDestinations; ++i)
      if (isInLines(operands[i]))
        target.packLines(program.line, stageOf(i), slot(operands[i]), sliceBytes(),
                         flag(operands[i]));
  }

  OCCL_HOST_DEVICE Obstacle pollData(const BoundOperand &operand) const {
    const ConnectionEnd &connection = program.ends[operand.end];
    uint32_t source = program.peers[connection.firstPeer];
    if (!isAnnounced(connection))
      return {BlockReason::Announce, connection.connection, source};
    if (isInLines(connection))
      return {};
    if (target.acquire(tailWord(connection)) < counter(connection, operand))
      return {connection.isCounter ? BlockReason::Signal : BlockReason::Data, connection.connection,
              source};
    return {};
  }

  OCCL_HOST_DEVICE Obstacle pollCredit(const BoundOperand &operand) const {
    const ConnectionEnd &connection = program.ends[operand.end];
    const uint32_t *peers = program.peers + connection.firstPeer;
    if (!isAnnounced(connection))
      return {BlockReason::Announce, connection.connection, peers[0]};
    uint64_t sent = counter(connection, operand);
    if (connection.isCounter)
      return {};
    uint64_t capacity = program.depth * program.slicesPerMessage;
    for (uint32_t i = 0; sent > capacity && i < connection.numPeers; ++i)
      if (target.acquire(headWord(connection, i)) < sent - capacity)
        return {BlockReason::Credit, connection.connection, peers[i]};
    return {};
  }

  /// What the slice's receivers are referred to; 0: its data goes into slots.
  OCCL_HOST_DEVICE Reference referenceOfSlice() const {
    if (instruction.refers == 0)
      return 0;
    const BoundOperand &operand = operands[instruction.refers - 1];
    Reference base = invocation.references[static_cast<uint32_t>(operand.kind)];
    // Who does not copy would need a copy of the data to fold from: a slot is no worse.
    if (base == 0 || (invocation.inPlace && !instruction.refersInPlace) ||
        (!(base & kMappedReference) && !instruction.copyReceivers))
      return 0;
    return base + operand.offset +
           (context.tile * program.tileElements + begin) * program.elementBytes;
  }

  OCCL_HOST_DEVICE uint64_t *referenceWord(const ConnectionEnd &connection,
                                           const BoundOperand &operand) const {
    return tailWord(connection) + 1 + slotIndex(connection, operand);
  }

  /// `elements` elements, `inSlice` elements after the slice's begin; in user buffers `inUser`
  /// elements after the first chunk's begin, in scratch `inScratch`.
  OCCL_HOST_DEVICE bool foldPiece(uint64_t inSlice, uint64_t inUser, uint64_t inScratch,
                                  uint64_t elements) {
    uint32_t numSources = instruction.numSources, numDestinations = instruction.numDestinations;
    if constexpr (Target::kHasReferences)
      if (referenceOfSlice() != 0)
        numDestinations = instruction.numLocalDestinations;
    if (numDestinations == 0)
      return true;
    uint32_t numOperands = numSources + numDestinations;
    char **pointers = target.pointers();
    for (uint32_t i = target.thread(); i < numOperands; i += target.numThreads()) {
      const BoundOperand &operand = operands[i];
      if (operand.kind == plan::OperandKind::Connection) {
        pointers[i] = placeOf(i) + inSlice * program.elementBytes;
        continue;
      }
      uint64_t element = operand.kind == plan::OperandKind::Scratch ? inScratch : inUser;
      pointers[i] = bufferOf(operand) + operand.offset + element * program.elementBytes;
    }
    target.barrier();
    if constexpr (Target::kHasReferences)
      for (uint32_t i = 0; i < numSources; ++i)
        if (operands[i].kind == plan::OperandKind::Connection &&
            !followReference(i, inSlice, elements))
          return false;
    target.fold(program, numSources, numDestinations, elements,
                instruction.divides ? program.numRanks : 1);
    return true;
  }

  /// Where the slice of a connection's operand is folded from or to.
  OCCL_HOST_DEVICE char *placeOf(uint32_t i) const {
    if constexpr (kLines && !Target::kLinesInRegisters)
      return stageOf(i);
    else
      return slot(operands[i]);
  }

  /// The address of source i's piece, or the piece itself, if its slot refers to the sender's
  /// buffer.
  bool followReference(uint32_t i, uint64_t inSlice, uint64_t elements) {
    const ConnectionEnd &connection = program.ends[operands[i].end];
    if (!connection.mayRefer)
      return true;
    Reference reference = target.load(referenceWord(connection, operands[i]));
    if (reference == 0)
      return true;
    reference += inSlice * program.elementBytes;
    missingInFold = {BlockReason::Data, connection.connection, connection.dataRank};
    const auto &memory = invocation.peerMemory[connection.dataRank];
    uint64_t bytes = elements * program.elementBytes;
    char **pointers = target.pointers();
    if (reference & kMappedReference) {
      pointers[i] = target.mapped(memory, reference, bytes);
      return pointers[i] != nullptr;
    }
    // Only to receivers that copy: the first destination's other ones are filled from there.
    pointers[i] = pointers[instruction.numSources];
    return target.read(memory, reference, pointers[i], bytes);
  }

  OCCL_HOST_DEVICE char *bufferOf(const BoundOperand &operand) const {
    auto kind = static_cast<uint32_t>(operand.kind);
    return isOwn(operand) ? invocation.buffers[kind]
                          : target.acquire(invocation.peerBuffers + operand.rank * 3 + kind);
  }

  OCCL_HOST_DEVICE uint64_t slotIndex(const ConnectionEnd &connection,
                                      const BoundOperand &operand) const {
    return (message(connection, operand) & (program.depth - 1)) * program.slicesPerMessage +
           context.slice;
  }
  OCCL_HOST_DEVICE char *slot(const BoundOperand &operand) const {
    const ConnectionEnd &connection = program.ends[operand.end];
    return invocation.arenas[connection.dataRank] + connection.slotsOffset +
           slotIndex(connection, operand) * connection.slotBytes;
  }

  /// The ranks that may sleep until what was just published; the own one for the sake of executors
  /// of other thread blocks.
  void ring() {
    if (invocation.doorbells == nullptr)
      return;
    target.fenceBeforeRings();
    uint32_t numOperands = instruction.numSources + instruction.numDestinations;
    for (uint32_t i = 0; i < numOperands; ++i) {
      if (operands[i].kind != plan::OperandKind::Connection)
        continue;
      const ConnectionEnd &connection = program.ends[operands[i].end];
      if (i < instruction.numSources && !returnsCredit(connection, operands[i]))
        continue;
      for (uint32_t p = 0; p < connection.numPeers; ++p)
        target.ring(invocation.doorbells[program.peers[connection.firstPeer + p]]);
    }
    if (isLast && instruction.published)
      target.ring(invocation.doorbells[program.rank]);
  }

  const Invocation &invocation;
  const Program &program;
  const BoundBlock &block;
  const BoundInstruction &instruction;
  const BoundOperand *operands;
  const BlockContext context; // a copy: advance() writes the caller's
  Target &target;
  uint64_t begin, end; // elements of the message
  bool isLast;         // of its slices
  Obstacle missingInFold;
};

} // namespace detail
} // namespace occl::interpreter
