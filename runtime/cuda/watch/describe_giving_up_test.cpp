#include "runtime/cuda/watch/describe_giving_up.h"

#include "plan/testing/example_plans.h"
#include "runtime/cuda/tables/replay_word.h"

#include <gtest/gtest.h>

#include <memory>

namespace occl::cuda {
namespace {

using interpreter::BlockReason;

std::string textOf(BlockReason reason, uint32_t what, uint32_t peer, bool isBeginning = false) {
  daemon::CollectiveSpec spec;
  spec.count = 3;
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
  EXPECT_EQ(text.find("rank 0 gave up in call 4, 'ring_allreduce' of 3 elements of type float32, "
                      "sum: thread block 0, instruction 1 ("),
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
  EXPECT_TRUE(endsWith(textOf(BlockReason::Announce, 0, 1, true), "rank 1 to make its first call"));
  EXPECT_TRUE(endsWith(textOf(BlockReason::Announce, 1, 1, true),
                       "rank 1 to begin it, or to finish an earlier one"));
  EXPECT_TRUE(
      endsWith(textOf(BlockReason::Announce, 2, 0, true), "rank 0 to finish its own calls before"));
}

/// Of a call of 1024 floats, the 13th, at what another rank hinders.
std::string textOfCall(uint32_t what, uint32_t peer, const std::string &name = "") {
  daemon::CollectiveSpec spec;
  spec.name = name;
  spec.count = 1024;
  spec.type = DataType::Float16;
  spec.op = ReduceOp::Max;
  spec.plan = std::make_shared<plan::Plan>(plan::testing::ringAllReduce(3));
  GivingUp where;
  where.invocation = 12;
  where.obstacle = {BlockReason::Announce, what, peer};
  where.isBeginning = 1;
  return describeGivingUp(where, spec, 1);
}

TEST(DescribeGivingUp, NamesCallsByWhatTheyAre) {
  EXPECT_EQ(textOfCall(1, 2),
            "rank 1 gave up in call 12, 'ring_allreduce' of 1024 elements of type float16, max: "
            "waits for rank 2 to begin it, or to finish an earlier one");
  EXPECT_EQ(textOfCall(0, 2),
            "rank 1 gave up in call 12, 'ring_allreduce' of 1024 elements of type float16, max: "
            "waits for rank 2 to make its first call");
  EXPECT_EQ(textOfCall(1, 2, "gradients").find("rank 1 gave up in call 12, 'gradients' of 1024 "),
            0u);
}

TEST(DescribeGivingUp, RanksThatCallDifferentThingsAreTold) {
  EXPECT_EQ(textOfCall(kOtherCall, 2),
            "rank 1 gave up in call 12, 'ring_allreduce' of 1024 elements of type float16, max: "
            "rank 2 calls something else there: another kind or plan, count, type, operation or "
            "root. All ranks make the calls of a communicator in one order");
  GivingUp where;
  where.obstacle.what = kOtherCall;
  EXPECT_EQ(codeOf(where), StatusCode::Timeout) << "a connection or thread block of that number";
  where.isBeginning = 1;
  EXPECT_EQ(codeOf(where), StatusCode::Mismatch);
}

TEST(DescribeGivingUp, CallsThatRunBesideEachOtherAreTheUsersMistake) {
  const std::string text = textOfCall(kTwoReplays, 1);
  EXPECT_NE(text.find(", max: another call of the communicator runs beside it. What graphs have "
                      "captured is ordered by their streams and the program's events alone"),
            std::string::npos)
      << text;
  GivingUp where;
  where.isBeginning = 1;
  where.obstacle.what = kTwoReplays;
  EXPECT_EQ(codeOf(where), StatusCode::InvalidArgument);
}

TEST(DescribeCall, HasWhatAllRanksMustCallAlike) {
  daemon::CollectiveSpec spec;
  spec.plan = std::make_shared<plan::Plan>(plan::testing::ringAllReduce(2));
  spec.count = 0;
  spec.type = DataType::Float8E4m3;
  spec.op = ReduceOp::Avg;
  EXPECT_EQ(describeCall(spec), "'ring_allreduce' of 0 elements of type float8_e4m3, avg");
  spec.name = "mine";
  EXPECT_EQ(describeCall(spec), "'mine' of 0 elements of type float8_e4m3, avg");
}

} // namespace
} // namespace occl::cuda
