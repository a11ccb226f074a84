#include "runtime/interpreter/ready_tables.h"

#include <algorithm>

namespace occl::interpreter {

namespace {

class Maker {
public:
  Maker(const Program &program, uint32_t block)
      : program(program), index(block), bound(program.blocks[block]) {}

  ReadyBlockTables make() && {
    for (uint32_t i = 0; i < bound.numInstructions; ++i)
      step(i);
    tables.obstacles.resize(acquires.size() + releases.size());
    std::ranges::copy(acquireObstacles, tables.obstacles.begin());
    tables.obstacles.insert(tables.obstacles.end(), operandObstacles.begin(),
                            operandObstacles.end());
    tables.sources = std::move(acquires);
    for (ReadyStep &step : tables.steps)
      step.firstRelease = static_cast<uint16_t>(step.firstRelease + tables.sources.size());
    tables.sources.insert(tables.sources.end(), releases.begin(), releases.end());
    tables.firstOperand = static_cast<uint32_t>(tables.sources.size());
    for (FoldPiece &piece : tables.pieces)
      piece.firstPointer += tables.firstOperand;
    tables.sources.insert(tables.sources.end(), operands.begin(), operands.end());
    return std::move(tables);
  }

private:
  void step(uint32_t i) {
    const BoundInstruction &instruction = program.instructions[bound.firstInstruction + i];
    if (instruction.numInstructions != 0)
      movesData = instruction.movesData;
    ReadyStep step;
    step.firstAcquire = static_cast<uint16_t>(acquires.size());
    step.firstRelease = static_cast<uint16_t>(releases.size());
    if (instruction.numInstructions != 0) {
      for (uint32_t a = 0; a < instruction.numAcquires; ++a)
        acquire(program.acquires[instruction.firstAcquire + a]);
      for (uint32_t r = 0; r < instruction.numReleases; ++r)
        release(program.releases[instruction.firstRelease + r]);
      if (instruction.published)
        progress(i + instruction.numInstructions);
    }
    step.numAcquires = static_cast<uint16_t>(acquires.size() - step.firstAcquire);
    step.numReleases = static_cast<uint16_t>(releases.size() - step.firstRelease);
    step.numPieces = movesData ? instruction.numInstructions : 0;
    step.nextInstruction = static_cast<uint16_t>(i + instruction.numInstructions);
    while (1u << step.pieceBits < step.numPieces)
      ++step.pieceBits;
    tables.steps.push_back(step);
    piece(instruction);
  }

  void piece(const BoundInstruction &instruction) {
    FoldPiece piece;
    piece.allElements = instruction.count == 0 ? 0 : instruction.elements;
    piece.divisor = instruction.divides ? program.numRanks : 1;
    piece.firstPointer = static_cast<uint32_t>(operands.size());
    if (movesData) {
      piece.numSources = instruction.numSources;
      piece.numDestinations = instruction.numDestinations;
      for (uint32_t o = 0; o < uint32_t(piece.numSources) + piece.numDestinations; ++o)
        operand(program.operands[instruction.firstOperand + o]);
    }
    tables.pieces.push_back(piece);
  }

  void acquire(const BoundAcquire &from) {
    int64_t value = from.value + from.isSliced;
    if (program.numTiles == 1 && from.reason == BlockReason::Credit && value <= 0)
      return;
    acquires.push_back({.offset = from.offset,
                        .value = value,
                        .perTile = static_cast<uint32_t>(from.perTile),
                        .placeAndKind = from.place * 2});
    acquireObstacles.push_back({from.reason, from.what, from.peer});
  }
  void release(const BoundRelease &from) {
    if (from.isStored)
      releases.push_back({.offset = from.offset,
                          .value = static_cast<int64_t>(from.value) + 1,
                          .limit = from.limit,
                          .perTile = static_cast<uint32_t>(from.perTile),
                          .placeAndKind = from.place * 2});
  }
  void progress(uint32_t done) {
    releases.push_back({.offset = index * kControlStride,
                        .value = done,
                        .perTile = bound.numInstructions,
                        .placeAndKind = kProgressPlace * 2});
  }
  void operand(const BoundOperand &from) {
    ReadySource source;
    source.offset = from.offset;
    source.placeAndKind = from.place * 2;
    Obstacle obstacle;
    if (from.kind != plan::OperandKind::Connection) {
      ++source.placeAndKind;
      source.stride = program.tileElements * program.elementBytes;
      source.mask = program.numTiles == 1 ? 0 : ~0u;
    } else {
      source.stride = from.slotBytes;
      source.message = from.message;
      source.perTile = from.messagesPerTile;
      source.mask = static_cast<uint32_t>(program.depth - 1);
      bool hasFlag = program.line.bytes != 0 && from.slotBytes != 0;
      source.value = hasFlag ? int64_t(from.message) + 1 : 0;
      const ConnectionEnd &end = program.ends[from.end];
      obstacle = {BlockReason::Data, end.connection, program.peers[end.firstPeer]};
    }
    operands.push_back(source);
    operandObstacles.push_back(obstacle);
  }

  const Program &program;
  const uint32_t index;
  const BoundBlock &bound;
  ReadyBlockTables tables;
  std::vector<ReadySource> acquires, releases, operands;
  std::vector<Obstacle> acquireObstacles, operandObstacles;
  bool movesData = false;
};

} // namespace

bool isReadyForm(const Program &program, const BoundBlock &block) {
  if (program.slicesPerMessage != 1 || block.numDrains != 0)
    return false;
  for (uint32_t i = 0; i < block.numInstructions; ++i) {
    const BoundInstruction &instruction = program.instructions[block.firstInstruction + i];
    uint64_t largest = std::min(instruction.elements, instruction.span);
    if (!instruction.contiguous || instruction.refers != 0 ||
        (instruction.count != 0 && instruction.sliceElements < largest))
      return false;
  }
  return true;
}

ReadyTables ReadyBlockTables::view() {
  return {sources.data(),
          obstacles.data(),
          steps.data(),
          pieces.data(),
          static_cast<uint32_t>(steps.size()),
          static_cast<uint32_t>(sources.size()),
          firstOperand};
}

ReadyBlockTables makeReadyTables(const Program &program, uint32_t block) {
  return Maker(program, block).make();
}

} // namespace occl::interpreter
