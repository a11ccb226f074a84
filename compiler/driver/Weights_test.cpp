// Weights follow a topology's constants; without one they are those of the cost model's GPUs.
#include "compiler/driver/Weights.h"

#include "compiler/topology/Machines.h"

#include <gtest/gtest.h>

namespace occl::driver {
namespace {

using analysis::StepWeights;
using analysis::WayWeights;
using plan::Protocol;

uint32_t rounded(uint32_t weight, uint32_t unit) { return (weight + unit / 2) / unit; }

TEST(Weights, WithoutATopologyAreThoseOfGpusAtASwitch) {
  StepWeights gpus = weightsOf(topology::nvlinkSwitch(8), Protocol::Simple, {{0, 1}}), usual;
  // The unit: to read or write a chunk of one tile.
  const uint32_t chunk = (gpus.read + gpus.write) / 2;
  EXPECT_EQ(usual.overhead, rounded(gpus.overhead, chunk));
  EXPECT_EQ(usual.usual.latency, rounded(gpus.usual.latency, chunk));
}

TEST(Weights, AreOfTheTopologysConstants) {
  topology::Topology machine;
  machine.costs.instruction = 500 * topology::kNanosecond;
  machine.costs.slices = 2;
  machine.costs.tileBytes = 1000;
  machine.costs.read = 10 * topology::kGigabyte; // 100 ns for a tile
  machine.costs.write = 5 * topology::kGigabyte; // 200
  machine.costs.push = 2 * topology::kGigabyte;  // 500
  machine.costs.pull = 1 * topology::kGigabyte;  // 1000
  machine.costs.protocols[1] = {300 * topology::kNanosecond, 2000};
  machine.addNode(2);
  machine.addLink({0, 1, 4 * topology::kGigabyte, 50 * topology::kNanosecond});
  StepWeights pushed = weightsOf(machine, Protocol::LL, {{0, 1}});
  EXPECT_EQ(pushed.numbers(), (std::vector<uint32_t>{100, 10, 20, 20, 100, 0, 35, 50}));
  machine.costs.fetched = true;
  StepWeights fetched = weightsOf(machine, Protocol::Simple, {{0, 1}});
  EXPECT_EQ(fetched.numbers(), (std::vector<uint32_t>{100, 10, 20, 100, 20, 1, 5, 25}));
}

TEST(Weights, WaysThatAreNotLikeMostAreListed) {
  const topology::Topology machine = topology::nvlinkSwitch(2, 2);
  StepWeights weights =
      weightsOf(machine, Protocol::Simple, {{3, 2}, {2, 3}, {1, 2}, {0, 1}, {0, 1}, {1, 0}});
  // 2.2 us of the protocol, and 1 us of the switch or 3 of the NICs.
  EXPECT_EQ(weights.usual.latency, 320u);
  ASSERT_EQ(weights.ways.size(), 1u);
  EXPECT_EQ(weights.ways[0].from, 1u);
  EXPECT_EQ(weights.ways[0].to, 2u);
  EXPECT_EQ(weights.ways[0].weights.latency, 520u);
  EXPECT_GT(weights.ways[0].weights.wire, weights.usual.wire);
}

TEST(Weights, RanksWithoutAWayCountAsUsual) {
  topology::Topology machine = topology::nvlinkSwitch(2);
  machine.addNode(1);
  StepWeights weights = weightsOf(machine, Protocol::Simple, {{0, 1}, {0, 2}});
  EXPECT_TRUE(weights.ways.empty());
}

TEST(Weights, FreeOperandsCountAndEndlessOnesAreBounded) {
  topology::Topology machine;
  machine.costs.write = 1;
  StepWeights weights = weightsOf(machine, Protocol::Simple, {});
  EXPECT_EQ(weights.read, 1u);
  EXPECT_EQ(weights.write, 1u << 24);
  EXPECT_EQ(weights.usual, (WayWeights{0, 0}));
}

} // namespace
} // namespace occl::driver
