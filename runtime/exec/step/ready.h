// Steps made ready: how devices execute thread blocks, as looking things up costs them more than
// doing them. What a thread block does on a tile is written out once, as addresses and values; then
// a step is a short straight piece of code: look at these words, fold from here to there, store
// those words. Each slice is a step of its own.
//
// Per step. A table has one step for all slices of an instruction, and a piece for each chunk,
// where these do not lie side by side. Which part of which chunk a slice has is found out when the
// step is come to: such steps are made ready one by one.
//
// Steps may overlap. While a step's data moves, the threads that call make the next tile ready and
// look whether the next step has what it needs. If so, it begins at once, and the releases of the
// one before are stored while it moves its own data. If not, they are stored before anybody waits
// for anything. So a chain of messages that have come moves data all the time. Where a step does
// not repeat itself this costs more than it gains: who looks notices late that the data has moved.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/message.h"
#include "runtime/exec/step/step.h"

#include <cstdint>

namespace occl::interpreter {

/// How an address and a value of a thread block follow from tile and invocation: a control word and
/// what is waited for or stored there, or an operand and, of lines, its flag.
struct alignas(16) ReadySource {
  uint64_t offset = 0; // from the place
  uint64_t stride = 0; // from a slice's slot, or a buffer's tile, to the next
  /// On tile 0, and if it counts slices, of the first one, unless that is the message's last.
  /// Control words: if it is not positive, there is nothing to wait for.
  int64_t value = 0;
  uint64_t limit = ~0ull;
  uint32_t perTile = 0; // of the value, and of the message's number
  uint32_t message = 0; // on tile 0
  uint32_t mask = 0;    // of numbers: which slot, or which tile
  /// Four times the place, plus 1 for a buffer, which has no value, plus 2 if the value counts the
  /// slices of a step that is made ready by itself.
  uint16_t placeAndKind = 0;
  uint16_t slices = 1; // of a message: so much do the flags of two messages differ by
};

/// What a source comes to. A release that is not stored has no address.
struct alignas(16) ReadyWord {
  char *address = nullptr;
  uint64_t value = 0;

  OCCL_HOST_DEVICE uint64_t *word() const { return reinterpret_cast<uint64_t *>(address); }
};

/// One of several independent folds of a step.
struct alignas(16) FoldPiece {
  uint64_t elements = 0;
  uint32_t divisor = 1;
  uint32_t firstPointer = 0; // of the words: sources, then destinations
  uint16_t numSources = 0;
  uint16_t numDestinations = 0;
  /// The bits in which any address differs from a multiple of 16.
  uint32_t misalignment = 0;
  uint32_t units = 0;       // lines: of 16 bytes
  uint64_t allElements = 0; // of all tiles and slices
  uint64_t inSlice = 0;     // of a step that is made ready by itself: elements before it
};

/// A step, kept with its first instruction. Words and pieces are named by their position.
struct alignas(16) ReadyStep {
  uint16_t firstAcquire = 0, numAcquires = 0;
  uint16_t firstRelease = 0, numReleases = 0;
  uint16_t firstPiece = 0;
  uint16_t numPieces = 0; // 0: it moves no data
  uint16_t nextInstruction = 0;
  /// Lines: units of the largest piece, a multiple of 8; and 2^22 / that, rounded up.
  uint16_t unitsEach = 8;
  uint32_t reciprocal = 0;
  /// Logarithm of numPieces, rounded up.
  uint8_t pieceBits = 0;
  /// The target's foldsAlone().
  bool isAlone = false;
  /// Its pieces are chunks that do not lie side by side: in lines they share units.
  bool isScattered = false;
  /// The slice that it is made ready for is the message's last.
  bool isLast = true;
  /// Of a slice; 0: it is made ready with its tile.
  uint64_t sliceElements = 0;
};

/// The tables of a thread block, in memory that all its threads share. Sources and words: all
/// acquires, then all releases, then all operands.
struct ReadyTables {
  const ReadySource *sources = nullptr;
  const Obstacle *obstacles = nullptr; // by source that may be waited for: what it is to do so
  ReadyStep *steps = nullptr;
  FoldPiece *pieces = nullptr;
  uint32_t numInstructions = 0; // and steps
  uint32_t numPieces = 0;
  uint32_t numSources = 0;
  uint32_t firstOperand = 0; // among the sources
};

/// Units of 16 bytes of so many bytes in lines. An empty slice has a line too.
OCCL_HOST_DEVICE inline uint32_t unitsInLines(const LineFormat &line, uint64_t bytes) {
  bytes = bytes == 0 ? 1 : bytes;
  if (line.bytes == kWordLineBytes)
    return static_cast<uint32_t>((bytes + 7) / 8);
  return static_cast<uint32_t>((bytes + line.dataBytes - 1) / line.dataBytes) * (line.bytes / 16);
}

/// Where the addresses and values of a tile are kept, and the tables that go with them.
struct ReadyRoom {
  ReadyWord *words = nullptr; // as many as sources
  ReadyStep *steps = nullptr;
  FoldPiece *pieces = nullptr;
};

/// Bytes of a second room, in which the next tile is made ready while the one before goes on.
OCCL_HOST_DEVICE inline uint32_t secondRoomBytes(const ReadyTables &tables) {
  return tables.numSources * uint32_t(sizeof(ReadyWord)) +
         tables.numInstructions * uint32_t(sizeof(ReadyStep)) +
         tables.numPieces * uint32_t(sizeof(FoldPiece));
}

/// When steps are made ready. Known when compiled: what is more than the first takes registers.
enum class Resolution : uint8_t {
  PerTile,
  Overlapped, // with the tile, and steps overlap
  PerStep,    // those of several slices, or with scattered chunks, one by one; others with the tile
};

/// One thread block of an invocation. All threads of a target's block call its functions together,
/// each on an object of its own. All places of the invocation must be set. Thread safety: as step.h
/// has it.
template <class Target, Resolution kWhen = Resolution::PerTile> class ReadyBlock {
  static constexpr bool kOverlaps = kWhen == Resolution::Overlapped;
  static constexpr bool kPerStep = kWhen == Resolution::PerStep;

public:
  /// words: room for as many as sources; if steps overlap, and for secondRoomBytes() behind them.
  /// isMeasured: the same tables have served a run before, with buffers that were aligned as these.
  OCCL_HOST_DEVICE ReadyBlock(const Invocation &invocation, const Program &program,
                              const ReadyTables &tables, ReadyWord *words, Target &target,
                              bool isMeasured = false)
      : invocation(invocation), program(program), tables(tables), words(words), target(target),
        hasPieces(isMeasured) {
    if constexpr (kOverlaps)
      copyTables();
  }

  /// A new invocation: places and numbers are others. Buffers are aligned as before.
  OCCL_HOST_DEVICE void restart() { readyTile = kNoTile; }
  /// Before the first run: the tables say what measuring them would.
  OCCL_HOST_DEVICE void takeAsMeasured() { hasPieces = true; }

  /// Steps until the block is finished or blocked, or `maxSteps` are done (then Progressed). All
  /// releases of steps that are done have been stored.
  OCCL_HOST_DEVICE StepResult run(BlockContext &context, uint32_t maxSteps) {
    StepResult result;
    for (;; ++result.slices) {
      if (isOver(context)) {
        result.status = StepStatus::Finished;
        break;
      }
      if (result.slices == maxSteps)
        break;
      // Addresses and values are made once a tile.
      if (context.tile != readyTile) {
        if constexpr (kOverlaps)
          publish();
        makeReady(context.tile);
      }
      if (!step(context, result.obstacle)) {
        result.status = StepStatus::Blocked;
        break;
      }
    }
    if constexpr (kOverlaps) {
      publish();
      hasArrived = false;
    }
    return result;
  }

private:
  static constexpr uint64_t kNoTile = ~0ull;

  OCCL_HOST_DEVICE bool isOver(const BlockContext &context) const {
    return context.tile == program.numTiles || tables.numInstructions == 0;
  }

  /// In turn, by tile.
  OCCL_HOST_DEVICE ReadyRoom room(uint64_t tile) const {
    if (!kOverlaps || tile % 2 == 0)
      return {words, tables.steps, tables.pieces};
    ReadyWord *second = words + tables.numSources;
    auto *steps = reinterpret_cast<ReadyStep *>(second + tables.numSources);
    return {second, steps, reinterpret_cast<FoldPiece *>(steps + tables.numInstructions)};
  }
  OCCL_HOST_DEVICE void copyTables() {
    const ReadyRoom second = room(1);
    for (uint32_t i = target.thread(); i < tables.numInstructions; i += target.numThreads())
      second.steps[i] = tables.steps[i];
    for (uint32_t i = target.thread(); i < tables.numPieces; i += target.numThreads())
      second.pieces[i] = tables.pieces[i];
    target.barrier();
  }

  /// Addresses and values on a tile.
  OCCL_HOST_DEVICE void makeReady(uint64_t tile) {
    readyTile = tile;
    if constexpr (kPerStep)
      readyStep.tile = kNoTile;
    const ReadyRoom made = room(tile);
    target.barrier(); // those of the tile before in this room are no longer in use
    for (uint32_t i = target.thread(); i < tables.numSources; i += target.numThreads())
      target.setWord(made.words[i], ready(target.tableEntry(tables.sources[i]), i, tile, 0));
    target.barrier();
    if (hasPieces && program.numTiles == 1)
      return;
    hasPieces = true;
    for (uint32_t i = target.thread(); i < tables.numPieces; i += target.numThreads())
      measure(made.pieces[i], made.words, tile);
    target.barrier();
    for (uint32_t i = target.thread(); i < tables.numInstructions; i += target.numThreads())
      if (!kPerStep || made.steps[i].sliceElements == 0)
        measure(made.steps[i], made.pieces);
    target.barrier();
  }

  /// What is there before the invocation begins is neither waited for nor stored. `more`: by how
  /// much a value that counts slices is larger than that of the first one.
  OCCL_HOST_DEVICE ReadyWord ready(const ReadySource &source, uint32_t i, uint64_t tile,
                                   uint64_t more) const {
    char *base = target.acquire(invocation.places + source.placeAndKind / 4) + source.offset;
    if (source.placeAndKind % 2 != 0)
      return {base + (tile & source.mask) * source.stride, 0};
    // The value counts messages; the slot follows from the message.
    uint64_t number = tile * source.perTile;
    int64_t value = source.value + static_cast<int64_t>(number * source.slices);
    if (kPerStep && source.placeAndKind % 4 != 0)
      value += static_cast<int64_t>(more);
    uint64_t slot = ((source.message + number) & source.mask) * source.slices;
    ReadyWord ready = {base + slot * source.stride, 0};
    if (static_cast<uint64_t>(value) > source.limit)
      ready.address = nullptr;
    if (value > 0)
      ready.value = static_cast<uint64_t>(value) +
                    (i >= tables.firstOperand ? invocation.flagBase : invocation.wordBase);
    return ready;
  }

  OCCL_HOST_DEVICE uint64_t elementsOf(const FoldPiece &piece, uint64_t tile) const {
    return program.numTiles == 1 ? piece.allElements
                                 : detail::inTile(piece.allElements, tile, program.tileElements);
  }
  OCCL_HOST_DEVICE void measure(FoldPiece &piece, const ReadyWord *words, uint64_t tile) const {
    piece.elements = elementsOf(piece, tile);
    measure(piece, words);
  }
  OCCL_HOST_DEVICE void measure(FoldPiece &piece, const ReadyWord *words) const {
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
    for (uint32_t i = step.firstPiece; i < uint32_t(step.firstPiece) + step.numPieces; ++i)
      units = pieces[i].units > units ? pieces[i].units : units;
    setUnits(step, units);
    step.isAlone = target.foldsAlone(program, step, pieces + step.firstPiece);
  }
  OCCL_HOST_DEVICE static void setUnits(ReadyStep &step, uint32_t units) {
    step.unitsEach = static_cast<uint16_t>((units + 7) / 8 * 8);
    step.reciprocal = (1u << 22) / step.unitsEach + 1;
  }

  /// A step that is made ready by itself: the part of each chunk that lies in the slice, its
  /// operands, and the control words.
  OCCL_HOST_DEVICE void makeReady(const ReadyRoom &made, const BlockContext &context) {
    readyStep = context;
    ReadyStep &step = made.steps[context.instruction];
    const ReadyStep now = target.tableEntry(step);
    const FoldPiece *pieces = made.pieces + now.firstPiece;
    uint64_t length = 0;
    for (uint32_t p = 0; p < now.numPieces; ++p)
      length += elementsOf(pieces[p], context.tile);
    const uint64_t begin = context.slice * now.sliceElements;
    const uint64_t end = detail::smaller(begin + now.sliceElements, length);
    const bool isLast = end == length;
    // The last slice counts for all that the message does not have.
    const uint64_t more = isLast ? program.slicesPerMessage - 1 : context.slice;
    target.barrier();    // what was made ready before is no longer in use
    uint64_t packed = 0; // where in the message the chunk begins
    for (uint32_t p = 0; p < now.numPieces; ++p) {
      const uint64_t elements = elementsOf(pieces[p], context.tile);
      cut(made, now.firstPiece + p, packed, elements, begin, end, context, more);
      packed += elements;
    }
    makeControlWords(made, now, context.tile, more, isLast);
    target.barrier();
    for (uint32_t p = target.thread(); p < now.numPieces; p += target.numThreads())
      measure(made.pieces[now.firstPiece + p], made.words);
    target.barrier();
    if (target.thread() == 0) {
      step.isLast = isLast;
      measure(step, made.pieces);
      if (now.isScattered && program.line.bytes != 0)
        setUnits(step, unitsInLines(program.line, (end - begin) * program.elementBytes));
    }
    target.barrier();
  }
  /// What elements [begin, end) of the message have of a chunk of so many elements, which begins at
  /// `packed`.
  OCCL_HOST_DEVICE void cut(const ReadyRoom &made, uint32_t index, uint64_t packed,
                            uint64_t elements, uint64_t begin, uint64_t end,
                            const BlockContext &context, uint64_t more) {
    FoldPiece &piece = made.pieces[index];
    const uint64_t from = packed < begin ? begin : packed;
    const uint64_t to = detail::smaller(packed + elements, end);
    const uint64_t inChunk = from - packed, inSlice = from - begin;
    const uint32_t first = piece.firstPointer,
                   last = first + piece.numSources + piece.numDestinations;
    for (uint32_t i = first + target.thread(); i < last; i += target.numThreads()) {
      const ReadySource source = target.tableEntry(tables.sources[i]);
      ReadyWord word = ready(source, i, context.tile, more);
      if (source.placeAndKind % 2 != 0)
        word.address += inChunk * program.elementBytes;
      else // all chunks of a slice in lines share those
        word.address += context.slice * source.stride +
                        (program.line.bytes == 0 ? inSlice * program.elementBytes : 0);
      target.setWord(made.words[i], word);
    }
    if (target.thread() == 0) {
      piece.elements = from < to ? to - from : 0;
      piece.inSlice = inSlice;
    }
  }
  OCCL_HOST_DEVICE void makeControlWords(const ReadyRoom &made, const ReadyStep &step,
                                         uint64_t tile, uint64_t more, bool isLast) {
    const uint32_t thread = target.thread(), numThreads = target.numThreads();
    for (uint32_t a = thread; a < step.numAcquires; a += numThreads) {
      const uint32_t i = step.firstAcquire + a;
      target.setWord(made.words[i], ready(target.tableEntry(tables.sources[i]), i, tile, more));
    }
    for (uint32_t r = thread; r < step.numReleases; r += numThreads) {
      const uint32_t i = step.firstRelease + r;
      const ReadySource source = target.tableEntry(tables.sources[i]);
      ReadyWord word = ready(source, i, tile, more);
      // Progress is that of all slices.
      if (!isLast && source.placeAndKind % 4 == 0)
        word.address = nullptr;
      target.setWord(made.words[i], word);
    }
  }

  /// False: something is missing, and nothing was stored.
  OCCL_HOST_DEVICE bool step(BlockContext &context, Obstacle &obstacle) {
    const ReadyRoom here = room(context.tile);
    if constexpr (kPerStep)
      if (target.tableEntry(here.steps[context.instruction]).sliceElements != 0 &&
          !(readyStep == context))
        makeReady(here, context);
    const ReadyStep now = target.tableEntry(here.steps[context.instruction]);
    uint32_t missing = ~0u;
    // Poll; where steps overlap that may be done already, beside the step before.
    const bool hasAll = (kOverlaps && hasArrived) || now.numAcquires == 0 ||
                        target.arrived(here.words, now.firstAcquire, now.numAcquires, missing);
    hasArrived = false;
    if (!hasAll || (now.numPieces != 0 && !move(context, here, now, missing))) {
      if (missing != ~0u)
        obstacle = tables.obstacles[missing];
      return false;
    }
    target.barrier();
    // Publish: at once, or beside the next step, if that can begin without waiting.
    if constexpr (kOverlaps) {
      publish();
      unpublished = here.words + now.firstRelease;
      numUnpublished = now.numReleases;
      if (!hasArrived)
        publish();
    } else {
      release(here.words + now.firstRelease, now.numReleases);
    }
    advance(context, now);
    return true;
  }

  OCCL_HOST_DEVICE void advance(BlockContext &context, const ReadyStep &done) const {
    if (kPerStep && !done.isLast) {
      ++context.slice;
      return;
    }
    context.slice = 0;
    context.instruction = done.nextInstruction;
    if (context.instruction == tables.numInstructions) {
      context.instruction = 0;
      ++context.tile;
    }
  }

  /// A step's data. False, with nothing stored: of lines, some have not come.
  OCCL_HOST_DEVICE bool move(const BlockContext &context, const ReadyRoom &here,
                             const ReadyStep &now, uint32_t &missing) {
    const FoldPiece *pieces = here.pieces + now.firstPiece;
    if constexpr (kOverlaps) {
      if (!now.isAlone) {
        // While the other threads move the data, these publish the step before and look ahead.
        target.beginFold(program, now, pieces, here.words);
        publish();
        BlockContext next = context;
        advance(next, now);
        hasArrived = lookAhead(next);
        target.endFold();
        return true;
      }
      publish();
    }
    if constexpr (kPerStep)
      if (now.isScattered && program.line.bytes != 0)
        return target.foldScattered(program, now, pieces, here.words, missing);
    return target.foldReady(program, now, pieces, here.words, missing);
  }

  /// While others fold: whether the step at `next` moves data and has what it needs, before they
  /// have finished.
  OCCL_HOST_DEVICE bool lookAhead(const BlockContext &next) {
    if (isOver(next))
      return false;
    if (next.tile != readyTile)
      makeReady(next.tile);
    const ReadyRoom there = room(next.tile);
    const ReadyStep then = target.tableEntry(there.steps[next.instruction]);
    return then.numPieces != 0 &&
           target.arrivesMeanwhile(there.words, then.firstAcquire, then.numAcquires);
  }

  /// Stores the releases of the step before.
  OCCL_HOST_DEVICE void publish() {
    release(unpublished, numUnpublished);
    numUnpublished = 0;
  }
  OCCL_HOST_DEVICE void release(const ReadyWord *releases, uint32_t number) const {
    for (uint32_t i = target.thread(); i < number; i += target.numThreads()) {
      const ReadyWord release = target.tableEntry(releases[i]);
      if (release.address != nullptr)
        target.release(release.word(), release.value);
    }
  }

  const Invocation &invocation;
  const Program &program;
  const ReadyTables tables;
  ReadyWord *const words;
  Target &target;
  uint64_t readyTile = kNoTile;
  bool hasPieces; // lengths and alignments are in the tables
  /// What the last step that was made ready by itself was made ready for.
  BlockContext readyStep = {kNoTile, 0, 0};
  /// The next step has what it needs.
  bool hasArrived = false;
  /// Releases of the step before.
  const ReadyWord *unpublished = nullptr;
  uint32_t numUnpublished = 0;
};

} // namespace occl::interpreter
