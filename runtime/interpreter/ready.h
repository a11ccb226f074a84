// Steps made ready: for a target where looking things up costs more than doing them. What a thread
// block does on a tile is written out once, as addresses and values; then a step is a short
// straight piece of code: look at these words, fold from here to there, store those words.
//
// It is the same transaction as step.h's, over the same tables, for thread blocks of which each
// instruction is one slice of chunks side by side: see isReadyForm().
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/interpreter/slice.h"
#include "runtime/interpreter/step.h"

#include <cstdint>

namespace occl::interpreter {

/// A control word, and the value that is waited for or stored. A release that is not stored has no
/// word.
struct alignas(16) ReadyWord {
  uint64_t *word = nullptr;
  uint64_t value = 0;
};

/// A step, kept with its first instruction.
struct alignas(16) ReadyStep {
  uint16_t firstAcquire = 0, numAcquires = 0;
  uint16_t firstRelease = 0, numReleases = 0;
  uint16_t numPieces = 0; // from the instruction's own on; 0: it moves no data
  uint16_t nextInstruction = 0;
  /// Logarithm of numPieces, rounded up.
  uint8_t pieceBits = 0;
  /// The target's foldsAlone().
  bool isAlone = false;
  bool published = false;
};

/// How much of everything a thread block has.
struct ReadyCounts {
  uint32_t instructions = 0, acquires = 0, releases = 0, operands = 0;

  OCCL_HOST_DEVICE uint64_t bytes() const;
};

/// What the block's steps need, in memory that all its threads share.
struct ReadyTables {
  ReadyCounts counts;
  ReadyStep *steps = nullptr;  // by instruction
  FoldPiece *pieces = nullptr; // by instruction
  ReadyWord *acquires = nullptr;
  ReadyWord *releases = nullptr;
  char **pointers = nullptr;

  ReadyTables() = default;
  /// Cuts up counts.bytes() bytes, aligned to 16.
  OCCL_HOST_DEVICE ReadyTables(char *memory, const ReadyCounts &counts) : counts(counts) {
    steps = reinterpret_cast<ReadyStep *>(memory);
    pieces = reinterpret_cast<FoldPiece *>(steps + counts.instructions);
    acquires = reinterpret_cast<ReadyWord *>(pieces + counts.instructions);
    releases = acquires + counts.acquires;
    pointers = reinterpret_cast<char **>(releases + counts.releases);
  }
};

OCCL_HOST_DEVICE inline uint64_t ReadyCounts::bytes() const {
  return instructions * (sizeof(ReadyStep) + sizeof(FoldPiece)) +
         (uint64_t(acquires) + releases) * sizeof(ReadyWord) +
         (uint64_t(operands) + 1) / 2 * 2 * sizeof(char *);
}

/// Whether all instructions of a block are one slice each of chunks side by side, without lines and
/// without references.
OCCL_HOST_DEVICE inline bool isReadyForm(const Program &program, const BoundBlock &block) {
  if (program.line.bytes != 0 || program.slicesPerMessage != 1 || block.numDrains != 0)
    return false;
  for (uint32_t i = 0; i < block.numInstructions; ++i) {
    const BoundInstruction &instruction = program.instructions[block.firstInstruction + i];
    uint64_t largest = detail::smaller(instruction.elements, instruction.span);
    if (!instruction.contiguous ||
        (instruction.count != 0 && instruction.sliceElements < largest) || instruction.refers != 0)
      return false;
  }
  return true;
}

OCCL_HOST_DEVICE inline ReadyCounts readyCounts(const Program &program, const BoundBlock &block) {
  ReadyCounts counts;
  counts.instructions = block.numInstructions;
  const BoundInstruction *first = program.instructions + block.firstInstruction;
  auto include = [](uint32_t &count, uint32_t end) { count = end < count ? count : end; };
  for (uint32_t i = 0; i < block.numInstructions; ++i) {
    const BoundInstruction &step = first[i];
    if (step.numInstructions == 0)
      continue;
    include(counts.acquires, step.firstAcquire + step.numAcquires - first->firstAcquire);
    include(counts.releases, step.firstRelease + step.numReleases - first->firstRelease);
    if (step.movesData)
      include(counts.operands, step.firstOperand + step.numStepOperands - first->firstOperand);
  }
  return counts;
}

/// One thread block of an invocation. All threads of a target's block call its functions together,
/// each on an object of its own. All places of the invocation must be set. Thread safety: as
/// stepBlock().
template <class Target> class ReadyBlock {
public:
  /// `tables` are for the block's readyCounts(); it has isReadyForm().
  OCCL_HOST_DEVICE ReadyBlock(const Invocation &invocation, uint32_t blockIndex,
                              const ReadyTables &tables, Target &target)
      : invocation(invocation), program(*invocation.program), block(program.blocks[blockIndex]),
        blockIndex(blockIndex), tables(tables), target(target) {}

  /// What is the same in all invocations of the program. Once, before run().
  OCCL_HOST_DEVICE void layOut() {
    for (uint32_t i = target.thread(); i < block.numInstructions; i += target.numThreads())
      layOut(i);
  }

  /// A new invocation: places and numbers are others.
  OCCL_HOST_DEVICE void restart() { readyTile = kNoTile; }

  /// Steps until the block is finished or blocked, or `maxSteps` are done (then Progressed).
  OCCL_HOST_DEVICE StepResult run(BlockContext &context, uint32_t maxSteps) {
    StepResult result;
    for (;; ++result.slices) {
      if (context.tile == program.numTiles || block.numInstructions == 0) {
        result.status = StepStatus::Finished;
        return result;
      }
      if (result.slices == maxSteps)
        return result;
      if (context.tile != readyTile)
        makeReady(context.tile);
      if (!step(context, result.obstacle)) {
        result.status = StepStatus::Blocked;
        return result;
      }
    }
  }

private:
  static constexpr uint64_t kNoTile = ~0ull;

  OCCL_HOST_DEVICE const BoundInstruction &first() const {
    return program.instructions[block.firstInstruction];
  }

  OCCL_HOST_DEVICE void layOut(uint32_t i) {
    const BoundInstruction &instruction = (&first())[i];
    FoldPiece piece;
    piece.divisor = instruction.divides ? program.numRanks : 1;
    piece.firstPointer = instruction.firstOperand - first().firstOperand;
    piece.numSources = instruction.numSources;
    piece.numDestinations = instruction.numDestinations;
    tables.pieces[i] = piece;
    ReadyStep step;
    step.firstAcquire = static_cast<uint16_t>(instruction.firstAcquire - first().firstAcquire);
    step.numAcquires = instruction.numAcquires;
    step.firstRelease = static_cast<uint16_t>(instruction.firstRelease - first().firstRelease);
    step.numReleases = instruction.numReleases;
    step.numPieces = instruction.movesData ? instruction.numInstructions : 0;
    step.nextInstruction = static_cast<uint16_t>(i + instruction.numInstructions);
    step.published = instruction.published;
    while (1u << step.pieceBits < step.numPieces)
      ++step.pieceBits;
    tables.steps[i] = step;
  }

  /// Addresses and values on a tile.
  OCCL_HOST_DEVICE void makeReady(uint64_t tile) {
    readyTile = tile;
    controlTile = invocation.firstTile + tile;
    target.barrier(); // those of the tile before are no longer in use; the steps are laid out
    const ReadyCounts &counts = tables.counts;
    for (uint32_t i = target.thread(); i < counts.acquires; i += target.numThreads())
      tables.acquires[i] = awaited(program.acquires[first().firstAcquire + i], tile);
    for (uint32_t i = target.thread(); i < counts.releases; i += target.numThreads())
      tables.releases[i] = released(program.releases[first().firstRelease + i], tile);
    for (uint32_t i = target.thread(); i < counts.operands; i += target.numThreads())
      tables.pointers[i] = pointer(program.operands[first().firstOperand + i], tile);
    target.barrier();
    for (uint32_t i = target.thread(); i < block.numInstructions; i += target.numThreads()) {
      const BoundInstruction &instruction = (&first())[i];
      FoldPiece &piece = tables.pieces[i];
      piece.elements =
          instruction.count == 0 ? 0 : detail::inTile(instruction.elements, tile, instruction.span);
      piece.findMisalignment(tables.pointers);
    }
    target.barrier();
    for (uint32_t i = target.thread(); i < block.numInstructions; i += target.numThreads()) {
      ReadyStep &step = tables.steps[i];
      step.isAlone = target.foldsAlone(program, tables.pieces + i, step.numPieces);
    }
    target.barrier();
  }

  /// What lies in earlier invocations is neither waited for nor stored: see Slice.
  OCCL_HOST_DEVICE ReadyWord awaited(const BoundAcquire &acquire, uint64_t tile) const {
    int64_t value = acquire.value + static_cast<int64_t>(tile) * acquire.perTile +
                    static_cast<int64_t>(acquire.isSliced);
    uint64_t earlier = invocation.firstTile * static_cast<uint64_t>(acquire.perTile);
    return {word(acquire.place, acquire.offset),
            value > 0 ? static_cast<uint64_t>(value) + earlier : 0};
  }
  OCCL_HOST_DEVICE ReadyWord released(const BoundRelease &release, uint64_t tile) const {
    uint64_t value = release.value + tile * release.perTile + 1;
    if (!release.isStored || value > release.limit)
      return {};
    return {word(release.place, release.offset), value + invocation.firstTile * release.perTile};
  }
  OCCL_HOST_DEVICE char *pointer(const BoundOperand &operand, uint64_t tile) const {
    char *begin = place(operand.place) + operand.offset;
    if (operand.kind != plan::OperandKind::Connection)
      return begin + tile * program.tileElements * program.elementBytes;
    uint64_t message = controlTile * operand.messagesPerTile + operand.message;
    return begin + (message & (program.depth - 1)) * operand.slotBytes;
  }
  OCCL_HOST_DEVICE char *place(Place which) const {
    return target.acquire(invocation.places + which);
  }
  OCCL_HOST_DEVICE uint64_t *word(Place which, uint64_t offset) const {
    return reinterpret_cast<uint64_t *>(place(which) + offset);
  }

  /// False: something is missing, and nothing was stored.
  OCCL_HOST_DEVICE bool step(BlockContext &context, Obstacle &obstacle) {
    const ReadyStep now = tables.steps[context.instruction];
    if (now.numAcquires != 0) {
      uint32_t missing = now.numAcquires;
      if (!target.arrived(tables.acquires + now.firstAcquire, now.numAcquires, missing)) {
        if (missing < now.numAcquires)
          obstacle = obstacleOf(now, missing);
        return false;
      }
    }
    if (now.numPieces != 0)
      target.foldReady(program, tables, now, context.instruction);
    target.barrier();
    for (uint32_t i = target.thread(); i < now.numReleases; i += target.numThreads()) {
      const ReadyWord release = tables.releases[now.firstRelease + i];
      if (release.word != nullptr)
        target.release(release.word, release.value);
    }
    if (now.published && target.thread() == 0)
      target.release(word(kProgressPlace, blockIndex * kControlStride),
                     controlTile * block.numInstructions + now.nextInstruction);
    context.instruction = now.nextInstruction;
    if (context.instruction == block.numInstructions) {
      context.instruction = 0;
      ++context.tile;
    }
    return true;
  }

  OCCL_HOST_DEVICE Obstacle obstacleOf(const ReadyStep &step, uint32_t missing) const {
    const BoundAcquire &acquire =
        program.acquires[first().firstAcquire + step.firstAcquire + missing];
    return {acquire.reason, acquire.what, acquire.peer};
  }

  const Invocation &invocation;
  const Program &program;
  const BoundBlock &block;
  const uint32_t blockIndex;
  const ReadyTables tables;
  Target &target;
  uint64_t readyTile = kNoTile;
  uint64_t controlTile = 0; // what control words count
};

} // namespace occl::interpreter
