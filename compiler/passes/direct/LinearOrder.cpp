#include "compiler/passes/direct/LinearOrder.h"

#include "compiler/analysis/RanksInOrder.h"
#include "plan/machine/drivers.h"

namespace occl::passes {

using namespace analysis;

std::optional<std::vector<StepRef>> linearOrder(const Program &program) {
  const Network network(program);
  const RanksInOrder ranks(program, network);
  std::vector<StepRef> order;
  order.reserve(numSteps(program));
  const bool completes =
      plan::machine::runOnDemand(ranks, program.depth, [&](uint32_t rank, uint32_t step) {
        order.push_back({rank, step});
      });
  return completes ? std::optional(std::move(order)) : std::nullopt;
}

} // namespace occl::passes
