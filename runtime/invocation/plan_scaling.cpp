// Which plans may scale their inputs: for factors, and for averages that are divided before.
#include "runtime/invocation/plan_scaling.h"

#include "plan/collectives/promise.h"

#include <algorithm>
#include <optional>

namespace occl::daemon {

namespace {

/// Of a standard collective: what the plan promises of each element.
std::optional<plan::Goal> goalOf(const plan::Plan &plan) {
  const auto standard = plan::standardCollectiveOf(plan.collective);
  return standard ? plan::goalOf(plan, *standard, plan.root, 0) : std::nullopt;
}

/// Whether each element that the plan promises is a reduction.
bool promisesReductionsOnly(const plan::Plan &plan) {
  if (plan::standardCollectiveOf(plan.collective))
    return goalOf(plan).value_or(plan::Goal{}).ofAllRanks;
  return std::ranges::all_of(plan.requirements, [](const plan::Requirement &requirement) {
    return requirement.numContributions > 1;
  });
}

/// Whether it is known to reduce nothing, however its instructions copy.
bool promisesCopiesOnly(const plan::Plan &plan) {
  if (plan::standardCollectiveOf(plan.collective)) {
    const auto goal = goalOf(plan);
    return goal && !goal->ofAllRanks;
  }
  return !plan.requirements.empty() &&
         std::ranges::all_of(plan.requirements, [](const plan::Requirement &requirement) {
           return requirement.numContributions <= 1;
         });
}

/// Whether some reduction is reduced further: else all divide what they add.
bool hasPartialReductions(const plan::Plan &plan) {
  return std::ranges::any_of(plan.instructions, [](const plan::Instruction &instruction) {
    return instruction.numSources > 1 && !instruction.final;
  });
}

/// Whether inputs may be divided instead of what is added.
bool mayDivideInputs(const plan::Plan &plan, ReduceOp op, DataType type) {
  return op == ReduceOp::Avg && isFloat(type) && plan.numRanks > 1 && plan.outOfPlace &&
         plan.average && plan.hasPostcondition && promisesReductionsOnly(plan);
}

/// Whether a sum of some ranks' ordinary numbers is more than the type can hold.
bool isNarrow(DataType type) {
  return type == DataType::Float16 || type == DataType::Float8E4m3 || type == DataType::Float8E5m2;
}

} // namespace

bool reduces(const plan::Plan &plan) {
  return std::ranges::any_of(plan.instructions, [](const plan::Instruction &instruction) {
    return instruction.numSources > 1;
  });
}

bool mayHaveFactor(const plan::Plan &plan) {
  if (!plan.outOfPlace || promisesCopiesOnly(plan))
    return false;
  return reduces(plan) || (plan.numRanks == 1 && plan.hasPostcondition && goalOf(plan));
}

bool dividesInputs(const plan::Plan &plan, ReduceOp op, DataType type) {
  return mayDivideInputs(plan, op, type) && hasPartialReductions(plan);
}

bool dividesInputsOnDevice(const plan::Plan &plan, ReduceOp op, DataType type) {
  return isNarrow(type) && dividesInputs(plan, op, type);
}

} // namespace occl::daemon
