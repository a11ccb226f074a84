#include "compiler/interchange/common/Annotate.h"

#include "compiler/interchange/common/SplitFinal.h"
#include "compiler/interchange/common/ValueFlow.h"
#include "plan/collectives/promise.h"

#include <algorithm>

namespace occl::interchange {

namespace {

/// Calls visit(rank, chunk) for each output chunk that the collective promises to be a reduction.
template <typename Visitor> void visitReductions(const plan::Plan &plan, Visitor visit) {
  // Standard collectives say by their definition which outputs are reductions; others list what
  // they promise.
  if (const auto standard = plan::standardCollectiveOf(plan.collective)) {
    for (uint32_t rank = 0; rank < plan.numRanks && plan::isReduction(*standard); ++rank)
      for (uint32_t chunk = 0; chunk < plan.ranks[rank].outputChunks; ++chunk)
        if (plan::goalOf(plan, *standard, rank, chunk))
          visit(rank, chunk);
    return;
  }
  for (const plan::Requirement &requirement : plan.requirements)
    for (uint32_t i = 0; i < requirement.count && requirement.numContributions > 1; ++i)
      visit(requirement.rank, requirement.outputChunk + i);
}

} // namespace

void annotate(plan::Plan &plan) {
  // One execution tells everything that is annotated: where each value comes from, and which
  // reduction made it last.
  ValueFlow flow(plan);
  flow.run();
  plan.uniformChunks = flow.mixesExtents();
  // Whether each single result of an instruction completes an output.
  const std::vector<uint64_t> &first = flow.firstResults();
  std::vector<bool> completes(first.back());
  visitReductions(plan, [&](uint32_t rank, uint32_t chunk) {
    uint32_t reduction = flow.outputAt(rank, chunk).reduction;
    if (reduction == ValueFlow::kNone)
      return;
    completes[reduction] = true;
    // A result that is reduced further cannot be divided there: such a plan is not for averages.
    plan.average &= !flow.isReducedFurther(reduction);
  });
  // Without averages nothing need be marked.
  if (!plan.average)
    completes.assign(completes.size(), false);
  bool isMixed = false;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    plan::Instruction &instruction = plan.instructions[i];
    // Plans for uniform chunks mix extents anyway, so none is said.
    uint32_t extent = flow.extents()[i];
    instruction.extent = plan.uniformChunks || extent == ValueFlow::kNone ? 0 : extent;
    auto begin = completes.begin() + static_cast<ptrdiff_t>(first[i]);
    auto complete = std::count(begin, begin + instruction.count, true);
    // All of an instruction's results complete something, or none; those that are mixed are cut in
    // two below.
    instruction.final = complete == instruction.count;
    isMixed |= complete != 0 && !instruction.final;
  }
  if (isMixed)
    plan = splitFinal(plan, completes);
}

} // namespace occl::interchange
