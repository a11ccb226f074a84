// An invocation's place in the queue changes when all ranks have announced it.
#include "runtime/rank/testing/manual_ranks.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace occl::daemon::testing {
namespace {

using Ids = std::vector<uint64_t>;
using StandingTest = ManualRanks;

TEST_F(StandingTest, AHighPriorityOnOneRankRaisesTheInvocationOnAll) {
  make(true);
  add(1, {0, 0, 0});
  add(2, {0, 0, 9});
  for (uint32_t r = 0; r < 2; ++r)
    submit(r, {1, 2});
  ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{1, 2})) << "rank 2 has announced nothing";
  submit(2, {1, 2});
  for (uint32_t r = 0; r < kRanks; ++r) {
    ranks[r]->pass();
    EXPECT_EQ(ranks[r]->order(), (Ids{2, 1})) << "rank " << r;
  }
  finish();
}

TEST_F(StandingTest, APriorityIsInheritedFromTheFirstAnnouncement) {
  make(true);
  add(1, {3, 0, 0});
  add(2, {0, 0, 9});
  add(3, {0, 0, 5});
  submit(0, {1, 2, 3});
  submit(2, {3});
  for (uint32_t i = 0; i < 2 * kRanks; ++i)
    ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{3, 1, 2})) << "rank 1 has announced nothing, rank 2 has one";
  submit(2, {2});
  for (uint32_t i = 0; i < 2 * kRanks; ++i)
    ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{2, 3, 1}));
  submit(1, {1, 2, 3});
  submit(2, {1});
  finish();
}

TEST_F(StandingTest, CollectivesThatAllHaveAnnouncedGoFirstInTheLowestRanksOrder) {
  make(true);
  for (uint64_t id : {1, 2, 3, 4})
    add(id, {0, 0, 0});
  submit(0, {3, 1, 4, 2});
  submit(1, {4, 2, 1, 3});
  submit(2, {2, 1, 3});
  for (uint32_t r = 0; r < kRanks; ++r)
    ranks[r]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{3, 1, 2, 4}));
  EXPECT_EQ(ranks[1]->order(), (Ids{3, 1, 2, 4}));
  EXPECT_EQ(ranks[2]->order(), (Ids{3, 1, 2}));
  submit(2, {4});
  finish();
}

/// What is submitted in the middle of a pass has no turn in it, or moves others.
TEST_F(StandingTest, ALookAtAllIsAtEverythingWhereverThePassStands) {
  make(true);
  add(1, {0, 0, 0});
  add(2, {0, 0, 0});
  add(3, {9, 0, 0});
  add(4, {9, 0, 0});
  add(5, {0, 0, 0});
  submit(0, {1});
  ranks[0]->pass();
  submit(0, {2, 3, 4, 5});
  ranks[0]->pass();
  EXPECT_EQ(ranks[0]->unseen(), Ids{});
  for (uint32_t r = 1; r < kRanks; ++r)
    submit(r, {5, 4, 3, 2, 1});
  finish();
}

TEST_F(StandingTest, WithoutPreemptionAnExecutorKeepsToWhatItHasBegun) {
  make(false);
  add(1, {0, 0, 9}); // so that rank 2 begins with it, too
  add(2, {0, 0, 0});
  submit(0, {1, 2});
  submit(1, {1, 2});
  submit(2, {2}); // only this is announced by all
  ranks[0]->pass();
  EXPECT_EQ(ranks[0]->order(), (Ids{1, 2}));
  submit(2, {1});
  finish();
}

} // namespace
} // namespace occl::daemon::testing
