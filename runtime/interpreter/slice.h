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
};

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

template <class Target> class Slice {
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
    return hasLines() ? pollLines() : Obstacle();
  }

  /// Only after all threads' polls found nothing missing.
  OCCL_HOST_DEVICE void fold() {
    if (instruction.count == 0)
      return;
    if (hasLines())
      unpackSources();
    foldPieces();
    if (hasLines())
      packDestinations();
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
  OCCL_HOST_DEVICE void foldPieces() {
    if (instruction.contiguous) {
      // With several chunks there is one tile only.
      uint64_t element = context.tile * program.tileElements + begin;
      foldPiece(0, element, element, end - begin);
      return;
    }
    uint64_t packed = 0; // where in the message the chunk's piece begins
    ChunkCursor cursor(program, instruction.extent);
    for (uint32_t i = 0; i < instruction.count && packed < end; ++i, cursor.next()) {
      uint64_t length = inTile(cursor.size(), context.tile, program.tileElements);
      uint64_t from = packed < begin ? begin : packed, to = smaller(packed + length, end);
      if (from < to) {
        uint64_t element = context.tile * program.tileElements + from - packed;
        target.barrier(); // the addresses of the piece before are no longer in use
        foldPiece(from - begin, cursor.position + element, i * program.scratchStride + element,
                  to - from);
      }
      packed += length;
    }
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

  OCCL_HOST_DEVICE bool hasLines() const { return program.line.bytes != 0; }
  OCCL_HOST_DEVICE bool isInLines(const ConnectionEnd &connection) const {
    return hasLines() && !connection.isCounter;
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

  /// The threads share out the lines of every source.
  OCCL_HOST_DEVICE Obstacle pollLines() const {
    for (uint32_t i = 0; i < instruction.numSources; ++i) {
      if (!isInLines(operands[i]))
        continue;
      const ConnectionEnd &connection = program.ends[operands[i].end];
      uint32_t source = program.peers[connection.firstPeer];
      if (!isAnnounced(connection))
        return {BlockReason::Announce, connection.connection, source};
      if (!target.linesArrived(program.line, slot(operands[i]), sliceBytes(), flag(operands[i])))
        return {BlockReason::Data, connection.connection, source};
    }
    return {};
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
    if (isInLines(connection))
      return {};
    uint32_t source = program.peers[connection.firstPeer];
    if (!isAnnounced(connection))
      return {BlockReason::Announce, connection.connection, source};
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

  /// `elements` elements, `inSlice` elements after the slice's begin; in user buffers `inUser`
  /// elements after the first chunk's begin, in scratch `inScratch`.
  OCCL_HOST_DEVICE void foldPiece(uint64_t inSlice, uint64_t inUser, uint64_t inScratch,
                                  uint64_t elements) {
    uint32_t numSources = instruction.numSources;
    uint32_t numOperands = numSources + instruction.numDestinations;
    char **pointers = target.pointers();
    for (uint32_t i = target.thread(); i < numOperands; i += target.numThreads()) {
      const BoundOperand &operand = operands[i];
      if (operand.kind == plan::OperandKind::Connection) {
        pointers[i] = (hasLines() ? stageOf(i) : slot(operand)) + inSlice * program.elementBytes;
        continue;
      }
      uint64_t element = operand.kind == plan::OperandKind::Scratch ? inScratch : inUser;
      pointers[i] = bufferOf(operand) + operand.offset + element * program.elementBytes;
    }
    target.barrier();
    target.fold(program, numSources, instruction.numDestinations, elements,
                instruction.divides ? program.numRanks : 1);
  }

  OCCL_HOST_DEVICE char *bufferOf(const BoundOperand &operand) const {
    auto kind = static_cast<uint32_t>(operand.kind);
    return isOwn(operand) ? invocation.buffers[kind]
                          : target.acquire(invocation.peerBuffers + operand.rank * 3 + kind);
  }

  OCCL_HOST_DEVICE char *slot(const BoundOperand &operand) const {
    const ConnectionEnd &connection = program.ends[operand.end];
    uint64_t index =
        (message(connection, operand) & (program.depth - 1)) * program.slicesPerMessage +
        context.slice;
    return invocation.arenas[connection.dataRank] + connection.slotsOffset +
           index * connection.slotBytes;
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
};

} // namespace detail
} // namespace occl::interpreter
