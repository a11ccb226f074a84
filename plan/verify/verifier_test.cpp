// Correct plans pass; their facts.
#include "plan/testing/example_plans.h"
#include "plan/verify/verifier.h"
#include "support/parallel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace occl::plan {
namespace {

TEST(Verifier, AcceptsCorrectPlans) {
  for (uint32_t n : {1, 2, 3, 4, 5, 8, 16}) {
    for (Plan (*make)(uint32_t) :
         {testing::ringAllReduce, testing::oneShotAllReduce, testing::twoShotAllReduce,
          testing::ringAllGather, testing::ringReduceScatter, testing::allToAll}) {
      Plan plan = make(n);
      VerifyResult result = verifyPlan(plan);
      EXPECT_TRUE(result) << plan.name << ", " << n << " ranks: " << result.text();
    }
    for (uint32_t root : {0u, n / 2, n - 1})
      for (Plan (*make)(uint32_t, uint32_t, uint32_t) :
           {testing::chainBroadcast, testing::chainReduce}) {
        Plan plan = make(n, 5, root);
        VerifyResult result = verifyPlan(plan);
        EXPECT_TRUE(result) << plan.name << ", " << n << " ranks: " << result.text();
      }
    VerifyResult result = verifyPlan(testing::shift(n));
    EXPECT_EQ(result.isOk(), true) << "shift, " << n << " ranks: " << result.text();
  }
}

/// Large enough for several threads.
TEST(Verifier, SaysTheSameOnSeveralThreads) {
  const Plan right = testing::ringAllReduce(72);
  Plan wrong = right, stuck = right;
  for (Operand &operand : wrong.operands)
    if (operand.kind == OperandKind::Output && operand.index == 71)
      operand.index = 70;
  stuck.depth = 1;
  const std::vector<const Plan *> plans = {&right, &wrong, &stuck};
  std::vector<std::string> alone;
  for (const Plan *plan : plans)
    alone.push_back(verifyPlan(*plan).text());
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[0], alone[2]);
  for (unsigned threads : {2u, 3u, 8u}) {
    support::setNumThreads(threads);
    for (size_t i = 0; i < plans.size(); ++i)
      EXPECT_EQ(verifyPlan(*plans[i]).text(), alone[i]) << threads << " threads";
  }
  support::setNumThreads(1);
}

TEST(Verifier, ReportsFacts) {
  EXPECT_EQ(verifyPlan(testing::ringAllReduce(4)).text(),
            "proved in place and out of place: 28 instructions, 24 messages on 4 connections, 0 "
            "dependencies, at most 1 thread block a rank; depth 2 suffices");
  Plan plan = testing::twoShotAllReduce(3);
  plan.inPlace = false;
  VerifyResult result = verifyPlan(plan);
  EXPECT_EQ(result.facts.smallestDepth, 1u);
  EXPECT_EQ(result.facts.threadBlocks, 4u);
  EXPECT_EQ(result.facts.messages, 9u);
  EXPECT_EQ(result.facts.connections, 9u);
  EXPECT_EQ(result.facts.dependencies, 9u);
  EXPECT_TRUE(result.facts.outOfPlace);
  EXPECT_FALSE(result.facts.inPlace);
  EXPECT_EQ(result.text().substr(0, 21), "proved out of place: ");
  plan.inPlace = true;
  plan.outOfPlace = false;
  EXPECT_EQ(verifyPlan(plan).text().substr(0, 17), "proved in place: ");
}

TEST(Verifier, SmallestDepthIfAskedFor) {
  VerifyResult result = verifyPlan(testing::ringAllReduce(4), {.findSmallestDepth = false});
  EXPECT_EQ(result.facts.smallestDepth, 0u);
  EXPECT_EQ(result.text().find("suffices"), std::string::npos);
}

} // namespace
} // namespace occl::plan
