// Straight blocks: thread blocks that do nothing but fold lines of protocols LL and LL128. There is
// no control word to look at or to store, one tile, and each instruction has chunks side by side.
// Then nobody needs to interpret: on a device every thread has units of 16 bytes of each step and
// takes them through by itself, and a barrier lies between two steps.
//
// A step that has begun waits in its place, warp by warp. A thread block that has waited for long
// stops at the next barrier: then all its warps stand in one step, each so many rounds into it, and
// any other thread block with as many threads can go on from there (StraightRounds).
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/invocation.h"

#include <cstdint>

namespace occl::interpreter {

/// Consecutive instructions, with so many units for each of their pieces.
struct alignas(16) StraightStep {
  uint16_t firstPiece = 0;
  uint16_t numPieces = 0;
  uint16_t unitsEach = 8;   // a multiple of 8
  uint16_t instruction = 0; // its first, in the thread block
  uint32_t reciprocal = 0;  // 2^22 / unitsEach, rounded up
  uint8_t maxSources = 0;   // of a piece

  OCCL_HOST_DEVICE uint32_t numUnits() const { return uint32_t(numPieces) * unitsEach; }
};

/// What one instruction folds in one slice: `bytes` bytes of every source into every destination.
struct alignas(16) StraightPiece {
  uint16_t firstOperand = 0; // the sources, then the destinations
  uint8_t numSources = 0;
  uint8_t numDestinations = 0;
  uint16_t units = 0; // with something to do
  uint16_t bytes = 0;
  uint32_t divisor = 1;
};

/// A row of lines, or where a buffer's bytes lie.
struct alignas(16) StraightOperand {
  uint64_t offset = 0; // from the place
  uint32_t place = 0;
  uint32_t flag = 0; // lines: more than the invocation's flagBase; 0: a buffer

  /// Whose arena block the lines lie in.
  OCCL_HOST_DEVICE uint32_t rank() const { return place - arenaPlace(0); }
  OCCL_HOST_DEVICE bool isLines() const { return flag != 0; }
};

inline constexpr uint32_t kMaxStraightSources = 8; // of a piece
inline constexpr uint32_t kMaxStraightSteps = 32;
inline constexpr uint32_t kMaxStraightPieces = 64;
inline constexpr uint32_t kMaxStraightOperands = 128;
/// Threads that take units, and units of a step: each thread takes one after the other.
inline constexpr uint32_t kMaxStraightThreads = 480;
inline constexpr uint32_t kMaxStraightUnits = 8 * kMaxStraightThreads;
/// Of data, in the least dense lines: for BindRequest::lineStepBytes.
inline constexpr uint32_t kMaxStraightStepBytes = 8 * kMaxStraightUnits;

/// How far the warps of a thread block have come in a step. In a round each thread has one unit,
/// unit i of the step being that of thread i % numThreads in round i / numThreads. A warp does a
/// round whole or not at all, so what it has not done others can do, and no unit twice: in place
/// the second time would fold results.
class StraightRounds {
public:
  static constexpr uint32_t kWarpThreads = 32;
  static constexpr uint32_t kMaxWarps = kMaxStraightThreads / kWarpThreads;
  static constexpr uint32_t kAll = 15; // no step has as many

  StraightRounds() = default;
  OCCL_HOST_DEVICE explicit StraightRounds(uint64_t word) : bits(word) {}
  OCCL_HOST_DEVICE uint64_t word() const { return bits; }
  /// Of warp `warp`, kAll if it is through.
  OCCL_HOST_DEVICE uint32_t of(uint32_t warp) const { return bits >> 4 * warp & kAll; }
  OCCL_HOST_DEVICE void set(uint32_t warp, uint32_t rounds) {
    bits = (bits & ~(uint64_t(kAll) << 4 * warp)) | uint64_t(rounds) << 4 * warp;
  }

private:
  uint64_t bits = 0; // four for each warp
};
static_assert(4 * StraightRounds::kMaxWarps <= 64);
static_assert(kMaxStraightUnits / kMaxStraightThreads < StraightRounds::kAll);

/// Where a straight block stands that has stopped: in step `instruction`, so many rounds into it.
OCCL_HOST_DEVICE inline BlockContext straightContext(uint32_t step, StraightRounds rounds) {
  return {rounds.word(), step, 0};
}

} // namespace occl::interpreter
