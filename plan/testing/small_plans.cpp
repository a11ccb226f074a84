#include "plan/testing/small_plans.h"

#include "plan/verify/verifier.h"

namespace occl::plan::testing {

std::string wordsOn(const Plan &plan) {
  VerifyResult result = verifyPlan(plan);
  return result.error ? result.text() : "accepted";
}

PlanBuilder start(uint32_t numRanks) {
  PlanBuilder builder;
  Plan &plan = builder.header();
  plan.name = plan.collective = "own";
  plan.sourceHash = "0123456789abcdef";
  Contribution first = {0, 0};
  builder.addRequirement({.rank = numRanks - 1, .outputChunk = 0, .count = 1}, {&first, 1});
  return builder;
}

} // namespace occl::plan::testing
