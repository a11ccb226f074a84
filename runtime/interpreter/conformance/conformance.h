// Does an execution of a plan give what its collective is defined to give?
#pragma once

#include "plan/plan.h"
#include "runtime/interpreter/conformance/simulation.h"

#include <cstdint>
#include <functional>
#include <string>

namespace occl::interpreter::conformance {

/// Executes a simulation to its end.
using Runner = std::function<Status(Simulation &)>;

/// Runs the plan on exact inputs (of the seed) and compares every rank's output, byte for byte,
/// with the reference; out of place the inputs must be as before; nothing else may be touched. The
/// error names the first difference.
Status checkCollective(const plan::Plan &plan, const SimulationOptions &options, uint64_t seed,
                       const Runner &run);

/// Runs the plan on arbitrary finite numbers of the type and returns all ranks' outputs, one after
/// another.
StatusOr<std::string> runOnArbitraryNumbers(const plan::Plan &plan,
                                            const SimulationOptions &options, uint64_t seed,
                                            const Runner &run);

} // namespace occl::interpreter::conformance
