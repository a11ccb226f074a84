// Plans in rounds are proved again, and executed.
#include "plan/transform/rounds.h"

#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "plan/testing/replay.h"
#include "plan/verify/verifier.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace occl::plan {
namespace {

std::vector<Plan> examples(uint32_t numRanks) {
  using namespace testing;
  return {ringAllReduce(numRanks),     oneShotAllReduce(numRanks), twoShotAllReduce(numRanks),
          chainBroadcast(numRanks, 3), chainReduce(numRanks, 2),   ringAllGather(numRanks),
          ringReduceScatter(numRanks), allToAll(numRanks),         shift(numRanks, 3)};
}

TEST(Rounds, AreProvedAndRight) {
  std::mt19937 random(5);
  for (uint32_t numRanks : {1u, 2u, 3u, 5u})
    for (const Plan &plan : examples(numRanks))
      for (uint32_t rounds : {1u, 2u, 3u, 7u}) {
        const auto made = inRounds(plan, rounds);
        if (!made) { // a collective of one's own over several parts
          EXPECT_NE(made.message().find("chunks of several parts"), std::string::npos)
              << made.message();
          continue;
        }
        const VerifyResult proved = verifyPlan(*made);
        ASSERT_TRUE(proved) << proved.text();
        EXPECT_EQ(made->partChunks, plan.partChunks * rounds);
        EXPECT_EQ(testing::confirm(*made, 2, random), "") << plan.name << " in " << rounds;
      }
}

/// The chunks of the inputs and outputs that the thread blocks of a round access are those of its
/// pieces, and no two rounds share a connection or scratch.
TEST(Rounds, ShareNothing) {
  constexpr uint32_t kRounds = 4;
  for (const Plan &plan : {testing::ringAllReduce(3), testing::ringAllGather(3)}) {
    const Plan made = *inRounds(plan, kRounds);
    for (uint32_t r = 0; r < plan.numRanks; ++r) {
      std::set<std::pair<int, uint32_t>> seen;
      const auto blocks = made.threadBlocksOf(made.ranks[r]);
      const uint32_t perRound = plan.ranks[r].numThreadBlocks;
      ASSERT_EQ(blocks.size(), perRound * kRounds);
      for (uint32_t round = 0; round < kRounds; ++round) {
        std::set<std::pair<int, uint32_t>> mine;
        for (uint32_t b = round * perRound; b < (round + 1) * perRound; ++b)
          for (const Instruction &instruction : made.instructionsOf(blocks[b]))
            for (const Operand &operand :
                 std::span(made.operands)
                     .subspan(instruction.firstOperand,
                              size_t{instruction.numSources} + instruction.numDestinations))
              for (uint32_t c = 0; c < std::max(1u, instruction.count); ++c) {
                const bool isUser =
                    operand.kind == OperandKind::Input || operand.kind == OperandKind::Output;
                const uint32_t index =
                    operand.index + (operand.kind == OperandKind::Connection ? 0 : c);
                if (isUser) {
                  EXPECT_EQ(index % made.partChunks / plan.partChunks, round);
                }
                mine.emplace(static_cast<int>(operand.kind), index);
              }
        for (const auto &one : mine)
          EXPECT_TRUE(seen.insert(one).second) << "round " << round;
      }
    }
  }
}

TEST(Rounds, RefusesWhatItCannotCut) {
  Plan uniform = testing::ringAllReduce(2);
  uniform.uniformChunks = true;
  EXPECT_NE(inRounds(uniform, 2).message().find("another size"), std::string::npos);
  EXPECT_NE(inRounds(testing::ringAllReduce(2), 0).message().find("there has to be one"),
            std::string::npos);
  EXPECT_NE(inRounds(testing::ringAllReduce(2), 2000).message().find("more thread blocks"),
            std::string::npos);
  EXPECT_TRUE(inRounds(uniform, 1)) << "it stays as it is";
}

} // namespace
} // namespace occl::plan
