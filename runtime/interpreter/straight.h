// Straight blocks: thread blocks that do nothing but fold lines of protocols LL and LL128. There is
// no control word to look at or to store, one tile, and each instruction is one slice of chunks
// side by side. Then nobody needs to interpret: on a device every thread has a unit of 16 bytes of
// each step and takes it through by itself, and a barrier lies between two steps.
//
// A step that has begun waits in its place. So straight blocks are for who does not preempt: see
// ReadyBlock for who does.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/interpreter/invocation.h"

#include <cstdint>

namespace occl::interpreter {

/// Consecutive instructions, with so many threads for each of their pieces.
struct alignas(16) StraightStep {
  uint16_t firstPiece = 0;
  uint16_t numPieces = 0;
  uint16_t threadsEach = 8; // a multiple of 8
  uint16_t instruction = 0; // its first, in the thread block
  uint32_t reciprocal = 0;  // 2^22 / threadsEach, rounded up
};

/// What one instruction folds: `bytes` bytes of every source into every destination.
struct alignas(16) StraightPiece {
  uint16_t firstOperand = 0; // the sources, then the destinations
  uint8_t numSources = 0;
  uint8_t numDestinations = 0;
  uint16_t units = 0; // threads with something to do
  uint16_t bytes = 0;
  uint32_t divisor = 1;
};

/// A row of lines, or where a buffer's bytes lie.
struct alignas(16) StraightOperand {
  uint64_t offset = 0; // from the place
  uint32_t place = 0;
  uint32_t flag = 0;    // lines, of the first invocation; 0: a buffer
  uint32_t perTile = 0; // of the flag and the message's number, from an invocation to the next
  uint32_t message = 0;
  uint32_t mask = 0;   // of message numbers: which slot
  uint32_t stride = 0; // bytes from a slot to the next

  /// Whose arena block the lines lie in.
  OCCL_HOST_DEVICE uint32_t rank() const { return place - arenaPlace(0); }
  OCCL_HOST_DEVICE bool isLines() const { return flag != 0; }
  /// Bytes from the place, after so many earlier invocations with the same arena block.
  OCCL_HOST_DEVICE uint64_t offsetAfter(uint64_t earlier) const {
    return offset + ((message + earlier * perTile) & mask) * stride;
  }
  OCCL_HOST_DEVICE uint64_t flagAfter(uint64_t earlier) const {
    return isLines() ? flag + earlier * perTile : 0;
  }
};

inline constexpr uint32_t kMaxStraightSources = 8; // of a piece
inline constexpr uint32_t kMaxStraightSteps = 32;
inline constexpr uint32_t kMaxStraightPieces = 32;
inline constexpr uint32_t kMaxStraightOperands = 64;

} // namespace occl::interpreter
