// Steps of straight blocks on CUDA devices: see straight.h. The memory order is that of
// lines_cuda.cuh.
#pragma once

#include "runtime/exec/cuda/lines_cuda.cuh"
#include "runtime/exec/step/straight.h"

#include <cstdint>

namespace occl::interpreter::cuda {

static_assert(kMaxStraightSources <= kHeldSources);

/// Destinations whose addresses are looked up before the first is stored to.
inline constexpr uint32_t kStoresAtOnce = 4;

/// A unit of a thread, with its sources: there are at most kHeld of them.
template <uint32_t kHeld> struct StraightUnit {
  ReadyUnit unit;
  PieceFold fold;
  const ReadyWord *words;               // the sources, then the destinations; in shared memory
  uint32_t numSources, numDestinations; // 0 if there is nothing to do
  ReadyWord sources[kHeld];
  uint4 held[kHeld];

  __device__ void lookUp() {
#pragma unroll
    for (uint32_t s = 0; s < kHeld; ++s) {
      if (s >= numSources)
        break;
      sources[s] = words[s];
    }
  }
  __device__ void load(bool isLines) {
#pragma unroll
    for (uint32_t s = 0; s < kHeld; ++s) {
      if (s >= numSources)
        break;
      if ((sources[s].value != 0) != isLines)
        continue;
      if (isLines)
        held[s] = unit.loadLine(sources[s].address);
      else
        held[s] = unit.rawOf(unit.loadData(sources[s].address));
    }
  }
  /// When all lanes of the warp have all that they wait for, and before finish().
  template <class Fold> __device__ __forceinline__ void settle() {
    if (mustReload<Fold>(unit, fold))
      load(true);
  }
  /// The last source that has not arrived, or ~0.
  __device__ uint32_t missing() const {
    uint32_t missing = ~0u;
#pragma unroll
    for (uint32_t s = 0; s < kHeld; ++s) {
      if (s >= numSources)
        break;
      if (sources[s].value != 0 && !unit.arrived(held[s], sources[s].value))
        missing = s;
    }
    return missing;
  }
  template <class Fold> __device__ __forceinline__ void finish() const {
    if (numSources == 0)
      return;
    ulonglong2 value = unit.dataOf(held[0]);
    if (!fold.isCopy())
      value = FoldReadyUnit<Fold>::run(unit, fold, words, held);
    store(value);
  }

private:
  __device__ void store(ulonglong2 value) const {
    const ReadyWord *destinations = words + fold.numSources;
#pragma unroll 1
    for (uint32_t first = 0; first < numDestinations; first += kStoresAtOnce) {
      ReadyWord to[kStoresAtOnce];
#pragma unroll
      for (uint32_t d = 0; d < kStoresAtOnce; ++d)
        to[d] = destinations[first + d < numDestinations ? first + d : first];
#pragma unroll
      for (uint32_t d = 0; d < kStoresAtOnce; ++d)
        if (first + d < numDestinations)
          storeOperand(unit, to, d, value);
    }
  }
};

/// A step and what it works on; pieces and words: of the block, in shared memory.
struct StraightTask {
  const StraightStep &step;
  const StraightPiece *pieces;
  const ReadyWord *words;
  DataType type;
  ReduceOp op;
};

/// The unit of that number; with nothing to do if there is none.
template <bool kWide, uint32_t kHeld>
__device__ __forceinline__ StraightUnit<kHeld> unitOf(const StraightTask &task, uint32_t index) {
  constexpr LineFormat kLine = kWide ? LineFormat{128, 120} : LineFormat{kWordLineBytes, 4};
  const StraightStep &step = task.step;
  uint32_t number = index * step.reciprocal >> 22, inPiece = index - number * step.unitsEach;
  const bool hasPiece = number < step.numPieces;
  const StraightPiece piece = task.pieces[step.firstPiece + (hasPiece ? number : 0)];
  const bool isActive = hasPiece && inPiece < piece.units;
  return {ReadyUnit(kLine, inPiece, piece.bytes),
          {piece.numSources, piece.divisor, task.type, task.op},
          task.words + piece.firstOperand,
          isActive ? piece.numSources : 0u,
          isActive ? piece.numDestinations : 0u,
          {},
          {}};
}

/// Takes each lane's units through their step; all lanes of a warp. mayWait(operand) is asked after
/// each look in vain, with what this lane misses, as a position among the block's words, or ~0:
/// false, and the step gives up with nothing stored by this warp.
template <class Fold, uint32_t kUnits, uint32_t kHeld, class MayWait>
__device__ __forceinline__ bool takeThrough(StraightUnit<kHeld> (&mine)[kUnits],
                                            const ReadyWord *words, const MayWait &mayWait) {
#pragma unroll
  for (uint32_t u = 0; u < kUnits; ++u) {
    mine[u].lookUp();
    mine[u].load(false);
  }
  // Look at the lines, again and again, until the whole warp has them.
  for (;;) {
#pragma unroll
    for (uint32_t u = 0; u < kUnits; ++u)
      mine[u].load(true);
    uint32_t missing = ~0u;
#pragma unroll
    for (uint32_t u = 0; u < kUnits; ++u)
      if (uint32_t source = mine[u].missing(); source != ~0u)
        missing = static_cast<uint32_t>(mine[u].words - words) + source;
    if (__all_sync(~0u, missing == ~0u))
      break;
    if (!mayWait(missing))
      return false;
  }
#pragma unroll
  for (uint32_t u = 0; u < kUnits; ++u)
    mine[u].template settle<Fold>();
#pragma unroll
  for (uint32_t u = 0; u < kUnits; ++u)
    mine[u].template finish<Fold>();
  return true;
}

/// Takes this thread's units of a step through it, from unit `first` on, so many at a time; the
/// same ones of all lanes of a warp. mayWait(operand, first): first, the first unit of the round
/// that the warp is in. False: gave up, with nothing of that round stored.
template <class Fold, bool kWide, uint32_t kUnits, uint32_t kHeld, class MayWait>
__device__ __forceinline__ bool takeUnits(const StraightTask &task, uint32_t thread,
                                          uint32_t numThreads, uint32_t first,
                                          const MayWait &mayWait) {
  const uint32_t numUnits = task.step.numUnits();
#pragma unroll 1
  for (; first < numUnits; first += kUnits * numThreads) {
    // A round: some units of each thread, numThreads apart.
    StraightUnit<kHeld> mine[kUnits];
#pragma unroll
    for (uint32_t u = 0; u < kUnits; ++u)
      mine[u] = unitOf<kWide, kHeld>(task, first + u * numThreads + thread);
    if (!takeThrough<Fold>(mine, task.words,
                           [&](uint32_t missing) { return mayWait(missing, first); }))
      return false;
  }
  return true;
}

/// All of a step, with as many units in flight as registers hold: of many sources one.
template <class Fold, bool kWide, class MayWait>
__device__ __forceinline__ bool takeStep(const StraightTask &task, uint32_t thread,
                                         uint32_t numThreads, const MayWait &mayWait) {
  constexpr uint32_t kFewSources = 2;
  if (task.step.maxSources > kFewSources || task.step.numUnits() <= numThreads)
    return takeUnits<Fold, kWide, 1, kHeldSources>(task, thread, numThreads, 0, mayWait);
  return takeUnits<Fold, kWide, kHeldSources / kFewSources, kFewSources>(task, thread, numThreads,
                                                                         0, mayWait);
}

} // namespace occl::interpreter::cuda
