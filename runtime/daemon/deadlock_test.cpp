#include "runtime/daemon/deadlock.h"

#include <gtest/gtest.h>

namespace occl::daemon {
namespace {

using transport::WaitEdge;
using transport::WaitReason;
using transport::WaitSnapshot;

WaitEdge waitFor(uint32_t peer, uint64_t collective = 0, WaitReason reason = WaitReason::Data) {
  WaitEdge edge;
  edge.collective = collective;
  edge.reason = reason;
  edge.peer = peer;
  return edge;
}

WaitSnapshot rankWith(std::vector<WaitEdge> edges, uint64_t version = 2,
                      uint64_t confirmations = 0) {
  return {version, confirmations, std::move(edges)};
}

TEST(FindWaitCycle, TwoRanksThatWaitForEachOther) {
  std::vector<WaitSnapshot> ranks{rankWith({waitFor(1, 10)}), rankWith({waitFor(0, 20)})};
  auto cycle = findWaitCycle(ranks, 0);
  ASSERT_EQ(cycle.size(), 2u);
  EXPECT_EQ(cycle[0].waiter, 0u);
  EXPECT_EQ(cycle[0].edge.collective, 10u);
  EXPECT_EQ(cycle[1].waiter, 1u);
  EXPECT_EQ(cycle[1].edge.collective, 20u);
}

TEST(FindWaitCycle, AChainThatEndsAtAMovingRankIsNone) {
  std::vector<WaitSnapshot> ranks{rankWith({waitFor(1)}), rankWith({waitFor(2)}), rankWith({})};
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_TRUE(findWaitCycle(ranks, r).empty());
}

TEST(FindWaitCycle, OneWaitThatCanEndIsEnoughToMove) {
  std::vector<WaitSnapshot> ranks{rankWith({waitFor(1), waitFor(2)}), rankWith({waitFor(0)}),
                                  rankWith({})};
  EXPECT_TRUE(findWaitCycle(ranks, 0).empty());
  EXPECT_TRUE(findWaitCycle(ranks, 1).empty());
}

TEST(FindWaitCycle, TheReportHoldsTheCycleWithoutTheWayToIt) {
  std::vector<WaitSnapshot> ranks{rankWith({waitFor(1)}), rankWith({waitFor(2)}),
                                  rankWith({waitFor(1)})};
  auto cycle = findWaitCycle(ranks, 0);
  ASSERT_EQ(cycle.size(), 2u);
  EXPECT_EQ(cycle[0].waiter, 1u);
  EXPECT_EQ(cycle[1].waiter, 2u);
}

TEST(FindWaitCycle, DependenciesWithinARankAreNotCycles) {
  std::vector<WaitSnapshot> ranks{rankWith({waitFor(0, 0, WaitReason::Dependency)})};
  EXPECT_TRUE(findWaitCycle(ranks, 0).empty());
}

TEST(FindWaitCycle, DamagedPeersAreSurvived) {
  std::vector<WaitSnapshot> ranks{rankWith({waitFor(77)}), rankWith({waitFor(0)})};
  EXPECT_TRUE(findWaitCycle(ranks, 0).empty());
}

TEST(DeadlockDetector, WantsTheSameWaitsConfirmedByAll) {
  auto ranks = [](uint64_t confirmedBy0, uint64_t confirmedBy1, uint64_t version) {
    return std::vector<WaitSnapshot>{rankWith({waitFor(1)}, 2, confirmedBy0),
                                     rankWith({waitFor(0)}, version, confirmedBy1)};
  };
  DeadlockDetector detector;
  EXPECT_TRUE(detector.update(ranks(0, 0, 2), 0).empty());
  EXPECT_TRUE(detector.update(ranks(9, 1, 2), 0).empty()) << "rank 1 has not confirmed";
  EXPECT_TRUE(detector.update(ranks(9, 9, 4), 0).empty()) << "rank 1 has moved since";
  EXPECT_TRUE(detector.update(ranks(12, 20, 4), 0).empty())
      << "rank 0 has not confirmed since then";
  EXPECT_EQ(detector.update(ranks(20, 20, 4), 0).size(), 2u);
}

} // namespace
} // namespace occl::daemon
