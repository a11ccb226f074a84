// The tables of straight blocks, from a bound program. Host code.
#pragma once

#include "runtime/exec/step/step.h"
#include "runtime/exec/step/straight.h"

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

namespace occl::interpreter {

struct StraightTables {
  explicit StraightTables(std::pmr::memory_resource *memory)
      : steps(memory), pieces(memory), operands(memory), obstacles(memory) {}

  std::pmr::vector<StraightStep> steps;
  std::pmr::vector<StraightPiece> pieces;
  std::pmr::vector<StraightOperand> operands;
  std::pmr::vector<Obstacle> obstacles; // by operand: what it is to wait for it
  uint32_t numThreads = 0;              // that take units of the largest step
};

/// Nothing if the block is not straight, or larger than kMaxStraight*. Instructions that were bound
/// as one step (BindRequest::lineStepBytes) are one. The tables are of `memory`, which outlives
/// them.
std::optional<StraightTables>
makeStraightTables(const Program &program, uint32_t block,
                   std::pmr::memory_resource *memory = std::pmr::get_default_resource());

} // namespace occl::interpreter
