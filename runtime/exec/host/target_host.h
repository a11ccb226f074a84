// The interpreter's target for host threads: a thread block is one thread.
#pragma once

#include "plan/model/limits.h"
#include "runtime/exec/host/lines_host.h"
#include "runtime/exec/reduce/fold_host.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/exec/step/ready.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace occl::interpreter {

/// One for each executor; used by one thread at a time. Cheap to make.
class HostTarget {
public:
  /// Written out so that no form of initialisation clears the addresses.
  HostTarget() {}

  static uint32_t thread() { return 0; }
  static uint32_t numThreads() { return 1; }
  static bool vote(bool ready) { return ready; }
  static void barrier() {}

  static uint64_t acquire(const uint64_t *word) {
    return loadShared(word, std::memory_order_acquire);
  }
  static char *acquire(char *const *pointer) {
    return loadShared(pointer, std::memory_order_acquire);
  }
  static void release(uint64_t *word, uint64_t value) {
    storeShared(word, value, std::memory_order_release);
  }

  /// Room for the addresses of an instruction's operands.
  char **pointers() { return addresses; }

  /// Folds pointers()[0, numSources) into all of pointers()[numSources, + numDestinations).
  void fold(const Program &program, unsigned numSources, unsigned numDestinations,
            uint64_t elements, uint64_t divisor) {
    foldPointers(program, addresses, numSources, numDestinations, elements, divisor);
  }

  /// For steps made ready: tests run them here too.
  template <class T> static const T &tableEntry(const T &entry) { return entry; }
  static void setWord(ReadyWord &word, const ReadyWord &value) { word = value; }
  static bool foldsAlone(const Program &program, const ReadyStep &, const FoldPiece *) {
    return program.line.bytes != 0;
  }
  /// missing: its position, after a failure.
  static bool arrived(const ReadyWord *words, uint32_t first, uint32_t number, uint32_t &missing) {
    for (uint32_t i = first; i < first + number; ++i)
      if (acquire(words[i].word()) < words[i].value) {
        missing = i;
        return false;
      }
    return true;
  }
  bool foldReady(const Program &program, const ReadyStep &step, const FoldPiece *pieces,
                 const ReadyWord *words, uint32_t &missing) {
    if (program.line.bytes != 0)
      return foldReadyLines(program, {pieces, step.numPieces}, words, missing);
    for (const FoldPiece &piece : std::span(pieces, step.numPieces)) {
      for (uint32_t i = 0; i < uint32_t(piece.numSources) + piece.numDestinations; ++i)
        addresses[i] = words[piece.firstPointer + i].address;
      foldPointers(program, addresses, piece.numSources, piece.numDestinations, piece.elements,
                   piece.divisor);
    }
    return true;
  }

  /// In lines that all pieces share: unpacked once, then chunk by chunk, then packed.
  bool foldScattered(const Program &program, const ReadyStep &step, const FoldPiece *pieces,
                     const ReadyWord *words, uint32_t &missing) {
    const FoldPiece &first = pieces[0];
    const uint32_t end = uint32_t(first.numSources) + first.numDestinations;
    uint64_t bytes = 0;
    for (const FoldPiece &piece : std::span(pieces, step.numPieces))
      bytes += bytesOf(program, piece);
    const ReadyWord *shared = words + first.firstPointer;
    for (uint32_t i = 0; i < first.numSources; ++i)
      if (shared[i].value != 0 &&
          !linesArrived(program.line, shared[i].address, bytes, shared[i].value)) {
        missing = first.firstPointer + i;
        return false;
      }
    for (uint32_t i = 0; i < first.numSources; ++i)
      if (shared[i].value != 0)
        unpackLines(program.line, shared[i].address, stageOf(program, i), bytes);
    for (const FoldPiece &piece : std::span(pieces, step.numPieces)) {
      for (uint32_t i = 0; i < end; ++i)
        addresses[i] = shared[i].value != 0
                           ? stageOf(program, i) + piece.inSlice * program.elementBytes
                           : words[piece.firstPointer + i].address;
      foldPointers(program, addresses, piece.numSources, piece.numDestinations, piece.elements,
                   piece.divisor);
    }
    for (uint32_t i = first.numSources; i < end; ++i)
      if (shared[i].value != 0)
        packLines(program.line, stageOf(program, i), shared[i].address, bytes, shared[i].value);
    return true;
  }

  /// Nobody else folds, so that a fold is over when it has begun.
  static constexpr bool kFoldsBeside = true;
  void beginFold(const Program &program, const ReadyStep &step, const FoldPiece *pieces,
                 const ReadyWord *words) {
    uint32_t missing;
    foldReady(program, step, pieces, words, missing);
  }
  static void endFold() {}
  static bool arrivesMeanwhile(const ReadyWord *words, uint32_t first, uint32_t number) {
    uint32_t missing;
    return arrived(words, first, number, missing);
  }

  /// LinePolicy's stageBytes, or what the smallest slices of the most operands take.
  static constexpr size_t kStageRoom =
      std::max(kStageAlignment * plan::limits::kMaxOperands, size_t{LinePolicy().stageBytes});
  char *stage() { return stagingAreas; }
  static bool linesArrived(const LineFormat &format, const char *lines, uint64_t bytes,
                           uint64_t flag) {
    return lines::arrived(format, lines, bytes, flag);
  }
  static void unpackLines(const LineFormat &format, const char *from, char *to, uint64_t bytes) {
    lines::unpack(format, from, to, bytes);
  }
  static void packLines(const LineFormat &format, const char *from, char *to, uint64_t bytes,
                        uint64_t flag) {
    lines::pack(format, from, to, bytes, flag);
  }

private:
  /// Sources and destinations with a value are lines.
  bool foldReadyLines(const Program &program, std::span<const FoldPiece> steps,
                      const ReadyWord *words, uint32_t &missing) {
    for (const FoldPiece &piece : steps)
      for (uint32_t i = piece.firstPointer; i < piece.firstPointer + piece.numSources; ++i)
        if (words[i].value != 0 && !linesArrived(program.line, words[i].address,
                                                 bytesOf(program, piece), words[i].value)) {
          missing = i;
          return false;
        }
    for (const FoldPiece &piece : steps) {
      const ReadyWord *operands = words + piece.firstPointer;
      const uint64_t bytes = bytesOf(program, piece);
      const uint32_t end = uint32_t(piece.numSources) + piece.numDestinations;
      for (uint32_t i = 0; i < end; ++i) {
        const bool isLines = operands[i].value != 0;
        addresses[i] = isLines ? stageOf(program, i) : operands[i].address;
        if (isLines && i < piece.numSources)
          unpackLines(program.line, operands[i].address, addresses[i], bytes);
      }
      foldPointers(program, addresses, piece.numSources, piece.numDestinations, piece.elements,
                   piece.divisor);
      for (uint32_t i = piece.numSources; i < end; ++i)
        if (operands[i].value != 0)
          packLines(program.line, addresses[i], operands[i].address, bytes, operands[i].value);
    }
    return true;
  }
  char *stageOf(const Program &program, uint32_t operand) {
    return stage() + operand * program.stageStride;
  }
  static uint64_t bytesOf(const Program &program, const FoldPiece &piece) {
    return piece.elements * program.elementBytes;
  }

  void foldPointers(const Program &program, char *const *pointers, unsigned numSources,
                    unsigned numDestinations, uint64_t elements, uint64_t divisor) const {
    if (elements == 0)
      return;
    if (numSources == 1 && divisor <= 1)
      return copyToAll(pointers, numDestinations, elements * program.elementBytes);
    foldTable().functions[static_cast<unsigned>(program.type)][static_cast<unsigned>(program.op)](
        pointers, numSources, numDestinations, elements, divisor);
  }

  char *addresses[plan::limits::kMaxOperands];
  alignas(64) char stagingAreas[kStageRoom];
};

} // namespace occl::interpreter
