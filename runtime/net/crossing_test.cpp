// Which flows of a program lead to which rank of another island.
#include "runtime/net/crossing.h"

#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace occl::net {
namespace {

constexpr uint32_t kRanks = 6;
constexpr uint64_t kHeadsDistance = 1 << 20;

/// Of rank 2, of whose peers rank 3 is on its own island.
Crossing crossingOf(const plan::Plan &plan) {
  interpreter::BindRequest request = {.rank = 2, .count = 100000};
  request.isSimple = true;
  request.headsDistance = kHeadsDistance;
  return {
      *interpreter::bind(plan, request), {true, true, false, false, true, true}, kHeadsDistance};
}

/// Whether the ranges of all ranks, one after the other, hold each flow once, with its rank.
template <class Flow, class FlowsOf>
void expectIndexed(const std::vector<Flow> &flows, const FlowsOf &flowsOf) {
  size_t next = 0;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const Flows range = flowsOf(rank);
    ASSERT_EQ(range.first, next);
    ASSERT_LE(range.end, flows.size());
    for (size_t i = range.first; i < range.end; ++i)
      EXPECT_EQ(flows[i].peer, rank);
    next = range.end;
  }
  EXPECT_EQ(next, flows.size());
}

TEST(Crossing, FlowsAreFoundByPeer) {
  for (const plan::Plan &plan :
       {plan::testing::twoShotAllReduce(kRanks), plan::testing::ringAllReduce(kRanks),
        plan::testing::allToAll(kRanks), plan::testing::shift(kRanks)}) {
    const Crossing crossing = crossingOf(plan);
    expectIndexed(crossing.outgoing(), [&](uint32_t rank) { return crossing.outgoingTo(rank); });
    expectIndexed(crossing.incoming(), [&](uint32_t rank) { return crossing.incomingFrom(rank); });
  }
}

/// The ranks that have some.
template <class FlowsOf> std::set<uint32_t> ranksOf(const FlowsOf &flowsOf) {
  std::set<uint32_t> ranks;
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    if (const Flows flows = flowsOf(rank); flows.first != flows.end)
      ranks.insert(rank);
  return ranks;
}

TEST(Crossing, RanksOfOtherIslandsHaveFlowsAndNoOther) {
  const Crossing all = crossingOf(plan::testing::twoShotAllReduce(kRanks));
  EXPECT_EQ(ranksOf([&](uint32_t rank) { return all.outgoingTo(rank); }),
            (std::set<uint32_t>{0, 1, 4, 5}));
  // From rank 1 to rank 3, and the latter is on this island.
  const Crossing ring = crossingOf(plan::testing::ringAllReduce(kRanks));
  EXPECT_TRUE(ring.outgoing().empty());
  EXPECT_EQ(ranksOf([&](uint32_t rank) { return ring.incomingFrom(rank); }),
            (std::set<uint32_t>{1}));
}

} // namespace
} // namespace occl::net
