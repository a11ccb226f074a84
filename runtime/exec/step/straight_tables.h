// The tables of straight blocks, from a bound program. Host code.
#pragma once

#include "runtime/exec/step/step.h"
#include "runtime/exec/step/straight.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::interpreter {

struct StraightTables {
  std::vector<StraightStep> steps;
  std::vector<StraightPiece> pieces;
  std::vector<StraightOperand> operands;
  std::vector<Obstacle> obstacles; // by operand: what it is to wait for it
  uint32_t numThreads = 0;         // that take units of the largest step
};

/// Nothing if the block is not straight, or larger than kMaxStraight*. Instructions that were bound
/// as one step (BindRequest::lineStepBytes) are one.
std::optional<StraightTables> makeStraightTables(const Program &program, uint32_t block);

} // namespace occl::interpreter
