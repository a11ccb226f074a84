#include "compiler/topology/Machines.h"

#include <gtest/gtest.h>

namespace occl::topology {
namespace {

TEST(Topology, CountsNodesAndRanks) {
  Topology topology = nvlinkSwitch(4, 3);
  EXPECT_EQ(topology.numNodes(), 3u);
  EXPECT_EQ(topology.numRanks(), 12u);
  EXPECT_EQ(topology.nodeOf(7), 1u);
  EXPECT_EQ(topology.firstRankOf(2), 8u);
  EXPECT_EQ(topology.ranksOf(2), 4u);
}

TEST(Topology, LinksComeBeforeSwitchesBeforeNics) {
  Topology topology = nvlinkSwitch(2, 2);
  auto bySwitch = topology.route(0, 1, 0), byNics = topology.route(0, 2, 0);
  ASSERT_TRUE(bySwitch && byNics);
  EXPECT_EQ(topology.resources()[bySwitch->resources[0]].name, "port of rank 0 at NVLink, out");
  EXPECT_EQ(topology.resources()[bySwitch->resources[1]].name, "port of rank 1 at NVLink, in");
  EXPECT_EQ(topology.resources()[byNics->resources[0]].name, "NIC 0 of node 0, out");
  EXPECT_EQ(topology.resources()[byNics->resources[1]].name, "NIC 0 of node 1, in");
  EXPECT_EQ(byNics->latency, 3 * kMicrosecond);
  topology.addLink({0, 2, 5 * kGigabyte, 7});
  auto direct = topology.route(0, 2, 0);
  ASSERT_TRUE(direct);
  EXPECT_EQ(direct->numResources, 1u);
  EXPECT_EQ(direct->latency, 7u);
  EXPECT_EQ(topology.bandwidth(0, 2), 5 * kGigabyte);
  EXPECT_EQ(topology.bandwidth(2, 0), 48 * kGigabyte) << "links have one direction";
}

TEST(Topology, RanksOfANodeWithLinksToEachOtherAreADirectGroup) {
  EXPECT_EQ(nvlinkSwitch(2, 3).directGroups(), (std::vector<uint32_t>{0, 0, 1, 1, 2, 2}));
  // Two pairs on a node, joined by a link in one direction only; links between nodes do not count.
  Topology topology;
  topology.addNode(4);
  topology.addNode(1);
  for (uint32_t rank : {0, 1}) {
    topology.addLink({rank, rank + 2, 1, 1});
    topology.addLink({rank + 2, rank, 1, 1});
  }
  topology.addLink({0, 1, 1, 1});
  topology.addLink({0, 4, 1, 1});
  topology.addLink({4, 0, 1, 1});
  EXPECT_EQ(topology.directGroups(), (std::vector<uint32_t>{0, 1, 0, 1, 2}));
}

TEST(Topology, ChannelsTakeTurnsOnParallelWays) {
  Topology topology;
  topology.addNode(2);
  topology.addLink({0, 1, 1, 10});
  topology.addLink({0, 1, 1, 20});
  EXPECT_EQ(topology.route(0, 1, 0)->latency, 10u);
  EXPECT_EQ(topology.route(0, 1, 1)->latency, 20u);
  EXPECT_EQ(topology.route(0, 1, 2)->latency, 10u);
  EXPECT_FALSE(topology.route(1, 0, 0));
  EXPECT_EQ(topology.bandwidth(1, 0), 0u);
}

TEST(Topology, NicsDoNotConnectRanksOfOneNode) {
  Topology topology;
  topology.addNode(2);
  topology.addNic({0, {0, 1}, 1, 1});
  EXPECT_FALSE(topology.route(0, 1, 0));
  EXPECT_EQ(topology.nicsOfRank(1), std::vector<uint32_t>{0});
  EXPECT_EQ(topology.nicsOfNode(0), std::vector<uint32_t>{0});
}

} // namespace
} // namespace occl::topology
