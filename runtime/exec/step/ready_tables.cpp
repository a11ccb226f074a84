// Writes out the steps of a thread block as addresses and values, for devices.
#include "runtime/exec/step/ready_tables.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace occl::interpreter {

namespace {

/// Whether its messages may have several slices, or its chunks do not lie side by side.
bool isPerStep(const BoundInstruction &instruction) {
  return instruction.count != 0 &&
         (!instruction.contiguous ||
          std::min(instruction.elements, instruction.span) > instruction.sliceElements);
}

class Maker {
public:
  Maker(const Program &program, uint32_t block, std::pmr::memory_resource *memory)
      : program(program), index(block), bound(program.blocks[block]), tables(memory),
        acquires(memory), releases(memory), operands(memory), acquireObstacles(memory),
        operandObstacles(memory) {}

  ReadyBlockTables make() && {
    reserve();
    for (uint32_t i = 0; i < bound.numInstructions; ++i)
      step(i);
    tables.numInstructions = bound.numInstructions;
    tables.obstacles = std::move(acquireObstacles);
    if (program.line.bytes != 0) { // else nobody waits for an operand
      tables.obstacles.resize(acquires.size() + releases.size());
      tables.obstacles.insert(tables.obstacles.end(), operandObstacles.begin(),
                              operandObstacles.end());
    }
    // Acquires, releases and operands lie behind each other in one table.
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

  /// Enough if no instruction has scattered chunks.
  void reserve() {
    size_t numAcquires = 0, numReleases = 0, numOperands = 0;
    for (uint32_t i = 0; i < bound.numInstructions; ++i) {
      const BoundInstruction &instruction = instructionAt(i);
      // Words are counted at the first instruction of a step.
      numAcquires += instruction.numInstructions != 0 ? instruction.numAcquires : 0;
      numReleases += instruction.numInstructions != 0 ? instruction.numReleases + 1 : 0;
      numOperands += size_t{instruction.numSources} + instruction.numDestinations;
    }
    tables.steps.reserve(bound.numInstructions);
    tables.pieces.reserve(bound.numInstructions);
    acquires.reserve(numAcquires + numReleases + numOperands);
    releases.reserve(numReleases);
    operands.reserve(numOperands);
    acquireObstacles.reserve(numAcquires + numReleases + numOperands);
    operandObstacles.reserve(numOperands);
  }

  void step(uint32_t i) {
    const BoundInstruction &instruction = instructionAt(i);
    perStep = isPerStep(instruction);
    tables.isPerStep |= perStep;
    // Who is told of each slice is told of the first one; else the last one, which is all there is,
    // counts for all that the message does not have.
    done = perStep ? 1 : program.slicesPerMessage;
    if (instruction.numInstructions != 0)
      movesData = instruction.movesData;
    ReadyStep step;
    step.firstAcquire = static_cast<uint16_t>(acquires.size());
    step.firstRelease = static_cast<uint16_t>(releases.size());
    step.firstPiece = static_cast<uint16_t>(tables.pieces.size());
    step.sliceElements = perStep ? instruction.sliceElements : 0;
    step.isScattered = !instruction.contiguous;
    // The first instruction has the words of its whole step.
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
    pieces(instruction);
    step.numPieces = !movesData               ? 0
                     : instruction.contiguous ? instruction.numInstructions
                                              : static_cast<uint16_t>(instruction.count);
    step.nextInstruction = static_cast<uint16_t>(i + instruction.numInstructions);
    while (1u << step.pieceBits < step.numPieces)
      ++step.pieceBits;
    tables.steps.push_back(step);
  }

  /// One, or of scattered chunks one for each.
  void pieces(const BoundInstruction &instruction) {
    if (instruction.contiguous)
      return piece(instruction, instruction.count == 0 ? 0 : instruction.elements, 0, 0);
    detail::ChunkCursor cursor(program, instruction.extent);
    for (uint32_t chunk = 0; chunk < instruction.count; ++chunk, cursor.next())
      piece(instruction, cursor.size(), cursor.position, chunk * program.scratchStride);
  }

  /// The chunk lies so many elements behind the first one, in user buffers and in scratch.
  void piece(const BoundInstruction &instruction, uint64_t elements, uint64_t inUser,
             uint64_t inScratch) {
    FoldPiece piece;
    piece.allElements = elements;
    piece.divisor = instruction.divides ? program.numRanks : 1;
    piece.firstPointer = static_cast<uint32_t>(operands.size());
    // A step without data needs no operands.
    if (movesData) {
      piece.numSources = instruction.numSources;
      piece.numDestinations = instruction.numDestinations;
      for (uint32_t o = 0; o < uint32_t(piece.numSources) + piece.numDestinations; ++o) {
        const BoundOperand &from = program.operands[instruction.firstOperand + o];
        operand(from, from.kind == plan::OperandKind::Scratch ? inScratch : inUser);
      }
    }
    tables.pieces.push_back(piece);
  }

  void acquire(const BoundAcquire &from) {
    int64_t value = from.value + (from.isSliced ? static_cast<int64_t>(done) : 0);
    if (program.numTiles == 1 && from.reason == BlockReason::Credit && value <= 0)
      return; // nor for later slices, which are all of a message that has a slot of its own
    acquires.push_back({.offset = from.offset,
                        .value = value,
                        .perTile = static_cast<uint32_t>(from.perTile),
                        .placeAndKind = kindOf(from.place, from.isSliced)});
    acquireObstacles.push_back({from.reason, from.what, from.peer});
  }
  void release(const BoundRelease &from) {
    if (from.isStored)
      releases.push_back({.offset = from.offset,
                          .value = static_cast<int64_t>(from.value + done),
                          .limit = from.limit,
                          .perTile = static_cast<uint32_t>(from.perTile),
                          .placeAndKind = kindOf(from.place, true)});
  }
  void progress(uint32_t done) {
    releases.push_back({.offset = index * kControlStride,
                        .value = done,
                        .perTile = bound.numInstructions,
                        .placeAndKind = kindOf(kProgressPlace, false)});
  }
  void operand(const BoundOperand &from, uint64_t element) {
    ReadySource source;
    source.offset = from.offset;
    Obstacle obstacle;
    // A buffer goes on with the tile; a connection with the message, in slots that repeat
    // themselves.
    if (from.kind != plan::OperandKind::Connection) {
      source.placeAndKind = static_cast<uint16_t>(kindOf(from.place, false) + 1);
      source.offset += element * program.elementBytes;
      source.stride = program.tileElements * program.elementBytes;
      source.mask = program.numTiles == 1 ? 0 : ~0u;
    } else {
      const bool hasFlag = program.line.bytes != 0 && from.slotBytes != 0;
      source.placeAndKind = kindOf(from.place, hasFlag);
      source.stride = from.slotBytes;
      source.slices = static_cast<uint16_t>(program.slicesPerMessage);
      source.message = from.message;
      source.perTile = from.messagesPerTile;
      source.mask = static_cast<uint32_t>(program.depth - 1);
      source.value =
          hasFlag ? static_cast<int64_t>(from.message * program.slicesPerMessage + done) : 0;
      const ConnectionEnd &end = program.ends[from.end];
      obstacle = {BlockReason::Data, end.connection, program.peers[end.firstPeer]};
    }
    operands.push_back(source);
    operandObstacles.push_back(obstacle);
  }

  uint16_t kindOf(Place place, bool countsSlices) const {
    return static_cast<uint16_t>(place * 4 + (perStep && countsSlices ? 2 : 0));
  }

  const Program &program;
  const uint32_t index;
  const BoundBlock &bound;
  ReadyBlockTables tables;
  std::pmr::vector<ReadySource> acquires, releases, operands;
  std::pmr::vector<Obstacle> acquireObstacles, operandObstacles;
  bool movesData = false;
  // Of the step that is being written out: what it brings a counter to, of its message.
  bool perStep = false;
  uint64_t done = 1;
};

/// In bytes; of elements, not of what is in flight.
uint64_t bytesOf(const Program &program, const ReadyBlockTables &tables, const ReadyStep &step) {
  uint64_t elements = 0;
  for (const FoldPiece &piece : std::span(tables.pieces).subspan(step.firstPiece, step.numPieces))
    elements += piece.allElements;
  return elements * program.elementBytes;
}

} // namespace

ReadyTables ReadyBlockTables::view() {
  return {sources.data(),
          obstacles.data(),
          steps.data(),
          pieces.data(),
          numInstructions,
          static_cast<uint32_t>(pieces.size()),
          static_cast<uint32_t>(sources.size()),
          firstOperand};
}

ReadyBlockTables makeReadyTables(const Program &program, uint32_t block,
                                 std::pmr::memory_resource *memory) {
  return Maker(program, block, memory).make();
}

bool measureBeforehand(const Program &program, uint32_t alignment, uint64_t aloneBytes,
                       ReadyBlockTables &tables) {
  if (program.numTiles != 1 || program.line.bytes != 0)
    return false;
  for (const ReadyStep &step : tables.steps)
    if (step.numPieces != 0 && bytesOf(program, tables, step) <= aloneBytes)
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
