#include "runtime/plan_library/plans_in_rounds.h"

#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

namespace occl::plan_library {
namespace {

using Shared = std::shared_ptr<const plan::Plan>;

TEST(PlansInRounds, AreMadeOnceForEachNumber) {
  PlansInRounds plans;
  const auto ring = std::make_shared<const plan::Plan>(plan::testing::ringAllReduce(3));
  const Shared four = *plans.find(ring, 4);
  EXPECT_EQ(four->ranks[0].numThreadBlocks, 4 * ring->ranks[0].numThreadBlocks);
  EXPECT_EQ(*plans.find(ring, 1), ring);
  EXPECT_NE(*plans.find(ring, 2), four);
  EXPECT_EQ(*plans.find(ring, 4), four);
  const auto same = std::make_shared<const plan::Plan>(plan::testing::ringAllReduce(3));
  EXPECT_NE(*plans.find(same, 4), four) << "of another plan";
}

TEST(PlansInRounds, SayWhyAPlanCannotBeEachTime) {
  PlansInRounds plans;
  const auto direct = std::make_shared<const plan::Plan>(plan::testing::directAllReduce(2));
  for (int time = 0; time < 2; ++time) {
    const auto made = plans.find(direct, 2);
    ASSERT_EQ(made.status().code(), StatusCode::InvalidArgument);
    EXPECT_NE(made.status().message().find("cannot be executed in 2 rounds"), std::string::npos);
  }
}

/// Those that were not asked for longest are let go.
TEST(PlansInRounds, AreFew) {
  PlansInRounds plans;
  const auto ring = std::make_shared<const plan::Plan>(plan::testing::ringAllReduce(2));
  const std::weak_ptr<const plan::Plan> first = *plans.find(ring, 2), second = *plans.find(ring, 3);
  for (uint32_t rounds = 4; rounds < 40; ++rounds) {
    EXPECT_TRUE(plans.find(ring, 2).ok());
    EXPECT_TRUE(plans.find(ring, rounds).ok());
  }
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

} // namespace
} // namespace occl::plan_library
