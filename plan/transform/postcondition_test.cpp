// Plans without a postcondition, and the one that they are given.
#include "plan/transform/postcondition.h"

#include "plan/testing/example_plans.h"
#include "plan/verify/verifier.h"

#include <gtest/gtest.h>

namespace occl::plan {
namespace {

/// A plan as if another tool had made it: nobody says what it computes.
Plan foreign(Plan plan) {
  plan.collective = "custom";
  plan.hasPostcondition = false;
  plan.requirements.clear();
  plan.contributions.clear();
  for (RankPlan &rank : plan.ranks)
    rank.inPlaceOffset = 0;
  plan.inPlace = false;
  return plan;
}

TEST(Postcondition, WithoutOneTheOtherProofsHold) {
  EXPECT_EQ(verifyPlan(foreign(testing::ringAllReduce(4))).text(),
            "proved out of place, except for the result (no postcondition was given, so nothing is "
            "known about what it computes): 28 instructions, 24 messages on 4 connections, 0 "
            "dependencies, at most 1 thread block a rank; depth 2 suffices");
  Plan stuck = foreign(testing::ringAllReduce(4));
  stuck.depth = 1;
  EXPECT_EQ(verifyPlan(stuck).error->proof(), Proof::Deadlock);
  Plan racy = foreign(testing::twoShotAllReduce(3));
  racy.ranks[0].numThreadBlocks = 4;
  for (Instruction &instruction : racy.instructions)
    instruction.numDependencies = 0;
  racy.dependencies.clear();
  for (Instruction &instruction : racy.instructions)
    instruction.firstDependency = 0;
  EXPECT_EQ(verifyPlan(racy).error->proof(), Proof::Race);
}

TEST(Postcondition, StandardCollectivesPromiseSomething) {
  Plan plan = testing::ringAllReduce(2);
  plan.hasPostcondition = false;
  EXPECT_EQ(verifyPlan(plan).error->message,
            "the plan says that nobody knows what it computes, but allreduce is a standard "
            "collective");
  plan = testing::shift(2);
  plan.hasPostcondition = false;
  EXPECT_EQ(verifyPlan(plan).error->message,
            "the plan says that nobody knows what it computes, but has requirements");
}

TEST(Postcondition, AdoptedFromStandardCollective) {
  Plan plan = foreign(testing::ringAllGather(4));
  ASSERT_TRUE(adoptPostcondition(plan, testing::ringAllGather(4)));
  EXPECT_EQ(plan.collective, "allgather");
  EXPECT_EQ(plan.ranks[2].inPlaceOffset, 2);
  EXPECT_TRUE(plan.outOfPlace);
  EXPECT_FALSE(plan.inPlace);
  EXPECT_TRUE(verifyPlan(plan).facts.result);
}

TEST(Postcondition, AdoptedWithFinerChunks) {
  Plan plan = foreign(testing::shift(3, 6));
  ASSERT_TRUE(adoptPostcondition(plan, testing::shift(3, 2)));
  EXPECT_EQ(plan.requirements[1].count, 6u);
  EXPECT_FALSE(plan.uniformChunks);
  EXPECT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();

  Plan model = testing::shift(3, 2);
  for (Requirement &requirement : model.requirements)
    requirement.count = 1;
  plan = foreign(testing::shift(3, 6));
  ASSERT_TRUE(adoptPostcondition(plan, model));
  EXPECT_EQ(plan.requirements[1].count, 3u);
  EXPECT_TRUE(plan.uniformChunks) << "chunk 0 of 2 need not be chunks 0 to 2 of 6";
  EXPECT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
}

TEST(Postcondition, WrongResultIsFoundAgainstTheAdoptedOne) {
  Plan plan = foreign(testing::shift(3));
  Plan model = testing::shift(3);
  model.contributions[1].rank = 0;
  ASSERT_TRUE(adoptPostcondition(plan, model));
  EXPECT_EQ(verifyPlan(plan).error->proof(), Proof::Postcondition);
}

TEST(Postcondition, ModelsThatDoNotFitAreRefused) {
  auto wordsOn = [](const Plan &model) {
    Plan plan = foreign(testing::shift(3, 4));
    std::string words = adoptPostcondition(plan, model).message();
    EXPECT_EQ(plan.collective, "custom");
    return words;
  };
  EXPECT_EQ(wordsOn(testing::shift(4, 4)),
            "'shift' is for 3 ranks, shift for 4: give both the same number");
  EXPECT_EQ(wordsOn(testing::shift(3, 3)),
            "'shift' cuts a part into 4 chunks, shift into 3, which does not divide that");
  EXPECT_EQ(wordsOn(testing::chainReduce(3, 4)),
            "rank 0 of 'shift' has 4 chunks of input and 0 of output; reduce has 4 and 4");
  EXPECT_EQ(wordsOn(foreign(testing::shift(3, 4))),
            "'shift' has no postcondition to prove anything against");
  Plan longer = testing::shift(3, 4);
  longer.ranks[1].inputChunks = 8;
  EXPECT_EQ(wordsOn(longer),
            "rank 1 of 'shift' has 4 chunks of input and 4 of output; shift has 8 and 4");
  Plan inPlace = testing::shift(3, 4);
  inPlace.outOfPlace = false;
  EXPECT_EQ(wordsOn(inPlace),
            "one of 'shift' and shift is for in place only, the other one for out of place only");
}

TEST(Postcondition, InPlaceOnly) {
  Plan plan = foreign(testing::shift(3));
  plan.outOfPlace = false;
  plan.inPlace = true;
  ASSERT_TRUE(adoptPostcondition(plan, testing::shift(3)));
  EXPECT_TRUE(plan.inPlace);
  EXPECT_FALSE(plan.outOfPlace);
}

TEST(Postcondition, PartsThatBeginElsewhere) {
  Plan model = testing::shift(3, 2);
  model.requirements[0].outputChunk = 1;
  Plan plan = foreign(testing::shift(3, 4));
  ASSERT_TRUE(adoptPostcondition(plan, model));
  EXPECT_TRUE(plan.uniformChunks);
  // Chunks that are not cut keep their sizes.
  plan = foreign(testing::shift(3, 2));
  ASSERT_TRUE(adoptPostcondition(plan, model));
  EXPECT_FALSE(plan.uniformChunks);
}

TEST(Postcondition, InputsThatAreNoPlansAreRefused) {
  for (int what = 0; what < 3; ++what) {
    Plan plan = foreign(testing::shift(3)), model = testing::shift(3);
    if (what == 0)
      plan.ranks.pop_back();
    else if (what == 1)
      model.ranks.pop_back();
    else
      model.partChunks = 0;
    EXPECT_EQ(adoptPostcondition(plan, model).message(), "'shift' or 'shift' is no plan");
  }
}

} // namespace
} // namespace occl::plan
