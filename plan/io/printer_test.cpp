// Plans and instructions as text.
#include "plan/io/printer.h"
#include "plan/model/builder.h"
#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>
#include <sstream>

namespace occl::plan {
namespace {

TEST(Printer, DescribesInstructions) {
  Plan plan = testing::ringAllReduce(4);
  EXPECT_EQ(
      describe(plan, Place{3, 0, 1}),
      "rank 3, thread block 0, instruction 1: recvReduceSend input[2] + rank 2 (channel 0) -> "
      "rank 0 (channel 0), at ring_allreduce.coll:6:5");
  EXPECT_EQ(describe(testing::oneShotAllReduce(4), Place{1, 0, 0}),
            "rank 1, thread block 0, instruction 0: send input[0] -> ranks 0, 2 and 3 (channel 0), "
            "at one_shot_allreduce.coll:3:5");
  EXPECT_EQ(describe(testing::shift(2, 5), Place{0, 0, 0}),
            "rank 0, thread block 0, instruction 0: copy input[0..5] -> scratch[0..5], at "
            "shift.coll:3:5");
}

TEST(Printer, CutsLongLists) {
  Plan plan = testing::oneShotAllReduce(100);
  EXPECT_EQ(describe(plan, Place{0, 0, 0}),
            "rank 0, thread block 0, instruction 0: send input[0] -> ranks 1, 2, 3, 4, 5, 6, 7, 8, "
            "... and 99 (channel 0), at one_shot_allreduce.coll:3:5");
  EXPECT_EQ(describe(plan, Place{0, 0, 1}),
            "rank 0, thread block 0, instruction 1: recvReduceCopy input[0] + rank 1 (channel 0) + "
            "rank 2 (channel 0) + rank 3 (channel 0) + rank 4 (channel 0) + rank 5 (channel 0) + "
            "rank 6 (channel 0) + rank 7 (channel 0) + ... + rank 99 (channel 0) -> output[0], "
            "final, at one_shot_allreduce.coll:4:5");
}

TEST(Printer, DescribesWithoutLocations) {
  Plan plan = testing::ringAllReduce(2);
  plan.instructions[0].location = kNoLocation;
  EXPECT_EQ(describe(plan, 0u),
            "rank 0, thread block 0, instruction 0: send input[0] -> rank 1 (channel 0)");
  EXPECT_EQ(describeLocation(plan, 1234), "");
}

TEST(Printer, FindsPlaces) {
  Plan plan = testing::twoShotAllReduce(3);
  plan.threadBlocks.insert(plan.threadBlocks.begin(), {0, 0}); // an empty one in front
  ++plan.ranks[0].numThreadBlocks;
  ++plan.ranks[1].firstThreadBlock;
  ++plan.ranks[2].firstThreadBlock;
  uint32_t index = 0;
  for (uint32_t r = 0; r < 3; ++r)
    for (uint32_t b = 0; b < plan.ranks[r].numThreadBlocks; ++b)
      for (uint32_t i = 0; i < plan.threadBlocksOf(plan.ranks[r])[b].numInstructions; ++i)
        EXPECT_EQ(placeOf(plan, index++), (Place{r, b, i}));
  EXPECT_EQ(index, plan.instructions.size());
}

TEST(Printer, PrintsRanks) {
  Plan plan = testing::twoShotAllReduce(2);
  plan.uniformChunks = true;
  plan.average = false;
  std::ostringstream one, all;
  printPlan(plan, one, {.rank = 1});
  EXPECT_EQ(one.str(),
            "plan two_shot_allreduce: allreduce for 2 ranks, 2 chunks a part, protocol\n"
            "  Simple, depth 2\n"
            "valid out of place and in place, for counts that 2 divides, not for averages;\n"
            "  source hash 0123456789abcdef\n"
            "  ranks = 2\n"
            "rank 1: input 2, output 2, scratch 0 chunks\n"
            "  thread block 0:\n"
            "    0: send input[0] -> rank 0 (channel 0)\n"
            "       at two_shot_allreduce.coll:3:5\n"
            "  thread block 1:\n"
            "    0: recvReduceCopy rank 0 (channel 0) + input[1] -> output[1], final\n"
            "       at two_shot_allreduce.coll:4:5\n"
            "  thread block 2:\n"
            "    0: send output[1] -> rank 0 (channel 1), after 1:0\n"
            "       at two_shot_allreduce.coll:5:5\n"
            "  thread block 3:\n"
            "    0: recv rank 0 (channel 1) -> output[0], after 0:0\n"
            "       at two_shot_allreduce.coll:6:5\n");
  printPlan(plan, all);
  EXPECT_NE(all.str().find("rank 0: input"), std::string::npos);
  EXPECT_NE(all.str().find("rank 1: input"), std::string::npos);
}

class SameNotes : public PlanNotes {
public:
  std::string ofBlock(uint32_t) const override { return "of the block"; }
  std::string ofInstruction(uint32_t) const override { return "of the instruction"; }
  std::string ofWaits(uint32_t index) const override {
    return index == 0
               ? ""
               : "of waits that take so many words that they have no room in one line of eighty";
  }
};

TEST(Printer, notes_standBelowTheirInstruction) {
  Plan plan = testing::twoShotAllReduce(2);
  plan.instructions[1].location = kNoLocation;
  std::ostringstream out;
  const SameNotes notes;
  printPlan(plan, out, {.rank = 0, .notes = &notes});
  EXPECT_NE(out.str().find("  thread block 0: of the block\n"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("(channel 0)\n"
                           "       at two_shot_allreduce.coll:3:5, of the instruction\n"
                           "  thread block 1: of the block\n"),
            std::string::npos)
      << "no line for no waits:\n"
      << out.str();
  EXPECT_NE(out.str().find(
                "\n       of the instruction\n"
                "       of waits that take so many words that they have no room in one line of\n"
                "         eighty\n"),
            std::string::npos)
      << out.str();
}

} // namespace
} // namespace occl::plan
