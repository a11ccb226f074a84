// When a rank that is gone makes those fail that wait for it.
#include "plan/testing/example_plans.h"
#include "runtime/rank/testing/manual_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace occl::daemon::testing {
namespace {

using namespace std::chrono_literals;

/// Rank 2 sends to rank 0, and that to rank 1.
class WatchdogTest : public ManualRanks {
protected:
  void SetUp() override {
    make(true);
    add(1, {0, 0, 0}, plan::testing::chainBroadcastAlong({2, 0, 1}, 1));
  }
  /// It looks, and finds that rank 2 has done nothing.
  void waitForRank2(uint32_t rank) {
    submit(rank, {1});
    ranks[rank]->pass();
    ASSERT_TRUE(ranks[rank]->hasOpen());
  }
};

/// What rank 2 has done before it left is found by the next look, however late that comes.
TEST_F(WatchdogTest, ARankThatHasDoneItsPartMayLeaveBeforeItIsSeen) {
  waitForRank2(0);
  submit(1, {1});
  submit(2, {1});
  while (ranks[2]->hasOpen())
    ranks[2]->pass();
  ranks[2]->leave();
  for (auto after = 100ms; after < 1000ms; after += 100ms)
    ranks[0]->watch(after);
  EXPECT_TRUE(ranks[0]->failure().ok()) << ranks[0]->failure().message();
  finish();
}

/// Each look begins after it was seen that rank 2 is gone.
TEST_F(WatchdogTest, ARankThatIsGoneFailsAfterTwoLooks) {
  waitForRank2(0);
  ranks[0]->watch(100ms);
  EXPECT_TRUE(ranks[0]->failure().ok()) << "rank 2 is there";
  ranks[2]->leave();
  for (auto after : {200ms, 400ms}) {
    ranks[0]->watch(after);
    ranks[0]->watch(after + 100ms);
    EXPECT_TRUE(ranks[0]->failure().ok()) << "it has not looked since";
    ranks[0]->pass();
  }
  ranks[0]->watch(600ms);
  EXPECT_EQ(ranks[0]->failure().code(), StatusCode::PeerFailed);
  EXPECT_NE(ranks[0]->failure().message().find("rank 2 has destroyed its communicator"),
            std::string::npos)
      << ranks[0]->failure().message();
}

/// No other rank makes the first call, which waits for ever, and the second behind it.
TEST_F(WatchdogTest, ACallThatWaitsForItsPredecessorEndsAtItsOwnDeadline) {
  waitForRank2(0);
  ranks[0]->submit(1, 1h);
  ranks[0]->pass();
  ranks[0]->watch(30min);
  EXPECT_TRUE(ranks[0]->failure().ok()) << "it has time";
  ranks[0]->watch(2h);
  const Status failure = ranks[0]->failure();
  EXPECT_EQ(failure.code(), StatusCode::Timeout);
  for (const char *said :
       {"invocation 1 did not end on rank 0 before its deadline: it comes after collective",
        "invocation 0: thread block 0", "waits for"})
    EXPECT_NE(failure.message().find(said), std::string::npos) << failure.message();
}

} // namespace
} // namespace occl::daemon::testing
