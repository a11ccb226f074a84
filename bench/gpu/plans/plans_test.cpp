// The plans that only measure are right all the same.
#include "bench/gpu/plans/plans.h"
#include "plan/verify/verifier.h"
#include "runtime/exec/conformance/conformance.h"

#include <gtest/gtest.h>

namespace occl::bench {
namespace {

using namespace interpreter::conformance;

TEST(Plans, AreCorrect) {
  for (uint32_t ranks : {2u, 3u, 8u})
    for (uint32_t blocks : {1u, 3u}) {
      plan::Plan plan = oneShotAfterCopies(ranks, blocks, 2);
      auto result = plan::verifyPlan(plan);
      ASSERT_TRUE(result.isOk()) << result.text();
      Status status =
          checkCollective(plan, {.count = 5003, .tiles = {2000, 2}}, 5,
                          [](Simulation &simulation) { return runRandomly(simulation, 5, 2); });
      EXPECT_TRUE(status.ok()) << status.message();
    }
}

} // namespace
} // namespace occl::bench
