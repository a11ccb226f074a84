// Straight blocks: thread blocks that do nothing but fold lines of protocols LL and LL128. There is
// no control word to look at or to store, one tile, and each instruction has chunks side by side.
// Then nobody needs to interpret: on a device every thread has units of 16 bytes of each step and
// takes them through by itself, and a barrier lies between two steps.
//
// A step that has begun waits in its place. So straight blocks are for who does not preempt: see
// ReadyBlock for who does.
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
  uint32_t flag = 0;    // lines, of the first invocation; 0: a buffer
  uint32_t perTile = 0; // of the message's number, from an invocation to the next
  uint32_t message = 0;
  uint16_t mask = 0;   // of message numbers: which slots
  uint16_t slices = 1; // of a message: so much do the flags of two messages differ by
  uint32_t stride = 0; // bytes from a message's slots to the next one's

  /// Whose arena block the lines lie in.
  OCCL_HOST_DEVICE uint32_t rank() const { return place - arenaPlace(0); }
  OCCL_HOST_DEVICE bool isLines() const { return flag != 0; }
  /// Bytes from the place, after so many earlier invocations with the same arena block.
  OCCL_HOST_DEVICE uint64_t offsetAfter(uint64_t earlier) const {
    return offset + ((message + earlier * perTile) & mask) * stride;
  }
  OCCL_HOST_DEVICE uint64_t flagAfter(uint64_t earlier) const {
    return isLines() ? flag + earlier * perTile * slices : 0;
  }
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

} // namespace occl::interpreter
