// The tables of steps made ready, from a bound program. Host code.
#pragma once

#include "runtime/exec/step/ready.h"

#include <memory_resource>
#include <vector>

namespace occl::interpreter {

struct ReadyBlockTables {
  explicit ReadyBlockTables(std::pmr::memory_resource *memory = std::pmr::get_default_resource())
      : sources(memory), obstacles(memory), steps(memory), pieces(memory) {}

  std::pmr::vector<ReadySource> sources;
  std::pmr::vector<Obstacle> obstacles;
  std::pmr::vector<ReadyStep> steps;
  std::pmr::vector<FoldPiece> pieces;
  uint32_t numInstructions = 0;
  uint32_t firstOperand = 0;
  /// Some step has several slices or scattered chunks: only with Resolution::PerStep.
  bool isPerStep = false;

  /// Refers to these tables.
  ReadyTables view();
};

/// Of a program without references. If several instructions are a step, each is one slice. The
/// tables are of `memory`, which outlives them.
ReadyBlockTables
makeReadyTables(const Program &program, uint32_t block,
                std::pmr::memory_resource *memory = std::pmr::get_default_resource());

/// Measures steps and pieces beforehand, as ReadyBlock would for places that are multiples of
/// `alignment` bytes. False, and all is as before, if not all of that can be known: more than one
/// tile; lines; a step of at most `aloneBytes`, which a target may want to fold alone.
bool measureBeforehand(const Program &program, uint32_t alignment, uint64_t aloneBytes,
                       ReadyBlockTables &tables);

} // namespace occl::interpreter
