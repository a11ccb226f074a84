// What of RDMA needs no device: which ports two ranks choose, staging memory, extents of the peer.
#include "runtime/net/transport/verbs/extents.h"
#include "runtime/net/transport/verbs/port.h"
#include "runtime/net/transport/verbs/staging.h"

#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <vector>

namespace occl::net {
namespace {

PortAddress ipv4(uint8_t network, uint8_t host) {
  PortAddress address;
  address.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, network, host};
  return address;
}

PortAddress ipv6(uint8_t network, uint8_t host) {
  PortAddress address;
  address.gid = {0xfd, 0x77, 0, 0, 0, 0, 0, network, 0, 0, 0, 0, 0, 0, 0, host};
  return address;
}

PortAddress infiniband(uint8_t lid) {
  PortAddress address = ipv6(0, lid);
  address.isInfiniband = 1;
  address.lid = lid;
  return address;
}

using Ports = std::vector<PortAddress>;

/// What both ranks compute, if it is the same.
PortPair chooseOnBoth(const Ports &a, uint32_t rankOfA, const Ports &b, uint32_t rankOfB) {
  const PortPair here = choosePorts(a, rankOfA, b, rankOfB),
                 there = choosePorts(b, rankOfB, a, rankOfA);
  EXPECT_EQ(here.mine, there.theirs);
  EXPECT_EQ(here.theirs, there.mine);
  return here;
}

TEST(ChoosePorts, OnOneSubnetBeforeOthers) {
  const PortPair chosen = chooseOnBoth({ipv4(1, 1), ipv4(2, 1)}, 0, {ipv4(3, 2), ipv4(2, 2)}, 1);
  EXPECT_EQ(chosen.mine, 1);
  EXPECT_EQ(chosen.theirs, 1);
}

TEST(ChoosePorts, AcrossSubnetsIfThereIsNoneInCommon) {
  EXPECT_EQ(chooseOnBoth({ipv4(1, 1)}, 0, {ipv4(2, 1)}, 1).mine, 0);
}

TEST(ChoosePorts, NoneOfDifferentNetworks) {
  EXPECT_EQ(chooseOnBoth({ipv4(1, 1)}, 0, {infiniband(3)}, 1).mine, -1);
  EXPECT_EQ(chooseOnBoth({ipv4(1, 1)}, 0, {ipv6(1, 1)}, 1).mine, -1);
  EXPECT_EQ(chooseOnBoth({}, 0, {ipv6(1, 1)}, 1).mine, -1);
}

TEST(ChoosePorts, RanksOfAMachineUseAllItsPorts) {
  Ports here = {ipv4(1, 1), ipv6(1, 1), ipv4(1, 2), ipv6(1, 2)},
        there = {ipv4(1, 3), ipv6(1, 3), ipv4(1, 4), ipv6(1, 4)};
  for (Ports *ports : {&here, &there})
    for (uint32_t i = 0; i < 4; ++i)
      (*ports)[i].number = i / 2;
  std::set<uint32_t> mine, theirs;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const PortPair chosen = chooseOnBoth(here, rank, there, rank + 2);
    mine.insert(here[static_cast<size_t>(chosen.mine)].number);
    theirs.insert(there[static_cast<size_t>(chosen.theirs)].number);
  }
  EXPECT_EQ(mine, (std::set{0u, 1u}));
  EXPECT_EQ(theirs, (std::set{0u, 1u}));
}

/// Ranges that overlap nothing that was not freed, and a ring that is not lost by fragments.
TEST(Staging, RangesAreTheTakersUntilFreed) {
  const unsigned seed = static_cast<unsigned>(printedSeed());
  std::mt19937 random(seed);
  constexpr uint64_t kSize = 1 << 14, kMost = 5000, kSpare = 512;
  std::vector<std::byte> memory(kSize);
  Staging staging(memory);
  struct Taken {
    std::span<std::byte> range;
    uint64_t end;
    std::byte value;
  };
  std::deque<Taken> taken;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t size = 1 + random() % kMost, before = staging.position();
    const auto range = staging.take(size, random() % 2 ? kSpare : 0);
    if (range.empty()) {
      ASSERT_FALSE(taken.empty()) << "nothing is taken, and " << size << " bytes do not fit";
    } else if (random() % 4 == 0) {
      staging.takeBack(before);
    } else {
      ASSERT_EQ(range.size(), size);
      taken.push_back({range, staging.position(), std::byte(i)});
      std::ranges::fill(range, std::byte(i));
    }
    if (range.empty() || random() % 3 == 0)
      if (!taken.empty()) {
        for (std::byte found : taken.front().range)
          ASSERT_EQ(found, taken.front().value);
        staging.freeUntil(taken.front().end);
        taken.pop_front();
      }
  }
}

TEST(Staging, SpareIsLeft) {
  std::vector<std::byte> memory(4096);
  Staging staging(memory);
  EXPECT_TRUE(staging.take(4096 - 64, 128).empty());
  EXPECT_FALSE(staging.take(4096 - 128, 128).empty());
  EXPECT_TRUE(staging.take(64, 128).empty());
  EXPECT_FALSE(staging.take(128, 0).empty());
}

TEST(PeerExtents, AreFoundByEachOffsetOfTheirs) {
  PeerExtents extents;
  EXPECT_TRUE(extents.add({.offset = kExtentBytes, .bytes = 100, .region = 2, .key = 7}));
  EXPECT_EQ(extents.find(2, kExtentBytes - 1), nullptr);
  ASSERT_NE(extents.find(2, kExtentBytes), nullptr);
  EXPECT_EQ(extents.find(2, kExtentBytes)->key, 7u);
  EXPECT_NE(extents.find(2, kExtentBytes + 99), nullptr);
  EXPECT_EQ(extents.find(2, kExtentBytes + 100), nullptr);
  EXPECT_EQ(extents.find(1, kExtentBytes), nullptr);
  EXPECT_EQ(extents.find(kNumRegions, 0), nullptr);
  EXPECT_EQ(extents.find(2, ~uint64_t{0}), nullptr);
}

TEST(PeerExtents, WhatMakesNoSenseIsRefused) {
  PeerExtents extents;
  EXPECT_FALSE(extents.add({.bytes = 1, .region = kNumRegions}));
  EXPECT_FALSE(extents.add({.offset = 8, .bytes = 1}));
  EXPECT_FALSE(extents.add({.bytes = kExtentBytes + 1}));
  EXPECT_FALSE(extents.add({.offset = uint64_t{1} << 60, .bytes = 1}));
}

} // namespace
} // namespace occl::net
