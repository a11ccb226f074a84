// Steps in protocols LL and LL128 on CUDA devices: looked at, folded and stored by all threads of a
// block at once, for several pieces. Every thread has 16 bytes of a row of lines, of all sources of
// one piece; nothing is stored before all lines of all pieces have arrived.
//
// Memory order. Neither protocol needs an acquire, or a release, which would wait until all stores
// have arrived.
//
// LL: see line_words.cuh.
//
// LL128: eight neighbouring lanes store a line by one instruction, 16 bytes each, the flag last,
// and load it so. Nothing that NVIDIA documents orders the words of a line. What NCCL relies on,
// and so do we, is that a store of 128 bytes reaches another device in ascending order of
// addresses, which its authors have verified for NVLink (github.com/NVIDIA/nccl, issue 786). It
// says nothing of loads: those of the look that found the flag may have met data of before. So when
// all lanes of a warp have seen their flags they load the data again, as NCCL does
// (src/device/prims_ll128.h); and where not all ranks are joined by NVLink, LL128 is not used
// (runtime/cuda/device/peer_paths.h).
#pragma once

#include "runtime/exec/cuda/fold_cuda.cuh"
#include "runtime/exec/cuda/line_words.cuh"
#include "runtime/exec/step/ready.h"

#include <cstdint>

namespace occl::interpreter::cuda {

/// How often a step looks before it is blocked.
inline constexpr uint32_t kReadyLooks = 16;

/// A step as the first warp hands it to the others; all in shared memory.
struct ReadyLines {
  ReadyStep step;
  const Program *program;
  const FoldPiece *pieces;
  const ReadyWord *words;
  uint32_t missing; // after a failure: the position of a source that has not arrived
};

/// The part of a piece that a thread has: 8 bytes of data with a flag for each half (LL), or 16, of
/// which the last 8 of a line are the flag (LL128).
struct ReadyUnit {
  uint32_t unit;
  uint32_t bytes = 0; // of data
  uint64_t begin;     // of the data, in the piece
  bool wide, hasFlag;

  ReadyUnit() = default;
  __device__ ReadyUnit(const LineFormat &line, uint32_t unit, uint64_t pieceBytes)
      : unit(unit), wide(line.bytes != kWordLineBytes) {
    constexpr uint32_t kUnitsPerLine = 8;
    uint32_t inLine = unit % kUnitsPerLine;
    hasFlag = !wide || inLine + 1 == kUnitsPerLine;
    begin =
        wide ? uint64_t(unit / kUnitsPerLine) * line.dataBytes + inLine * 16 : uint64_t(unit) * 8;
    uint32_t most = wide && !hasFlag ? 16 : 8;
    if (begin < pieceBytes)
      bytes = static_cast<uint32_t>(detail::smaller(pieceBytes - begin, most));
  }

  __device__ bool arrived(const uint4 &raw, uint64_t flag) const {
    if (wide)
      return !hasFlag || (raw.z | static_cast<uint64_t>(raw.w) << 32) == flag;
    return raw.y == static_cast<uint32_t>(flag) && raw.w == static_cast<uint32_t>(flag);
  }
  __device__ uint4 loadLine(const char *lines) const { return loadOfLine(lines + unit * 16); }
  /// Data as a line would hold it.
  __device__ uint4 rawOf(ulonglong2 value) const {
    auto half = [](uint64_t word, uint32_t shift) { return static_cast<uint32_t>(word >> shift); };
    if (!wide)
      return {half(value.x, 0), 0, half(value.x, 32), 0};
    return {half(value.x, 0), half(value.x, 32), half(value.y, 0), half(value.y, 32)};
  }
  __device__ ulonglong2 dataOf(const uint4 &raw) const {
    if (!wide)
      return {raw.x | static_cast<uint64_t>(raw.z) << 32, 0};
    return {raw.x | static_cast<uint64_t>(raw.y) << 32, raw.z | static_cast<uint64_t>(raw.w) << 32};
  }
  __device__ void storeLine(char *lines, uint64_t flag, ulonglong2 value) const {
    auto low = static_cast<uint32_t>(flag);
    uint4 raw = {static_cast<uint32_t>(value.x), low, static_cast<uint32_t>(value.x >> 32), low};
    if (wide) {
      uint64_t second = hasFlag ? flag : value.y;
      raw = {static_cast<uint32_t>(value.x), static_cast<uint32_t>(value.x >> 32),
             static_cast<uint32_t>(second), static_cast<uint32_t>(second >> 32)};
    }
    storeOfLine(lines + unit * 16, raw);
  }

  /// Of a buffer, of any alignment.
  __device__ ulonglong2 loadData(const char *buffer) const {
    const char *from = buffer + begin;
    ulonglong2 value = {0, 0};
    // Whole words if both address and size allow it, else bytes.
    if (reinterpret_cast<uintptr_t>(from) % 8 == 0 && bytes % 8 == 0) {
      if (bytes != 0)
        value.x = *reinterpret_cast<const uint64_t *>(from);
      if (bytes > 8)
        value.y = *reinterpret_cast<const uint64_t *>(from + 8);
      return value;
    }
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; ++i) {
      uint64_t byte = static_cast<uint64_t>(static_cast<uint8_t>(from[i])) << i % 8 * 8;
      value.x |= i < 8 ? byte : 0;
      value.y |= i < 8 ? 0 : byte;
    }
    return value;
  }
  __device__ void storeData(char *buffer, ulonglong2 value) const {
    char *to = buffer + begin;
    if (reinterpret_cast<uintptr_t>(to) % 8 == 0 && bytes % 8 == 0) {
      if (bytes != 0)
        *reinterpret_cast<uint64_t *>(to) = value.x;
      if (bytes > 8)
        *reinterpret_cast<uint64_t *>(to + 8) = value.y;
      return;
    }
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; ++i)
      to[i] = static_cast<char>((i < 8 ? value.x : value.y) >> i % 8 * 8);
  }

  /// Of a step's operands, whose words are in shared memory.
  __device__ ulonglong2 loadData(const ReadyWord *words, uint32_t operand) const {
    return loadData(words[operand].address);
  }
  __device__ void storeData(const ReadyWord *words, uint32_t operand, ulonglong2 value) const {
    storeData(words[operand].address, value);
  }
};

/// The same of a slice whose chunks do not lie side by side: the pieces of all chunks share a row
/// of lines, so that a unit may have data of several.
struct ScatteredUnit : ReadyUnit {
  const FoldPiece *pieces = nullptr; // in shared memory
  uint32_t elementBytes = 1;

  ScatteredUnit() = default;
  __device__ ScatteredUnit(const LineFormat &line, uint32_t unit, uint64_t sliceBytes,
                           const FoldPiece *pieces, uint32_t elementBytes)
      : ReadyUnit(line, unit, sliceBytes), pieces(pieces), elementBytes(elementBytes) {}

  /// words: those of the first piece. Calls visit(byte of the unit, where it is) for all bytes.
  template <class Visit>
  __device__ void forBytes(const ReadyWord *words, uint32_t operand, const Visit &visit) const {
    const FoldPiece *const first = inShared(pieces), *piece = first;
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; ++i) {
      const uint64_t element = (begin + i) / elementBytes;
      while (piece->elements == 0 || element >= piece->inSlice + piece->elements)
        ++piece;
      char *chunk = words[piece->firstPointer - first->firstPointer + operand].address;
      visit(i, chunk + (begin + i - piece->inSlice * elementBytes));
    }
  }
  __device__ ulonglong2 loadData(const ReadyWord *words, uint32_t operand) const {
    ulonglong2 value = {0, 0};
    forBytes(words, operand, [&](uint32_t i, const char *from) {
      uint64_t byte = static_cast<uint64_t>(static_cast<uint8_t>(*from)) << i % 8 * 8;
      value.x |= i < 8 ? byte : 0;
      value.y |= i < 8 ? 0 : byte;
    });
    return value;
  }
  __device__ void storeData(const ReadyWord *words, uint32_t operand, ulonglong2 value) const {
    forBytes(words, operand, [&](uint32_t i, char *to) {
      *to = static_cast<char>((i < 8 ? value.x : value.y) >> i % 8 * 8);
    });
  }
};

/// A source of either kind of unit, or a destination.
template <class Unit>
__device__ __forceinline__ ulonglong2 loadOperand(const Unit &unit, const ReadyWord *words,
                                                  uint32_t operand) {
  return words[operand].value != 0 ? unit.dataOf(unit.loadLine(words[operand].address))
                                   : unit.loadData(words, operand);
}
template <class Unit>
__device__ __forceinline__ void storeOperand(const Unit &unit, const ReadyWord *words,
                                             uint32_t operand, ulonglong2 value) {
  if (words[operand].value != 0)
    unit.storeLine(words[operand].address, words[operand].value, value);
  else
    unit.storeData(words, operand, value);
}

/// Sources that a thread holds in registers. Those beyond are loaded when they are used: lines stay
/// as they are until the step is over.
inline constexpr uint32_t kHeldSources = 8;

/// What is done with the sources of a piece.
struct PieceFold {
  uint32_t numSources;
  uint32_t divisor;
  DataType type;
  ReduceOp op;

  __device__ bool isCopy() const { return numSources == 1 && divisor <= 1; }
};

/// Both words of a unit, folded over all sources; the first ones are held.
template <class Element, class Operation, class Unit, uint32_t kHeld>
__device__ __forceinline__ ulonglong2 foldHeld(const Unit &unit, const PieceFold &piece,
                                               const ReadyWord *words, const uint4 (&held)[kHeld]) {
  using Word = Lanes<Element, uint64_t>;
  ulonglong2 first = unit.dataOf(held[0]);
  Word low(first.x), high(first.y);
  // The sources in registers, then the others, each loaded when it is used.
#pragma unroll
  for (uint32_t s = 1; s < kHeld; ++s)
    if (s < piece.numSources) {
      ulonglong2 next = unit.dataOf(held[s]);
      low.template apply<Operation>(Word(next.x));
      high.template apply<Operation>(Word(next.y));
    }
#pragma unroll 1
  for (uint32_t s = kHeld; s < piece.numSources; ++s) {
    ulonglong2 next = loadOperand(unit, inShared(words), s);
    low.template apply<Operation>(Word(next.x));
    high.template apply<Operation>(Word(next.y));
  }
  return {low.pack(piece.divisor), high.pack(piece.divisor)};
}

/// As Fold, which is FixedFold or AnyFold: one thread's unit.
template <class Fold> struct FoldReadyUnit;
template <class Element, class Operation> struct FoldReadyUnit<FixedFold<Element, Operation>> {
  static constexpr bool kUsesHeld = true;
  template <class Unit, uint32_t kHeld>
  __device__ __forceinline__ static ulonglong2 run(const Unit &unit, const PieceFold &piece,
                                                   const ReadyWord *words,
                                                   const uint4 (&held)[kHeld]) {
    return foldHeld<Element, Operation>(unit, piece, words, held);
  }
};
/// A call for each type and operation, which loads all sources again.
template <> struct FoldReadyUnit<AnyFold> {
  static constexpr bool kUsesHeld = false;
  template <class Element, class Operation, class Unit>
  __device__ __noinline__ static ulonglong2 call(Unit unit, PieceFold piece,
                                                 const ReadyWord *words) {
    using Word = Lanes<Element, uint64_t>;
    ulonglong2 next = loadOperand(unit, inShared(words), 0);
    Word low(next.x), high(next.y);
#pragma unroll 1
    for (uint32_t s = 1; s < piece.numSources; ++s) {
      next = loadOperand(unit, inShared(words), s);
      low.template apply<Operation>(Word(next.x));
      high.template apply<Operation>(Word(next.y));
    }
    return {low.pack(piece.divisor), high.pack(piece.divisor)};
  }
  template <class Unit> struct Visitor {
    const Unit &unit;
    const PieceFold &piece;
    const ReadyWord *words;
    template <class Element, class Operation> __device__ ulonglong2 operator()() const {
      return call<Element, Operation>(unit, piece, words);
    }
  };
  template <class Unit, uint32_t kHeld>
  __device__ __forceinline__ static ulonglong2 run(const Unit &unit, const PieceFold &piece,
                                                   const ReadyWord *words, const uint4 (&)[kHeld]) {
    return dispatchFold(piece.type, piece.op, Visitor<Unit>{unit, piece, words});
  }
};

/// Whether what a look found in lines is used as it is, or must be loaded again first: LL128 only,
/// and not what is loaded again anyway.
template <class Fold>
__device__ __forceinline__ bool mustReload(const ReadyUnit &unit, const PieceFold &fold) {
  return unit.wide && (FoldReadyUnit<Fold>::kUsesHeld || fold.isCopy());
}

/// All lanes of some warps, a unit for each thread that is active. False: something is missing, and
/// nothing was stored.
template <class Fold, class Unit, class Vote>
__device__ __forceinline__ bool foldUnit(ReadyLines &task, const Unit &unit, const FoldPiece &piece,
                                         bool active, const Vote &vote) {
  const Program &program = *inShared(task.program);
  const ReadyWord *words = inShared(task.words) + piece.firstPointer;
  // Data of buffers is there, so it is loaded once.
  const uint32_t numSources = active ? piece.numSources : 0;
  uint4 held[kHeldSources];
#pragma unroll
  for (uint32_t s = 0; s < kHeldSources; ++s) {
    if (s >= numSources)
      break;
    if (words[s].value == 0)
      held[s] = unit.rawOf(unit.loadData(words, s));
  }
  const PieceFold fold = {piece.numSources, piece.divisor, program.type, program.op};
  // Lines are loaded again with each look.
  auto loadLines = [&] {
#pragma unroll
    for (uint32_t s = 0; s < kHeldSources; ++s) {
      if (s >= numSources)
        break;
      if (words[s].value != 0)
        held[s] = unit.loadLine(words[s].address);
    }
  };
  // Look some times, until all lanes of the warp have all their lines.
  uint32_t missing = ~0u;
#pragma unroll 1
  for (uint32_t look = 0; look < kReadyLooks; ++look) {
    missing = ~0u;
    loadLines();
#pragma unroll
    for (uint32_t s = 0; s < kHeldSources; ++s) {
      if (s >= numSources)
        break;
      if (words[s].value != 0 && !unit.arrived(held[s], words[s].value))
        missing = s;
    }
#pragma unroll 1
    for (uint32_t s = kHeldSources; s < numSources; ++s)
      if (words[s].value != 0 && !unit.arrived(unit.loadLine(words[s].address), words[s].value))
        missing = s;
    if (__all_sync(~0u, missing == ~0u)) {
      // Data of LL128 may be older than the flag that came with it.
      if (mustReload<Fold>(unit, fold))
        loadLines();
      break;
    }
  }
  // One missing source is enough for a report.
  if (missing != ~0u)
    atomicExch(&task.missing, piece.firstPointer + missing);
  // Nothing is stored unless all warps have everything.
  if (!vote(missing == ~0u))
    return false;
  if (!active)
    return true;
  // Fold the sources, and store the result to each destination.
  ulonglong2 value = unit.dataOf(held[0]);
  if (!fold.isCopy())
    value = FoldReadyUnit<Fold>::run(unit, fold, words, held);
#pragma unroll 1
  for (uint32_t d = 0; d < piece.numDestinations; ++d)
    storeOperand(unit, words, piece.numSources + d, value);
  return true;
}

/// The same of a step: its pieces' units, one after another.
template <class Fold, class Vote>
__device__ __forceinline__ bool foldReadyLines(ReadyLines &task, uint32_t thread,
                                               const Vote &vote) {
  const ReadyStep step = task.step;
  const Program &program = *inShared(task.program);
  uint32_t number = thread * step.reciprocal >> 22, inPiece = thread - number * step.unitsEach;
  const FoldPiece piece = inShared(task.pieces)[number < step.numPieces ? number : 0];
  const bool active = number < step.numPieces && inPiece < piece.units;
  const ReadyUnit unit(program.line, inPiece, piece.elements * program.elementBytes);
  return foldUnit<Fold>(task, unit, piece, active, vote);
}

/// The same of a step with ReadyStep::isScattered. Apart: few programs have one.
template <class Fold, class Vote>
__device__ __noinline__ bool foldScatteredLines(ReadyLines &task, uint32_t thread, Vote vote) {
  const Program &program = *inShared(task.program);
  const FoldPiece *pieces = inShared(task.pieces);
  uint64_t elements = 0;
  for (uint32_t i = 0; i < task.step.numPieces; ++i)
    elements += pieces[i].elements;
  const auto elementBytes = static_cast<uint32_t>(program.elementBytes);
  const ScatteredUnit unit(program.line, thread, elements * elementBytes, pieces, elementBytes);
  const bool active = thread < unitsInLines(program.line, elements * elementBytes);
  return foldUnit<Fold>(task, unit, pieces[0], active, vote);
}

} // namespace occl::interpreter::cuda
