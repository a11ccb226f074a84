// Tables of thread blocks that do nothing but fold lines, for devices.
#include "runtime/exec/step/straight_tables.h"

#include "runtime/base/cache_line.h"
#include "runtime/exec/step/ready.h"

#include <algorithm>

namespace occl::interpreter {

namespace {

class Maker {
public:
  Maker(const Program &program, uint32_t block, std::pmr::memory_resource *memory)
      : program(program), bound(program.blocks[block]), tables(memory) {}

  std::optional<StraightTables> make() && {
    // Without tiles and drains nothing is left to wait for but lines.
    if (program.line.bytes == 0 || program.numTiles != 1 || bound.numDrains != 0)
      return {};
    reserve();
    for (uint32_t i = 0; i < bound.numInstructions; i += instructionAt(i).numInstructions)
      if (!step(i))
        return {};
    if (tables.steps.size() > kMaxStraightSteps)
      return {};
    return std::move(tables);
  }

private:
  const BoundInstruction &instructionAt(uint32_t i) const {
    return program.instructions[bound.firstInstruction + i];
  }

  /// Enough if each instruction is one slice.
  void reserve() {
    uint32_t operands = 0;
    for (uint32_t i = 0; i < bound.numInstructions; ++i)
      operands += uint32_t(instructionAt(i).numSources) + instructionAt(i).numDestinations;
    tables.steps.reserve(bound.numInstructions);
    tables.pieces.reserve(bound.numInstructions);
    tables.operands.reserve(operands);
    tables.obstacles.reserve(operands);
  }

  /// False: it has control words, data of another kind, or too much.
  bool step(uint32_t first) {
    const BoundInstruction &leader = instructionAt(first);
    if (waits(leader) || publishes(leader))
      return false;
    StraightStep step;
    step.firstPiece = static_cast<uint16_t>(tables.pieces.size());
    step.instruction = static_cast<uint16_t>(first);
    for (uint32_t i = first; i < first + leader.numInstructions; ++i)
      if (!pieces(instructionAt(i)))
        return false;
    step.numPieces = static_cast<uint16_t>(tables.pieces.size() - step.firstPiece);
    // Each piece has as many units as the largest: so a thread finds its piece by a division, which
    // is a multiplication here.
    uint32_t units = 0;
    for (uint32_t p = step.firstPiece; p < tables.pieces.size(); ++p) {
      units = std::max<uint32_t>(units, tables.pieces[p].units);
      step.maxSources = std::max(step.maxSources, tables.pieces[p].numSources);
    }
    step.unitsEach = static_cast<uint16_t>(std::max<uint32_t>(alignUp(units, 8), 8));
    step.reciprocal = (1u << 22) / step.unitsEach + 1;
    if (step.numUnits() > kMaxStraightUnits)
      return false;
    tables.numThreads = std::max(tables.numThreads, std::min(step.numUnits(), kMaxStraightThreads));
    tables.steps.push_back(step);
    return true;
  }

  /// Credit that has been there from the start is nothing to wait for.
  bool waits(const BoundInstruction &leader) const {
    for (uint32_t a = 0; a < leader.numAcquires; ++a) {
      // A credit up to 0 is there from the start.
      const BoundAcquire &acquire = program.acquires[leader.firstAcquire + a];
      if (acquire.reason != BlockReason::Credit || acquire.value + acquire.isSliced > 0)
        return true;
    }
    return false;
  }
  bool publishes(const BoundInstruction &leader) const {
    for (uint32_t r = 0; r < leader.numReleases; ++r) {
      const BoundRelease &release = program.releases[leader.firstRelease + r];
      if (release.isStored && release.value + 1 <= release.limit)
        return true;
    }
    return leader.published;
  }

  /// One for each slice.
  bool pieces(const BoundInstruction &instruction) {
    if (instruction.count == 0 || instruction.numSources == 0 ||
        instruction.numSources > kMaxStraightSources || instruction.numDestinations > 255 ||
        !instruction.contiguous || instruction.refers != 0)
      return false;
    uint64_t begin = 0;
    // An instruction without elements has one slice, too.
    for (uint32_t slice = 0; slice == 0 || begin < instruction.elements; ++slice) {
      uint64_t end = std::min(begin + instruction.sliceElements, instruction.elements);
      if (!piece(instruction, {slice, begin, end}))
        return false;
      begin = end;
    }
    return true;
  }

  /// Of a message: which, and its elements.
  struct SliceOf {
    uint32_t number;
    uint64_t begin, end;
  };

  bool piece(const BoundInstruction &instruction, const SliceOf &slice) {
    uint64_t bytes = (slice.end - slice.begin) * program.elementBytes;
    if (tables.pieces.size() == kMaxStraightPieces ||
        unitsInLines(program.line, bytes) > kMaxStraightThreads)
      return false;
    StraightPiece piece;
    piece.firstOperand = static_cast<uint16_t>(tables.operands.size());
    piece.numSources = static_cast<uint8_t>(instruction.numSources);
    piece.numDestinations = static_cast<uint8_t>(instruction.numDestinations);
    piece.bytes = static_cast<uint16_t>(bytes);
    piece.units = static_cast<uint16_t>(unitsInLines(program.line, bytes));
    piece.divisor = instruction.divides ? program.numRanks : 1;
    tables.pieces.push_back(piece);
    // Each operand says for itself whether it fits.
    for (uint32_t o = 0; o < uint32_t(piece.numSources) + piece.numDestinations; ++o)
      if (!operand(instruction, program.operands[instruction.firstOperand + o], slice))
        return false;
    return tables.operands.size() <= kMaxStraightOperands;
  }

  bool operand(const BoundInstruction &instruction, const BoundOperand &from,
               const SliceOf &slice) {
    StraightOperand operand;
    operand.offset = from.offset;
    operand.place = from.place;
    Obstacle obstacle;
    // Straight steps access no buffer of another rank.
    if (from.kind != plan::OperandKind::Connection) {
      if (from.rank != program.rank)
        return false;
      operand.offset += slice.begin * program.elementBytes;
    } else {
      // Signals are words, not lines.
      if (from.slotBytes == 0)
        return false;
      const ConnectionEnd &end = program.ends[from.end];
      obstacle = {BlockReason::Data, end.connection, program.peers[end.firstPeer]};
      // The last slice counts for all that the message does not have.
      uint64_t done =
          slice.end == instruction.elements ? program.slicesPerMessage : uint64_t(slice.number) + 1;
      operand.offset +=
          ((from.message & (program.depth - 1)) * program.slicesPerMessage + slice.number) *
          from.slotBytes;
      operand.flag = static_cast<uint32_t>(from.message * program.slicesPerMessage + done);
    }
    tables.operands.push_back(operand);
    tables.obstacles.push_back(obstacle);
    return true;
  }

  const Program &program;
  const BoundBlock &bound;
  StraightTables tables;
};

} // namespace

std::optional<StraightTables> makeStraightTables(const Program &program, uint32_t block,
                                                 std::pmr::memory_resource *memory) {
  return Maker(program, block, memory).make();
}

} // namespace occl::interpreter
