// One execution of a scheduled program, step by step.
#pragma once

#include "compiler/analysis/Program.h"

#include <optional>

namespace occl::passes {

/// A step by its rank and its position there.
struct StepRef {
  uint32_t rank = 0;
  uint32_t step = 0;
};

/// All steps in an order in which they can run at the program's depth, each rank's in its own
/// order; a step runs only when somebody waits for it, so that what one rank does for another comes
/// as late as it may. Expects connections, not transfers. Nothing if the order of the ranks' steps
/// does not complete.
std::optional<std::vector<StepRef>> linearOrder(const analysis::Program &program);

} // namespace occl::passes
