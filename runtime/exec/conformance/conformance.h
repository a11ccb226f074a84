// Does an execution of a plan give what its collective is defined to give?
#pragma once

#include "plan/model/plan.h"
#include "runtime/exec/conformance/reference.h"
#include "runtime/exec/conformance/simulation.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::interpreter::conformance {

/// A plan on exact inputs (of the seed), to be executed by the caller.
class CheckedCollective {
public:
  /// As Simulation::make().
  static StatusOr<std::unique_ptr<CheckedCollective>>
  make(const plan::Plan &plan, const SimulationOptions &options, uint64_t seed);

  Simulation &simulation() { return *simulated; }
  /// Once it was executed: what checkCollective() does.
  Status check();

private:
  std::unique_ptr<Simulation> simulated;
  std::vector<Numbers> inputs;
  SimulationOptions options;
  std::string collective;
  uint32_t root = 0;
};

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
