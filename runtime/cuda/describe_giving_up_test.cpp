#include "runtime/cuda/describe_giving_up.h"

#include "plan/testing/example_plans.h"
#include "runtime/cuda/replay_word.h"

#include <gtest/gtest.h>

#include <memory>

namespace occl::cuda {
namespace {

using interpreter::BlockReason;

std::string textOf(BlockReason reason, uint32_t what, uint32_t peer, bool isBeginning = false) {
  daemon::CollectiveSpec spec;
  spec.id = 7;
  spec.plan = std::make_shared<plan::Plan>(plan::testing::ringAllReduce(3));
  GivingUp where;
  where.invocation = 4;
  where.context.instruction = 1;
  where.context.tile = 2;
  where.obstacle = {reason, what, peer};
  where.isBeginning = isBeginning;
  return describeGivingUp(where, spec, 0);
}

TEST(DescribeGivingUp, NamesCollectiveInstructionAndWhoIsMissing) {
  std::string text = textOf(BlockReason::Data, 0, 2);
  EXPECT_EQ(text.find("rank 0 gave up in 'ring_allreduce' (id 7), invocation 4: thread block 0, "
                      "instruction 1 ("),
            0u)
      << text;
  EXPECT_NE(text.find("ring_allreduce.coll:"), std::string::npos) << text;
  EXPECT_NE(text.find(", tile 2, waits for data from rank 2"), std::string::npos) << text;
}

TEST(DescribeGivingUp, SaysWhatIsMissing) {
  auto endsWith = [](const std::string &text, const std::string &end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
  };
  EXPECT_TRUE(endsWith(textOf(BlockReason::Credit, 0, 1), "rank 1 to read what it was sent"));
  EXPECT_TRUE(endsWith(textOf(BlockReason::Signal, 0, 1), "a signal from rank 1"));
  EXPECT_TRUE(endsWith(textOf(BlockReason::Dependency, 3, 0), "thread block 3 of the same rank"));
  EXPECT_TRUE(endsWith(textOf(BlockReason::Announce, 0, 1, true), "rank 1 to register it"));
  EXPECT_TRUE(endsWith(textOf(BlockReason::Announce, 1, 1, true),
                       "rank 1 to begin it, or to finish an earlier one"));
  EXPECT_TRUE(endsWith(textOf(BlockReason::Announce, 2, 0, true),
                       "rank 0 to finish the earlier invocations that it has enqueued"));
}

TEST(DescribeGivingUp, TwoReplaysAtATimeAreTheUsersMistake) {
  std::string text = textOf(BlockReason::Announce, kTwoReplays, 0, true);
  EXPECT_NE(text.find("another replay of the same captured call is running"), std::string::npos)
      << text;
  GivingUp where;
  EXPECT_EQ(codeOf(where), StatusCode::Timeout);
  where.isBeginning = 1;
  where.obstacle.what = kTwoReplays;
  EXPECT_EQ(codeOf(where), StatusCode::InvalidArgument);
}

} // namespace
} // namespace occl::cuda
