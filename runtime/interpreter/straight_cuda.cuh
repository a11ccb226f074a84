// Steps of straight blocks on CUDA devices: see straight.h. The memory order is that of
// lines_cuda.cuh.
#pragma once

#include "runtime/interpreter/ready_lines_cuda.cuh"
#include "runtime/interpreter/straight.h"

#include <cstdint>

namespace occl::interpreter::cuda {

static_assert(kMaxStraightSources <= kHeldSources);

/// Destinations whose addresses are looked up before the first is stored to.
inline constexpr uint32_t kStoresAtOnce = 4;

/// The unit of one thread.
struct StraightUnit {
  ReadyUnit unit;
  PieceFold fold;
  const ReadyWord *words;               // the sources, then the destinations; in shared memory
  uint32_t numSources, numDestinations; // 0 if the thread has nothing to do

  __device__ void load(const ReadyWord (&sources)[kHeldSources], bool isLines,
                       uint4 (&held)[kHeldSources]) const {
#pragma unroll
    for (uint32_t s = 0; s < kHeldSources; ++s) {
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
  /// The last source that has not arrived, or ~0.
  __device__ uint32_t missing(const ReadyWord (&sources)[kHeldSources],
                              const uint4 (&held)[kHeldSources]) const {
    uint32_t missing = ~0u;
#pragma unroll
    for (uint32_t s = 0; s < kHeldSources; ++s) {
      if (s >= numSources)
        break;
      if (sources[s].value != 0 && !unit.arrived(held[s], sources[s].value))
        missing = s;
    }
    return missing;
  }
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
          unit.store(to[d], value);
    }
  }
};

/// This thread's unit of a step. pieces and words: of the block, in shared memory.
template <bool kWide>
__device__ __forceinline__ StraightUnit unitOf(const StraightStep &step,
                                               const StraightPiece *pieces, const ReadyWord *words,
                                               DataType type, ReduceOp op, uint32_t thread) {
  constexpr LineFormat kLine = kWide ? LineFormat{128, 120} : LineFormat{kWordLineBytes, 4};
  uint32_t number = thread * step.reciprocal >> 22, inPiece = thread - number * step.threadsEach;
  const bool hasPiece = number < step.numPieces;
  const StraightPiece piece = pieces[step.firstPiece + (hasPiece ? number : 0)];
  const bool isActive = hasPiece && inPiece < piece.units;
  return {ReadyUnit(kLine, inPiece, piece.bytes),
          {piece.numSources, piece.divisor, type, op},
          words + piece.firstOperand,
          isActive ? piece.numSources : 0u,
          isActive ? piece.numDestinations : 0u};
}

/// Takes each lane's unit through its step; all lanes of a warp. mayWait(operand) is asked after
/// each look in vain, with what this lane misses, as a position among the block's words, or ~0:
/// false, and the step gives up with nothing stored by this warp.
template <class Fold, class MayWait>
__device__ __forceinline__ bool takeThrough(const StraightUnit &mine, const ReadyWord *words,
                                            const MayWait &mayWait) {
  ReadyWord sources[kHeldSources];
  uint4 held[kHeldSources];
#pragma unroll
  for (uint32_t s = 0; s < kHeldSources; ++s) {
    if (s >= mine.numSources)
      break;
    sources[s] = mine.words[s];
  }
  mine.load(sources, false, held);
  for (;;) {
    mine.load(sources, true, held);
    uint32_t missing = mine.missing(sources, held);
    if (__all_sync(~0u, missing == ~0u))
      break;
    if (!mayWait(missing == ~0u ? ~0u : static_cast<uint32_t>(mine.words - words) + missing))
      return false;
  }
  if (mine.numSources == 0)
    return true;
  ulonglong2 value = mine.unit.dataOf(held[0]);
  if (!mine.fold.isCopy())
    value = FoldReadyUnit<Fold>::run(mine.unit, mine.fold, mine.words, held);
  mine.store(value);
  return true;
}

} // namespace occl::interpreter::cuda
