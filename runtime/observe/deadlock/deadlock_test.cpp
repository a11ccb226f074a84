#include "runtime/observe/deadlock/deadlock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

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

/// By its definition: of all sets whose members wait, and for members only, the union.
std::vector<bool> stuckByDefinition(const WaitGraph &graph) {
  std::vector<bool> stuck(graph.size(), false);
  for (uint32_t set = 0; set < 1u << graph.size(); ++set) {
    auto isIn = [&](size_t i) { return i < graph.size() && (set >> i & 1) != 0; };
    bool holds = true;
    for (size_t i = 0; i < graph.size(); ++i)
      holds &= !isIn(i) || (!graph[i].empty() && std::ranges::all_of(graph[i], isIn));
    for (size_t i = 0; holds && i < graph.size(); ++i)
      stuck[i] = stuck[i] || isIn(i);
  }
  return stuck;
}

/// What is known of devices and of ranks rests on this. Some wait for nobody that there is.
TEST(WaitGraph, StuckAreThoseThatOnlyStuckOnesCouldSetMoving) {
  uint32_t numStuck = 0, numMoving = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937 random(seed);
    WaitGraph graph(1 + random() % 6);
    for (auto &waits : graph)
      for (uint32_t w = random() % 3; w != 0; --w)
        waits.push_back(random() % (graph.size() + (random() % 4 == 0 ? 1 : 0)));
    const std::vector<bool> stuck = findStuck(graph);
    ASSERT_EQ(stuck, stuckByDefinition(graph)) << "seed " << seed;
    for (size_t i = 0; i < graph.size(); ++i) {
      ++(stuck[i] ? numStuck : numMoving);
      if (!stuck[i])
        continue;
      // Each waits for the next one, the last one for the first.
      const std::vector<size_t> cycle = followFirstWaits(graph, i);
      ASSERT_FALSE(cycle.empty());
      for (size_t c = 0; c < cycle.size(); ++c)
        ASSERT_EQ(graph[cycle[c]].front(), cycle[(c + 1) % cycle.size()]) << "seed " << seed;
    }
  }
  EXPECT_GT(numStuck, 1000u);
  EXPECT_GT(numMoving, 1000u);
}

// Of the ranks of a communicator on CUDA devices; those of the host ask their devices
// (device_cycle_test).

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
