// Steps made ready: for a target where looking things up costs more than doing them. What a thread
// block does on a tile is written out once, as addresses and values; then a step is a short
// straight piece of code: look at these words, fold from here to there, store those words.
//
// It is the same transaction as step.h's, for thread blocks whose instructions have chunks side by
// side: see isReadyForm(). Each slice is a step of its own.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/interpreter/slice.h"
#include "runtime/interpreter/step.h"

#include <cstdint>

namespace occl::interpreter {

/// How an address and a value of a thread block follow from tile and invocation: a control word and
/// what is waited for or stored there, or an operand and, of lines, its flag.
struct alignas(16) ReadySource {
  uint64_t offset = 0; // from the place
  uint64_t stride = 0; // from a message's slot, or a buffer's tile, to the next
  int64_t value = 0;   // on tile 0; control words: if not positive, there is nothing to wait for
  uint64_t limit = ~0ull;
  uint32_t perTile = 0; // of the value, and of the message's number
  uint32_t message = 0; // on tile 0
  uint32_t mask = 0;    // of numbers: which slot, or which tile
  /// Twice the place, plus 1 for a buffer, which has no value.
  uint16_t placeAndKind = 0;
  uint16_t slices = 1; // of a message: so much do the flags of two messages differ by
};

/// What a source comes to. A release that is not stored has no address.
struct alignas(16) ReadyWord {
  char *address = nullptr;
  uint64_t value = 0;

  OCCL_HOST_DEVICE uint64_t *word() const { return reinterpret_cast<uint64_t *>(address); }
};

/// A step, kept with its first instruction, if it is the first slice of that; else behind those of
/// all instructions. Words are named by their position.
struct alignas(16) ReadyStep {
  uint16_t firstAcquire = 0, numAcquires = 0;
  uint16_t firstRelease = 0, numReleases = 0;
  uint16_t numPieces = 0; // from the step's own on; 0: it moves no data
  uint16_t nextInstruction = 0;
  uint16_t nextSlice = 0;  // of that
  uint16_t moreSlices = 0; // of a first slice: where the step of the second one is
  /// Logarithm of numPieces, rounded up.
  uint8_t pieceBits = 0;
  /// The target's foldsAlone().
  bool isAlone = false;
  /// Lines: units of the largest piece, a multiple of 8; and 2^22 / that, rounded up.
  uint16_t unitsEach = 8;
  uint32_t reciprocal = 0;
};

/// The tables of a thread block, in memory that all its threads share. Sources and words: all
/// acquires, then all releases, then all operands.
struct ReadyTables {
  const ReadySource *sources = nullptr;
  const Obstacle *obstacles = nullptr; // by source: what it is to wait for it
  ReadyStep *steps = nullptr;
  FoldPiece *pieces = nullptr; // by step
  uint32_t numInstructions = 0;
  uint32_t numSteps = 0;
  uint32_t numSources = 0;
  uint32_t firstOperand = 0; // among the sources
};

/// The largest slice of a step in lines.
inline constexpr uint32_t kMaxReadyUnits = 480;

/// Units of 16 bytes of so many bytes in lines. An empty slice has a line too.
OCCL_HOST_DEVICE inline uint32_t unitsInLines(const LineFormat &line, uint64_t bytes) {
  bytes = bytes == 0 ? 1 : bytes;
  if (line.bytes == kWordLineBytes)
    return static_cast<uint32_t>((bytes + 7) / 8);
  return static_cast<uint32_t>((bytes + line.dataBytes - 1) / line.dataBytes) * (line.bytes / 16);
}

/// One thread block of an invocation. All threads of a target's block call its functions together,
/// each on an object of its own. All places of the invocation must be set. Thread safety: as
/// stepBlock().
template <class Target> class ReadyBlock {
public:
  /// words: room for as many as sources. isMeasured: the same tables have served a run before, with
  /// buffers that were aligned as these.
  OCCL_HOST_DEVICE ReadyBlock(const Invocation &invocation, const Program &program,
                              const ReadyTables &tables, ReadyWord *words, Target &target,
                              bool isMeasured = false)
      : invocation(invocation), program(program), tables(tables), words(words), target(target),
        hasPieces(isMeasured) {}

  /// A new invocation: places and numbers are others. Buffers are aligned as before.
  OCCL_HOST_DEVICE void restart() { readyTile = kNoTile; }

  /// Steps until the block is finished or blocked, or `maxSteps` are done (then Progressed).
  OCCL_HOST_DEVICE StepResult run(BlockContext &context, uint32_t maxSteps) {
    StepResult result;
    for (;; ++result.slices) {
      if (context.tile == program.numTiles || tables.numInstructions == 0) {
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

  /// Addresses and values on a tile.
  OCCL_HOST_DEVICE void makeReady(uint64_t tile) {
    readyTile = tile;
    target.barrier(); // those of the tile before are no longer in use
    for (uint32_t i = target.thread(); i < tables.numSources; i += target.numThreads())
      target.setWord(words[i], ready(target.tableEntry(tables.sources[i]), i, tile));
    target.barrier();
    if (hasPieces && program.numTiles == 1)
      return;
    hasPieces = true;
    for (uint32_t i = target.thread(); i < tables.numSteps; i += target.numThreads())
      measure(tables.pieces[i], tile);
    target.barrier();
    for (uint32_t i = target.thread(); i < tables.numSteps; i += target.numThreads())
      measure(tables.steps[i], tables.pieces + i);
    target.barrier();
  }

  /// What lies in earlier invocations is neither waited for nor stored: see Slice.
  OCCL_HOST_DEVICE ReadyWord ready(const ReadySource &source, uint32_t i, uint64_t tile) const {
    char *base = target.acquire(invocation.places + source.placeAndKind / 2) + source.offset;
    if (source.placeAndKind % 2 != 0)
      return {base + (tile & source.mask) * source.stride, 0};
    uint64_t earlier = invocation.firstTile * source.perTile;
    uint64_t number = tile * source.perTile;
    int64_t value = source.value + static_cast<int64_t>(number * source.slices);
    uint64_t slot = (source.message + number + earlier) & source.mask;
    ReadyWord ready = {base + slot * source.stride, 0};
    if (static_cast<uint64_t>(value) > source.limit)
      ready.address = nullptr;
    if (value > 0)
      ready.value = static_cast<uint64_t>(value) + earlier * source.slices;
    if (i >= tables.firstOperand && value > 0)
      ready.value += invocation.flagBase;
    return ready;
  }

  OCCL_HOST_DEVICE void measure(FoldPiece &piece, uint64_t tile) const {
    piece.elements = program.numTiles == 1
                         ? piece.allElements
                         : detail::inTile(piece.allElements, tile, program.tileElements);
    uint32_t bits = 0;
    for (uint32_t o = 0; o < uint32_t(piece.numSources) + piece.numDestinations; ++o)
      bits |=
          static_cast<uint32_t>(reinterpret_cast<uintptr_t>(words[piece.firstPointer + o].address));
    piece.misalignment = bits & 15;
    if (program.line.bytes != 0)
      piece.units = unitsInLines(program.line, piece.elements * program.elementBytes);
  }
  OCCL_HOST_DEVICE void measure(ReadyStep &step, const FoldPiece *pieces) const {
    uint32_t units = 8;
    for (uint32_t i = 0; i < step.numPieces; ++i)
      units = pieces[i].units > units ? pieces[i].units : units;
    step.unitsEach = static_cast<uint16_t>((units + 7) / 8 * 8);
    step.reciprocal = (1u << 22) / step.unitsEach + 1;
    step.isAlone = target.foldsAlone(program, step, pieces);
  }

  /// False: something is missing, and nothing was stored.
  OCCL_HOST_DEVICE bool step(BlockContext &context, Obstacle &obstacle) {
    uint32_t index = context.instruction;
    if (context.slice != 0)
      index = target.tableEntry(tables.steps[index]).moreSlices + context.slice - 1;
    const ReadyStep now = target.tableEntry(tables.steps[index]);
    uint32_t missing = ~0u;
    if ((now.numAcquires != 0 &&
         !target.arrived(words, now.firstAcquire, now.numAcquires, missing)) ||
        (now.numPieces != 0 &&
         !target.foldReady(program, now, tables.pieces + index, words, missing))) {
      if (missing != ~0u)
        obstacle = tables.obstacles[missing];
      return false;
    }
    target.barrier();
    for (uint32_t i = target.thread(); i < now.numReleases; i += target.numThreads()) {
      const ReadyWord release = target.tableEntry(words[now.firstRelease + i]);
      if (release.address != nullptr)
        target.release(release.word(), release.value);
    }
    context.instruction = now.nextInstruction;
    context.slice = now.nextSlice;
    if (context.instruction == tables.numInstructions) {
      context.instruction = 0;
      ++context.tile;
    }
    return true;
  }

  const Invocation &invocation;
  const Program &program;
  const ReadyTables tables;
  ReadyWord *const words;
  Target &target;
  uint64_t readyTile = kNoTile;
  bool hasPieces; // lengths and alignments are in the tables
};

} // namespace occl::interpreter
