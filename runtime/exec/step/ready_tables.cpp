#include "runtime/exec/step/ready_tables.h"

#include <algorithm>
#include <cstdint>

namespace occl::interpreter {

namespace {

/// On each tile; more than one only if there is one tile.
uint64_t numSlices(const Program &program, const BoundInstruction &instruction) {
  if (instruction.count == 0 || program.numTiles != 1 || instruction.elements == 0)
    return 1;
  return (instruction.elements + instruction.sliceElements - 1) / instruction.sliceElements;
}

class Maker {
public:
  Maker(const Program &program, uint32_t block)
      : program(program), index(block), bound(program.blocks[block]) {}

  ReadyBlockTables make() && {
    for (uint32_t i = 0; i < bound.numInstructions; ++i)
      step(i, 0);
    for (uint32_t i = 0; i < bound.numInstructions; ++i) {
      tables.steps[i].moreSlices = static_cast<uint16_t>(tables.steps.size());
      for (uint32_t slice = 1; slice < numSlices(program, instructionAt(i)); ++slice)
        step(i, slice);
    }
    tables.numInstructions = bound.numInstructions;
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
  const BoundInstruction &instructionAt(uint32_t i) const {
    return program.instructions[bound.firstInstruction + i];
  }

  void step(uint32_t i, uint32_t slice) {
    const BoundInstruction &instruction = instructionAt(i);
    const bool isLast = slice + 1 == numSlices(program, instruction);
    // The last slice counts for all that the message does not have.
    number = slice;
    done = isLast ? program.slicesPerMessage : uint64_t(slice) + 1;
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
      if (instruction.published && isLast)
        progress(i + instruction.numInstructions);
    }
    step.numAcquires = static_cast<uint16_t>(acquires.size() - step.firstAcquire);
    step.numReleases = static_cast<uint16_t>(releases.size() - step.firstRelease);
    step.numPieces = movesData ? instruction.numInstructions : 0;
    step.nextInstruction = static_cast<uint16_t>(isLast ? i + instruction.numInstructions : i);
    step.nextSlice = static_cast<uint16_t>(isLast ? 0 : slice + 1);
    while (1u << step.pieceBits < step.numPieces)
      ++step.pieceBits;
    tables.steps.push_back(step);
    piece(instruction);
  }

  void piece(const BoundInstruction &instruction) {
    FoldPiece piece;
    uint64_t begin = 0; // elements
    piece.allElements = instruction.count == 0 ? 0 : instruction.elements;
    if (numSlices(program, instruction) != 1) {
      begin = number * instruction.sliceElements;
      piece.allElements = std::min(instruction.sliceElements, instruction.elements - begin);
    }
    piece.divisor = instruction.divides ? program.numRanks : 1;
    piece.firstPointer = static_cast<uint32_t>(operands.size());
    if (movesData) {
      piece.numSources = instruction.numSources;
      piece.numDestinations = instruction.numDestinations;
      for (uint32_t o = 0; o < uint32_t(piece.numSources) + piece.numDestinations; ++o)
        operand(program.operands[instruction.firstOperand + o], begin);
    }
    tables.pieces.push_back(piece);
  }

  void acquire(const BoundAcquire &from) {
    int64_t value = from.value + (from.isSliced ? static_cast<int64_t>(done) : 0);
    if (program.numTiles == 1 && from.reason == BlockReason::Credit && value <= 0)
      return;
    acquires.push_back({.offset = from.offset,
                        .value = value,
                        .perTile = static_cast<uint32_t>(from.perTile),
                        .placeAndKind = static_cast<uint16_t>(from.place * 2)});
    acquireObstacles.push_back({from.reason, from.what, from.peer});
  }
  void release(const BoundRelease &from) {
    if (from.isStored)
      releases.push_back({.offset = from.offset,
                          .value = static_cast<int64_t>(from.value + done),
                          .limit = from.limit,
                          .perTile = static_cast<uint32_t>(from.perTile),
                          .placeAndKind = static_cast<uint16_t>(from.place * 2)});
  }
  void progress(uint32_t done) {
    releases.push_back({.offset = index * kControlStride,
                        .value = done,
                        .perTile = bound.numInstructions,
                        .placeAndKind = kProgressPlace * 2});
  }
  void operand(const BoundOperand &from, uint64_t begin) {
    ReadySource source;
    source.offset = from.offset;
    source.placeAndKind = static_cast<uint16_t>(from.place * 2);
    Obstacle obstacle;
    // A buffer goes on with the tile; a connection with the message, in slots that repeat
    // themselves.
    if (from.kind != plan::OperandKind::Connection) {
      ++source.placeAndKind;
      source.offset += begin * program.elementBytes;
      source.stride = program.tileElements * program.elementBytes;
      source.mask = program.numTiles == 1 ? 0 : ~0u;
    } else {
      source.offset += number * from.slotBytes;
      source.stride = program.slicesPerMessage * from.slotBytes;
      source.slices = static_cast<uint16_t>(program.slicesPerMessage);
      source.message = from.message;
      source.perTile = from.messagesPerTile;
      source.mask = static_cast<uint32_t>(program.depth - 1);
      bool hasFlag = program.line.bytes != 0 && from.slotBytes != 0;
      source.value =
          hasFlag ? static_cast<int64_t>(from.message * program.slicesPerMessage + done) : 0;
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
  // Of the slice that is being written out: which, and what it brings a counter to, of its message.
  uint64_t number = 0, done = 1;
};

/// In bytes; of elements, not of what is in flight.
uint64_t bytesOf(const Program &program, const ReadyBlockTables &tables, size_t step) {
  uint64_t elements = 0;
  for (uint32_t i = 0; i < tables.steps[step].numPieces; ++i)
    elements += tables.pieces[step + i].allElements;
  return elements * program.elementBytes;
}

} // namespace

bool isReadyForm(const Program &program, const BoundBlock &block) {
  if ((program.slicesPerMessage != 1 && program.numTiles != 1) ||
      program.slicesPerMessage > UINT16_MAX || block.numDrains != 0)
    return false;
  for (uint32_t i = 0; i < block.numInstructions; ++i) {
    const BoundInstruction &instruction = program.instructions[block.firstInstruction + i];
    uint64_t largest = std::min(instruction.elements, instruction.span);
    const bool isOneSlice = instruction.count == 0 || instruction.sliceElements >= largest;
    if (!instruction.contiguous || instruction.refers != 0 ||
        (!isOneSlice && program.numTiles != 1))
      return false;
  }
  return true;
}

ReadyTables ReadyBlockTables::view() {
  return {sources.data(),
          obstacles.data(),
          steps.data(),
          pieces.data(),
          numInstructions,
          static_cast<uint32_t>(steps.size()),
          static_cast<uint32_t>(sources.size()),
          firstOperand};
}

ReadyBlockTables makeReadyTables(const Program &program, uint32_t block) {
  return Maker(program, block).make();
}

bool measureBeforehand(const Program &program, uint32_t alignment, uint64_t aloneBytes,
                       ReadyBlockTables &tables) {
  if (program.numTiles != 1 || program.line.bytes != 0)
    return false;
  for (size_t s = 0; s < tables.steps.size(); ++s)
    if (tables.steps[s].numPieces != 0 && bytesOf(program, tables, s) <= aloneBytes)
      return false;
  for (FoldPiece &piece : tables.pieces) {
    // On one tile sizes are known; addresses are aligned as their offsets, if their bases are.
    piece.elements = piece.allElements;
    for (uint32_t o = 0; o < uint32_t(piece.numSources) + piece.numDestinations; ++o) {
      const ReadySource &source = tables.sources[piece.firstPointer + o];
      piece.misalignment |= static_cast<uint32_t>((source.offset | source.stride) % alignment);
    }
  }
  return true;
}

} // namespace occl::interpreter
