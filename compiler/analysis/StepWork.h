// How long steps take where nothing is known of the machine: in units of one chunk read or written.
#pragma once

#include "compiler/dialect/Instruction.h"

namespace occl::analysis {

/// Chunks that an instruction reads and writes.
inline uint64_t workOf(const inst::Instruction &instruction) {
  return uint64_t(instruction.count) *
         (instruction.sources.size() + instruction.destinations.size());
}

/// What an instruction costs besides, and how long a message is on its way: what the cost model says
/// of GPUs at a switch, for chunks of one tile (compiler/cost, a test compares).
inline constexpr uint32_t kStepOverhead = 3;
inline constexpr uint32_t kMessageLatency = 7;

/// Into how many tiles a runtime cuts chunks that are worth much work on their schedule.
inline constexpr uint32_t kTypicalTiles = 8;

inline uint64_t durationOf(const inst::Instruction &instruction) {
  return kStepOverhead + workOf(instruction);
}

} // namespace occl::analysis
