#include "compiler/analysis/ListScheduler.h"

#include "compiler/analysis/Testing.h"

#include <gtest/gtest.h>

namespace occl::analysis {
namespace {

using namespace testing;
using Order = std::vector<uint32_t>;

/// Of programs that say nothing else.
const uint32_t kOverhead = StepWeights().overhead, kLatency = StepWeights().usual.latency;

Schedule scheduleOf(const Program &program, uint32_t depth, MessageOrder order) {
  Network network(program);
  StepGraph graph(program, network, order);
  auto heights = graph.heights();
  EXPECT_TRUE(heights);
  return schedule(program, network, graph, depth, heights ? *heights : std::vector<uint32_t>());
}

/// Rank 0 sends two messages; rank 1 reads the second before the first can be stored.
Program crossed() {
  return program({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)})},
                  {step({transfer(1)}, {scratch(0)}), step({transfer(0)}, {output(0)})}});
}

TEST(Network, EqualRoutesShareAConnection) {
  Program p = program({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)}),
                        step({input(2)}, {transfer(2, 3)})},
                       {step({transfer(0)}, {output(0)}), step({transfer(1)}, {output(1)}),
                        step({transfer(2)}, {output(2)})}});
  Network network(p);
  ASSERT_EQ(network.connections.size(), 2u);
  EXPECT_EQ(network.connectionOf(transfer(0)), network.connectionOf(transfer(1)));
  EXPECT_EQ(network.connections[network.connectionOf(transfer(2))].channel, 3u);
}

TEST(Network, OneSenderToSeveralRanksIsAConnectionOfItsOwn) {
  Program p = program({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)})},
                       {step({transfer(0)}, {output(0)}), step({transfer(1)}, {output(1)})},
                       {step({transfer(0)}, {output(0)})}});
  Network network(p);
  ASSERT_EQ(network.connections.size(), 2u);
  EXPECT_EQ(network.connections[network.connectionOf(transfer(0))].destinations.size(), 2u);
}

TEST(StepGraph, NoticesMessagesInDifferentOrders) {
  Program p = crossed();
  EXPECT_FALSE(StepGraph(p, Network(p), MessageOrder::Program).isConsistent());
  EXPECT_FALSE(completes(p, 8));
}

TEST(StepGraph, HeightsFollowMessages) {
  Program p = program({{step({input(0)}, {transfer(0)})},
                       {step({transfer(0)}, {transfer(1)})},
                       {step({transfer(1)}, {output(0)})}});
  auto heights = StepGraph(p, Network(p), MessageOrder::Free).heights();
  ASSERT_TRUE(heights);
  EXPECT_EQ(*heights, Order({3, 2, 1}));
}

TEST(StepGraph, ACycleHasNoHeights) {
  Program p = program({{step({transfer(1)}, {transfer(0)})}, {step({transfer(0)}, {transfer(1)})}});
  EXPECT_FALSE(StepGraph(p, Network(p), MessageOrder::Program).heights());
}

TEST(ListScheduler, TheLongestPathGoesFirst) {
  Program p = program({{step({input(0)}, {scratch(0)}), step({input(0)}, {transfer(0)})},
                       {step({transfer(0)}, {output(0)})}});
  Schedule result = scheduleOf(p, 2, MessageOrder::Free);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.order[0], Order({1, 0}));
}

TEST(ListScheduler, EqualsKeepTheirOrder) {
  Program p = program({{step({input(0)}, {output(0)}), step({input(1)}, {output(1)}),
                        step({input(2)}, {output(2)})}});
  EXPECT_EQ(scheduleOf(p, 1, MessageOrder::Free).order[0], Order({0, 1, 2}));
}

/// Rank 0 wants `messages` messages sent before the first can be received.
Program needsDepth(uint32_t messages) {
  Program p = program({{}, {}});
  p.ranks[1].steps.push_back(step({transfer(messages)}, {scratch(0)}));
  for (uint32_t i = 0; i < messages; ++i) {
    p.ranks[0].steps.push_back(step({input(0)}, {transfer(i)}));
    p.ranks[1].steps.push_back(step({scratch(0), transfer(i)}, {scratch(0)}));
  }
  // The message on channel 1 that rank 1 waits for reads what all the sends have read.
  p.ranks[0].steps.push_back(step({scratch(0)}, {input(0)}));
  p.ranks[0].steps.push_back(step({input(0)}, {transfer(messages, 1)}));
  p.numTransfers = messages + 1;
  return p;
}

TEST(ListScheduler, DepthDecides) {
  Program p = needsDepth(3);
  std::vector<uint32_t> stuck;
  EXPECT_FALSE(completes(p, 2, &stuck));
  EXPECT_FALSE(stuck.empty());
  EXPECT_TRUE(completes(p, 3));
  EXPECT_FALSE(scheduleOf(p, 2, MessageOrder::Free).complete);
  EXPECT_TRUE(scheduleOf(p, 3, MessageOrder::Free).complete);
}

TEST(ListScheduler, AMulticastKeepsItsSlotUntilTheLastReceiver) {
  Program p = program({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)}),
                        step({transfer(2)}, {scratch(0)})},
                       {step({transfer(0)}, {output(0)}), step({transfer(1)}, {output(1)}),
                        step({output(1)}, {transfer(3)})},
                       {step({transfer(3)}, {scratch(0)}), step({transfer(0)}, {scratch(0)}),
                        step({transfer(1)}, {output(1)}), step({output(1)}, {transfer(2)})}});
  EXPECT_FALSE(completes(p, 1));
  EXPECT_TRUE(completes(p, 2));
}

TEST(ListScheduler, FreeMessagesMayOvertake) {
  // The second message is urgent: it goes on to rank 2.
  Program p = program({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)})},
                       {step({transfer(0)}, {output(0)}), step({transfer(1)}, {transfer(2)})},
                       {step({transfer(2)}, {output(0)})}});
  EXPECT_EQ(scheduleOf(p, 2, MessageOrder::Free).order[0], Order({1, 0}));
  EXPECT_EQ(scheduleOf(p, 2, MessageOrder::Program).order[0], Order({0, 1}));
}

TEST(ListScheduler, ThreadBlocksRunSideBySide) {
  Program p = program({{step({input(0)}, {output(0)}), step({input(1)}, {output(1)}),
                        step({input(2)}, {output(2)})}});
  p.ranks[0].steps[2].instruction.threadBlock = 1;
  EXPECT_EQ(scheduleOf(p, 1, MessageOrder::Free).order[0], Order({0, 2, 1}));
}

TEST(StepGraph, PathsCountDurationsAndWays) {
  Program p = program({{step({input(0)}, {transfer(0)}, 3)},
                       {step({transfer(0)}, {transfer(1)}, 3)},
                       {step({transfer(1)}, {output(0)}, 3)}});
  StepGraph graph(p, Network(p), MessageOrder::Free);
  const Order durations = {10, 20, 30};
  auto heights = graph.heights(durations, p.weights);
  ASSERT_TRUE(heights);
  EXPECT_EQ(*heights, Order({60 + 2 * kLatency, 50 + kLatency, 30}));
  EXPECT_EQ(graph.depths(durations, p.weights), Order({0, 10 + kLatency, 30 + 2 * kLatency}));
}

TEST(StepGraph, VeryLongPathsAreAllEquallyLong) {
  Program p = program({{step({input(0)}, {scratch(0)}), step({scratch(0)}, {output(0)})}});
  StepGraph graph(p, Network(p), MessageOrder::Free);
  auto heights = graph.heights(Order({UINT32_MAX, UINT32_MAX}), p.weights);
  ASSERT_TRUE(heights);
  EXPECT_EQ(*heights, Order({UINT32_MAX, UINT32_MAX}));
}

TEST(Network, KnowsWhetherMessagesKeepTheirOrder) {
  Program p = crossed();
  EXPECT_FALSE(messagesKeepOrder(p, Network(p)));
  std::swap(p.ranks[1].steps[0], p.ranks[1].steps[1]);
  EXPECT_TRUE(messagesKeepOrder(p, Network(p)));
}

TEST(Schedule, PredictsWhenTheLastStepEnds) {
  // One chunk read and one written; then the message; then the same again.
  Program p = program({{step({input(0)}, {transfer(0)})}, {step({transfer(0)}, {output(0)})}});
  EXPECT_EQ(scheduleOf(p, 1, MessageOrder::Free).makespan, 2 * (kOverhead + 2) + kLatency);
}

TEST(Schedule, PredictionWaitsForRoom) {
  Program p = program({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)})},
                       {step({transfer(0)}, {output(0)}, 1), step({transfer(1)}, {output(1)}, 1)}});
  uint64_t one = kOverhead + 2;
  // With room for one message the second send begins when the first has been received.
  EXPECT_EQ(scheduleOf(p, 1, MessageOrder::Free).makespan, 4 * one + 2 * kLatency);
  EXPECT_EQ(scheduleOf(p, 2, MessageOrder::Free).makespan, 3 * one + kLatency);
}

TEST(Schedule, PredictionKnowsThreadBlocks) {
  Program p = program({{step({input(0)}, {output(0)}), step({input(1)}, {output(1)})}});
  EXPECT_EQ(scheduleOf(p, 1, MessageOrder::Free).makespan, 2 * (kOverhead + 2));
  p.ranks[0].steps[0].instruction.threadBlock = 0;
  p.ranks[0].steps[1].instruction.threadBlock = 1;
  EXPECT_EQ(scheduleOf(p, 1, MessageOrder::Free).makespan, kOverhead + 2);
}

TEST(Schedule, IntervalIsTheLongestTimeFromABlocksFirstStepToItsLast) {
  // Rank 1 passes a chunk on and does nothing else; rank 0 waits for the answer in the same block,
  // or in another one.
  Program p = program({{step({input(0)}, {transfer(0)}), step({transfer(1)}, {output(0)})},
                       {step({transfer(0)}, {transfer(1)})}});
  uint64_t one = kOverhead + 2;
  Schedule together = scheduleOf(p, 1, MessageOrder::Free);
  EXPECT_EQ(together.makespan, 3 * one + 2 * kLatency);
  EXPECT_EQ(together.interval, together.makespan);
  EXPECT_EQ(together.duration(), kTypicalTiles * together.makespan);
  p.ranks[0].steps[1].instruction.threadBlock = 1;
  Schedule apart = scheduleOf(p, 1, MessageOrder::Free);
  EXPECT_EQ(apart.makespan, together.makespan);
  EXPECT_EQ(apart.interval, one);
  EXPECT_EQ(apart.duration(), apart.makespan + (kTypicalTiles - 1) * one);
}

} // namespace
} // namespace occl::analysis
