// A plan apart from its flat arrays, to be changed and put together again.
#pragma once

#include "plan/model/plan.h"

#include <vector>

namespace occl::plan::testing {

/// An instruction with its operands and dependencies.
struct Step {
  Instruction instruction;
  std::vector<Operand> sources, destinations;
  std::vector<Dependency> dependencies;
};
using Blocks = std::vector<std::vector<std::vector<Step>>>; // rank, thread block, instruction

Blocks takeApart(const Plan &plan);

/// A plan of these instructions; all else as in `like`.
Plan putTogether(const Plan &like, const Blocks &blocks);

} // namespace occl::plan::testing
