#include "runtime/observe/report/wait_report.h"

#include "plan/testing/example_plans.h"
#include "plan/transform/rounds.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/observe/report/wait_text.h"

#include <gtest/gtest.h>

namespace occl::insight {
namespace {

using transport::WaitEdge;
using transport::WaitReason;

KnownCollective lookUp(uint64_t collective) {
  if (collective == 7)
    return {"'sum' (id 7)", std::make_shared<const plan::Plan>(plan::testing::oneShotAllReduce(2))};
  if (collective == transport::partitionedIdOf(3))
    return {
        "'sum' (partitioned, request 3)",
        std::make_shared<const plan::Plan>(*plan::inRounds(plan::testing::oneShotAllReduce(2), 4)),
        4};
  return {transport::describeSequence(collective), nullptr};
}

TEST(WaitReport, SaysWhoWaitsForWhatAndWhoIsMissing) {
  std::vector<RankReport> ranks(5);
  ranks[0] = {true, {{7, 3, 0, 0, WaitReason::Announce, 1, 0, 0}}, ""};
  ranks[1].note = "is gone";
  ranks[2] = {false, {{9, 0, 1, 4, WaitReason::Dependency, 2, 5, 0}}, ""};
  ranks[3] = {true, {{9, 0, 0, 2, WaitReason::Credit, 1, 0, 0}}, ""};
  std::vector<MissingRanks> missing{{7, 3, {1}}, {9, 0, {0, 1, 3}}, {8, 0, {}}};
  EXPECT_EQ(describeWaits(ranks, missing, lookUp, 0),
            "rank 0 waits for rank 1 (its submission) in collective 'sum' (id 7), invocation 3, "
            "thread block 0, instruction 0 (send) at one_shot_allreduce.coll:3:5\n"
            "rank 1 is gone\n"
            "rank 2 waits for itself (thread block 5) in collective id 9, invocation 0, thread "
            "block 1, instruction 4; it does not answer\n"
            "rank 3 waits for rank 1 (a free slot) in collective id 9, invocation 0, thread block "
            "0, instruction 2\n"
            "rank 4 waits for nobody\n"
            "collective 'sum' (id 7), invocation 3: not submitted by rank 1\n"
            "collective id 9, invocation 0: not submitted by ranks 0, 1 and 3\n");
}

TEST(WaitReport, NamesPartitionedCollectives) {
  std::vector<RankReport> ranks(1);
  const uint64_t known = transport::partitionedIdOf(3), other = transport::partitionedIdOf(4);
  ranks[0] = {true,
              {{known, 5, 2, 0, WaitReason::Data, 1, 0, 0},
               {other, 0, 2, 0, WaitReason::Announce, 1, 0, 0}},
              ""};
  const std::vector<MissingRanks> missing{{other, 0, {1}}};
  EXPECT_EQ(describeWaits(ranks, missing, lookUp, 0),
            "rank 0 waits for rank 1 (data) in collective 'sum' (partitioned, request 3), epoch 6, "
            "round 2, thread block 2, instruction 0 (send) at one_shot_allreduce.coll:3:5\n"
            "rank 0 waits for rank 1 (its submission) in collective partitioned request 4, epoch "
            "1, thread block 2, instruction 0\n"
            "collective partitioned request 4, epoch 1: not submitted by rank 1\n");
}

TEST(WaitReport, SaysForHowLong) {
  EXPECT_EQ(describeDuration(1'499), "1 us");
  EXPECT_EQ(describeDuration(12'345'678), "12.3 ms");
  EXPECT_EQ(describeDuration(4'200'000'000), "4.20 s");
  TickScale scale;
  Ticks now = ticks();
  std::vector<RankReport> ranks{{true, {{9, 0, 0, 0, WaitReason::Data, 1, 0, now - 1}}, ""}};
  std::string text = describeWaits(ranks, {}, lookUp, now);
  EXPECT_EQ(text,
            "rank 0 waits for rank 1 (data) in collective id 9, invocation 0, thread block 0, "
            "instruction 0, for 0 us\n");
}

TEST(WaitText, PlacesOutsideThePlanAreNamedByNumbers) {
  plan::Plan plan = plan::testing::oneShotAllReduce(2);
  EXPECT_EQ(describePosition(&plan, {0, 0, 999}), "thread block 0, instruction 999");
  EXPECT_EQ(describePosition(&plan, {9, 0, 0}), "thread block 0, instruction 0");
  EXPECT_EQ(describePosition(&plan, {0, 99, 0}), "thread block 99, instruction 0");
}

TEST(WaitText, EveryReasonHasAText) {
  for (size_t r = 0; r < transport::kNumWaitReasons; ++r)
    EXPECT_STRNE(toString(static_cast<WaitReason>(r)), "something unknown");
}

TEST(WaitText, ListsTheWaitsThatFitAndCountsTheOthers) {
  std::vector<std::string> waits{"first", "second", "third"};
  const std::string all = "cycle:\n  first\n  second\n  third";
  EXPECT_EQ(listWaits("cycle:", waits, all.size()), all);
  EXPECT_EQ(listWaits("cycle:", waits, all.size() - 1), "cycle:\n  first\n  and 2 more");
  EXPECT_EQ(listWaits("cycle:", {}, 6), "cycle:");
  EXPECT_EQ(listWaits("cycle:", waits, 20), "cycle:\n  and 3 more");
  std::vector<std::string> many(100, std::string(200, 'x'));
  const std::string text = listWaits("cycle:", many, 2047);
  EXPECT_LE(text.size(), 2047u);
  EXPECT_TRUE(text.ends_with("\n  and 91 more")) << text.substr(text.size() - 30);
}

} // namespace
} // namespace occl::insight
