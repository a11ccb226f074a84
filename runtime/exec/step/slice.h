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

#include "plan/model/chunking.h"
#include "runtime/exec/step/invocation.h"

#include <cstdint>

namespace occl::interpreter {

/// What a blocked step waits for; each is a stable condition: once true, true until the step is
/// done.
struct Obstacle {
  BlockReason reason = BlockReason::None;
  uint32_t what = 0; // the connection in the plan, or the thread block
  uint32_t peer = 0; // rank

  bool operator==(const Obstacle &) const = default;
};

/// PeerLost: memory of a peer cannot be read any more, or the peer has failed, so that what was
/// read may be something else. The step has published nothing.
enum class StepStatus : uint8_t { Progressed, Finished, Blocked, PeerLost };

/// One of several independent folds of a step.
struct alignas(16) FoldPiece {
  uint64_t elements = 0;
  uint32_t divisor = 1;
  uint32_t firstPointer = 0; // of the step's pointers: sources, then destinations
  uint16_t numSources = 0;
  uint16_t numDestinations = 0;
  /// The bits in which any address differs from a multiple of 16.
  uint32_t misalignment = 0;
  uint32_t units = 0;       // lines: of 16 bytes
  uint64_t allElements = 0; // of all tiles
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
      char *head =
          invocation.places[arenaPlace(end.creditRank)] + end.headsOffset + p * kControlStride;
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
    slicesDone = isLast ? program.slicesPerMessage : uint64_t(context.slice) + 1;
  }

  /// The first thing that is missing, of those that this thread looks at.
  OCCL_HOST_DEVICE Obstacle poll() const {
    // Addresses first: what is not announced yet cannot be looked at.
    uint32_t step = target.numThreads();
    if constexpr (!Target::kKnowsAllPlaces)
      for (uint32_t i = target.thread(); i < instruction.numNeeds; i += step) {
        const BoundNeed &need = program.needs[instruction.firstNeed + i];
        if (place(need.place) == nullptr)
          return {BlockReason::Announce, need.connection, need.peer};
      }
    for (uint32_t i = target.thread(); i < instruction.numAcquires; i += step) {
      const BoundAcquire &awaited = program.acquires[instruction.firstAcquire + i];
      char *base = place(awaited.place);
      if constexpr (!Target::kKnowsAllPlaces)
        if (base == nullptr)
          return {BlockReason::Announce, awaited.what, awaited.peer};
      // A value of 0 or less is there before the invocation begins.
      int64_t value = awaited.value + static_cast<int64_t>(context.tile) * awaited.perTile +
                      static_cast<int64_t>(awaited.isSliced ? slicesDone : 0);
      if (value > 0 && target.acquire(word(base + awaited.offset)) <
                           static_cast<uint64_t>(value) + invocation.wordBase)
        return {awaited.reason, awaited.what, awaited.peer};
    }
    if constexpr (kLines && !Target::kLinesInRegisters)
      return pollLines();
    return {};
  }

  /// Only after all threads' polls found nothing missing. Progressed; or Blocked, with nothing
  /// stored, where the target looks at lines while it folds them.
  OCCL_HOST_DEVICE StepStatus fold() {
    if (!instruction.movesData)
      return StepStatus::Progressed;
    // Three forms: lines that go through registers, several instructions as one, and one slice,
    // whose lines are unpacked before and packed after.
    if constexpr (kLines && Target::kLinesInRegisters) {
      return foldLines();
    } else {
      if (instruction.numInstructions > 1) {
        foldGroup();
        return StepStatus::Progressed;
      }
      if constexpr (kLines)
        unpackSources();
      foldPieces();
      if constexpr (kLines)
        packDestinations();
      return StepStatus::Progressed;
    }
  }

  /// Only after all threads have folded.
  OCCL_HOST_DEVICE void publish(uint32_t blockIndex) {
    const BoundRelease *releases = program.releases + instruction.firstRelease;
    for (uint32_t i = target.thread(); i < instruction.numReleases; i += target.numThreads()) {
      const BoundRelease &released = releases[i];
      uint64_t value = valueOf(released);
      if (!released.isStored || value > released.limit)
        continue;
      char *address = place(released.place) + released.offset;
      target.release(word(address), value + invocation.wordBase);
    }
    if (isLast && instruction.published && target.thread() == 0)
      target.release(word(place(kProgressPlace) + blockIndex * kControlStride), completion());
  }

  /// What fold() found missing.
  OCCL_HOST_DEVICE const Obstacle &missing() const { return missingInFold; }

  OCCL_HOST_DEVICE void advance(BlockContext &next) const {
    if (!isLast) {
      ++next.slice;
      return;
    }
    next.slice = 0;
    next.instruction += instruction.numInstructions;
    if (next.instruction == block.numInstructions) {
      next.instruction = 0;
      ++next.tile;
    }
  }

private:
  OCCL_HOST_DEVICE void foldPieces() {
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
        foldPiece(from - begin, cursor.position + element, i * program.scratchStride + element,
                  to - from);
      }
      packed += length;
    }
  }

  /// What a tail or head that began this invocation at 0 is once this slice is done.
  OCCL_HOST_DEVICE uint64_t valueOf(const BoundRelease &released) const {
    return released.value + context.tile * released.perTile + slicesDone;
  }
  /// Of the step's last instruction.
  OCCL_HOST_DEVICE uint64_t completion() const {
    return invocation.wordBase + context.tile * block.numInstructions + context.instruction +
           instruction.numInstructions;
  }

  OCCL_HOST_DEVICE static uint64_t *word(char *address) {
    return reinterpret_cast<uint64_t *>(address);
  }
  OCCL_HOST_DEVICE char *place(Place which) const {
    return target.acquire(invocation.places + which);
  }

  OCCL_HOST_DEVICE static bool isMessage(const BoundOperand &operand) {
    return operand.kind == plan::OperandKind::Connection;
  }
  OCCL_HOST_DEVICE static bool isInLines(const BoundOperand &operand) {
    return kLines && isMessage(operand) && operand.slotBytes != 0;
  }
  OCCL_HOST_DEVICE uint64_t message(const BoundOperand &operand) const {
    return context.tile * operand.messagesPerTile + operand.message;
  }
  OCCL_HOST_DEVICE uint64_t flag(const BoundOperand &operand) const {
    return invocation.flagBase + message(operand) * program.slicesPerMessage + slicesDone;
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
        task.operands[i] = {place(operand.place) + operand.offset, 0,
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

  /// `elements` elements, `inSlice` elements after the slice's begin; in user buffers `inUser`
  /// elements after the first chunk's begin, in scratch `inScratch`.
  OCCL_HOST_DEVICE void foldPiece(uint64_t inSlice, uint64_t inUser, uint64_t inScratch,
                                  uint64_t elements) {
    uint32_t numSources = instruction.numSources, numDestinations = instruction.numDestinations;
    if (numDestinations == 0)
      return;
    uint32_t numOperands = numSources + numDestinations;
    char **pointers = target.pointers();
    for (uint32_t i = target.thread(); i < numOperands; i += target.numThreads()) {
      const BoundOperand &operand = operands[i];
      // A message begins with the slice, a buffer with its first chunk.
      uint64_t element = isMessage(operand)                           ? inSlice
                         : operand.kind == plan::OperandKind::Scratch ? inScratch
                                                                      : inUser;
      pointers[i] = placeOf(i) + element * program.elementBytes;
    }
    target.barrier();
    target.fold(program, numSources, numDestinations, elements,
                instruction.divides ? program.numRanks : 1);
  }

  /// The pieces of all instructions of the step: a slice and a row of chunks each, none of which
  /// stores what another one accesses.
  OCCL_HOST_DEVICE void foldGroup() {
    char **pointers = target.pointers();
    uint64_t inTile = context.tile * program.tileElements * program.elementBytes;
    for (uint32_t i = target.thread(); i < instruction.numStepOperands; i += target.numThreads()) {
      const BoundOperand &operand = operands[i];
      pointers[i] = slot(operand) + (isMessage(operand) ? 0 : inTile);
    }
    // Then one piece for each instruction, which refers to its operands among those of the step.
    const BoundInstruction *members = &instruction;
    for (uint32_t i = target.thread(); i < instruction.numInstructions; i += target.numThreads()) {
      const BoundInstruction &member = members[i];
      target.setPiece(i, {member.count == 0 ? 0 : messageElements(program, member, context.tile),
                          member.divides ? program.numRanks : 1,
                          member.firstOperand - instruction.firstOperand, member.numSources,
                          member.numDestinations});
    }
    target.barrier();
    target.foldAll(program, instruction.numInstructions);
  }

  /// Where an operand is folded from or to.
  OCCL_HOST_DEVICE char *placeOf(uint32_t i) const {
    if constexpr (kLines && !Target::kLinesInRegisters)
      if (isMessage(operands[i]))
        return stageOf(i);
    return slot(operands[i]);
  }

  OCCL_HOST_DEVICE uint64_t slotIndex(const BoundOperand &operand) const {
    return (message(operand) & (program.depth - 1)) * program.slicesPerMessage + context.slice;
  }
  /// Of a message; of a buffer, its first chunk.
  OCCL_HOST_DEVICE char *slot(const BoundOperand &operand) const {
    return place(operand.place) + operand.offset + slotIndex(operand) * operand.slotBytes;
  }

  const Invocation &invocation;
  const Program &program;
  const BoundBlock &block;
  const BoundInstruction &instruction;
  const BoundOperand *operands;
  const BlockContext context; // a copy: advance() writes the caller's
  Target &target;
  uint64_t begin, end; // elements of the message
  uint64_t slicesDone; // of the message, with this one
  bool isLast;         // of its slices
  Obstacle missingInFold;
};

} // namespace detail
} // namespace occl::interpreter
