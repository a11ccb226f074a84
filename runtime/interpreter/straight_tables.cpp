#include "runtime/interpreter/straight_tables.h"

#include "runtime/base/cache_line.h"
#include "runtime/interpreter/ready.h"
#include "runtime/interpreter/ready_tables.h"

#include <algorithm>

namespace occl::interpreter {

namespace {

class Maker {
public:
  Maker(const Program &program, uint32_t block) : program(program), bound(program.blocks[block]) {}

  std::optional<StraightTables> make() && {
    if (program.line.bytes == 0 || program.numTiles != 1 || !isReadyForm(program, bound) ||
        bound.numInstructions > kMaxStraightPieces)
      return {};
    for (uint32_t i = 0; i < bound.numInstructions; i += instructionAt(i).numInstructions)
      if (!step(i))
        return {};
    if (tables.operands.size() > kMaxStraightOperands || tables.steps.size() > kMaxStraightSteps ||
        tables.numThreads > kMaxReadyUnits)
      return {};
    return std::move(tables);
  }

private:
  const BoundInstruction &instructionAt(uint32_t i) const {
    return program.instructions[bound.firstInstruction + i];
  }

  /// False: it has control words, or data of another kind.
  bool step(uint32_t first) {
    const BoundInstruction &leader = instructionAt(first);
    if (waits(leader) || publishes(leader))
      return false;
    StraightStep step;
    step.firstPiece = static_cast<uint16_t>(tables.pieces.size());
    step.numPieces = leader.numInstructions;
    step.instruction = static_cast<uint16_t>(first);
    uint32_t units = 0;
    for (uint32_t i = first; i < first + leader.numInstructions; ++i) {
      if (!piece(instructionAt(i)))
        return false;
      units = std::max<uint32_t>(units, tables.pieces.back().units);
    }
    step.threadsEach = static_cast<uint16_t>(std::max<uint32_t>(alignUp(units, 8), 8));
    step.reciprocal = (1u << 22) / step.threadsEach + 1;
    tables.numThreads = std::max<uint32_t>(tables.numThreads, step.numPieces * step.threadsEach);
    tables.steps.push_back(step);
    return true;
  }

  /// Credit that has been there from the start is nothing to wait for.
  bool waits(const BoundInstruction &leader) const {
    for (uint32_t a = 0; a < leader.numAcquires; ++a) {
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

  bool piece(const BoundInstruction &instruction) {
    if (instruction.count == 0 || instruction.numSources == 0 ||
        instruction.numSources > kMaxStraightSources || instruction.numDestinations > 255)
      return false;
    uint64_t bytes = instruction.elements * program.elementBytes;
    if (unitsInLines(program.line, bytes) > kMaxReadyUnits)
      return false;
    StraightPiece piece;
    piece.firstOperand = static_cast<uint16_t>(tables.operands.size());
    piece.numSources = static_cast<uint8_t>(instruction.numSources);
    piece.numDestinations = static_cast<uint8_t>(instruction.numDestinations);
    piece.bytes = static_cast<uint16_t>(bytes);
    piece.units = static_cast<uint16_t>(unitsInLines(program.line, bytes));
    piece.divisor = instruction.divides ? program.numRanks : 1;
    tables.pieces.push_back(piece);
    for (uint32_t o = 0; o < uint32_t(piece.numSources) + piece.numDestinations; ++o)
      if (!operand(program.operands[instruction.firstOperand + o]))
        return false;
    return true;
  }

  bool operand(const BoundOperand &from) {
    StraightOperand operand;
    operand.offset = from.offset;
    operand.place = from.place;
    Obstacle obstacle;
    if (from.kind != plan::OperandKind::Connection) {
      if (from.rank != program.rank)
        return false;
    } else {
      if (from.slotBytes == 0)
        return false;
      const ConnectionEnd &end = program.ends[from.end];
      obstacle = {BlockReason::Data, end.connection, program.peers[end.firstPeer]};
      operand.flag = from.message + 1;
      operand.perTile = from.messagesPerTile;
      operand.message = from.message;
      operand.mask = static_cast<uint32_t>(program.depth - 1);
      operand.stride = static_cast<uint32_t>(from.slotBytes);
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

std::optional<StraightTables> makeStraightTables(const Program &program, uint32_t block) {
  return Maker(program, block).make();
}

} // namespace occl::interpreter
