// What of RDMA needs no device: which ports two ranks choose, staging memory, extents of the peer.
#include "runtime/net/transport/verbs/extents.h"
#include "runtime/net/transport/verbs/port.h"
#include "runtime/net/transport/verbs/staging.h"
#include "runtime/net/transport/verbs/wire.h"

#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
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

TEST(ChoosePorts, OnOneSubnetBeforeOthers) {
  const PortPair chosen =
      choosePorts(Ports{ipv4(1, 1), ipv4(2, 1)}, 0, Ports{ipv4(3, 2), ipv4(2, 2)}, 0);
  EXPECT_EQ(chosen.first, 1);
  EXPECT_EQ(chosen.second, 1);
}

TEST(ChoosePorts, AcrossSubnetsIfThereIsNoneInCommon) {
  EXPECT_EQ(choosePorts(Ports{ipv4(1, 1)}, 0, Ports{ipv4(2, 1)}, 1).first, 0);
}

TEST(ChoosePorts, NoneOfDifferentNetworks) {
  EXPECT_EQ(choosePorts(Ports{ipv4(1, 1)}, 0, Ports{infiniband(3)}, 1).first, -1);
  EXPECT_EQ(choosePorts(Ports{ipv4(1, 1)}, 0, Ports{ipv6(1, 1)}, 1).first, -1);
  EXPECT_EQ(choosePorts({}, 0, Ports{ipv6(1, 1)}, 1).first, -1);
}

TEST(ChoosePorts, RanksOfAMachineUseAllItsPorts) {
  Ports here = {ipv4(1, 1), ipv6(1, 1), ipv4(1, 2), ipv6(1, 2)},
        there = {ipv4(1, 3), ipv6(1, 3), ipv4(1, 4), ipv6(1, 4)};
  for (Ports *ports : {&here, &there})
    for (uint32_t i = 0; i < 4; ++i)
      (*ports)[i].number = i / 2;
  for (uint32_t turnHere = 0; turnHere < 4; ++turnHere)
    for (uint32_t turnThere = 0; turnThere < 4; ++turnThere) {
      const PortPair chosen = choosePorts(here, turnHere, there, turnThere);
      EXPECT_EQ(here[static_cast<size_t>(chosen.first)].number, turnHere % 2);
      EXPECT_EQ(there[static_cast<size_t>(chosen.second)].number, turnThere % 2);
    }
}

/// Numbers come from the peer.
TEST(ChoosePorts, AnyNumbersAreTaken) {
  Ports odd = {ipv4(1, 1), ipv4(1, 2)};
  odd.back().number = ~uint32_t{0};
  EXPECT_GE(choosePorts(odd, 3, Ports{ipv4(1, 3)}, 1).first, 0);
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

class OfPeer : public ::testing::Test {
protected:
  OfPeer() : memory(kExtentBytes + 100), extents(regionsOf(memory)) {}
  static Regions regionsOf(std::vector<std::byte> &memory) {
    Regions regions;
    regions[2] = memory;
    return regions;
  }

  std::vector<std::byte> memory;
  PeerExtents extents;
};

TEST_F(OfPeer, ExtentsAreFoundByEachOffsetOfTheirs) {
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

TEST_F(OfPeer, ExtentsThatMakeNoSenseAreRefused) {
  EXPECT_FALSE(extents.add({.bytes = 1, .region = kNumRegions}));
  EXPECT_FALSE(extents.add({.offset = 8, .bytes = 1, .region = 2}));
  EXPECT_FALSE(extents.add({.bytes = kExtentBytes + 1, .region = 2}));
  EXPECT_FALSE(extents.add({.offset = 2 * kExtentBytes, .bytes = 1, .region = 2}));
  EXPECT_FALSE(extents.add({.bytes = 1, .region = 1})) << "which is empty";
}

TEST(VerbsHead, OnlyTheBytesOfAPutMayBeElsewhere) {
  VerbsHead head;
  head.frame.bytes = 24;
  head.isPlaced = 1;
  head.frame.kind = FrameHeader::kPut;
  EXPECT_EQ(bytesBehind(head), 0u);
  head.frame.kind = FrameHeader::kMessage;
  EXPECT_EQ(bytesBehind(head), 24u) << "what is in the buffer else is of an earlier request";
  head.isPlaced = 0;
  head.frame.kind = FrameHeader::kPut;
  EXPECT_EQ(bytesBehind(head), 24u);
  head.frame.kind = 0;
  head.numExtents = 2;
  EXPECT_EQ(bytesBehind(head), 2 * sizeof(VerbsExtent));
}

TEST(PlacesToCopy, OverlapUntilTheirFrameIsConsumed) {
  PlacesToCopy places;
  places.add(5, 1, 100, 50);
  places.add(6, 1, 1000, 8);
  EXPECT_TRUE(places.overlap(1, 0, 101));
  EXPECT_TRUE(places.overlap(1, 149, 1));
  EXPECT_TRUE(places.overlap(1, 0, 4096));
  EXPECT_FALSE(places.overlap(1, 0, 100));
  EXPECT_FALSE(places.overlap(1, 150, 100));
  EXPECT_FALSE(places.overlap(2, 100, 50));
  places.consumed(6);
  EXPECT_FALSE(places.overlap(1, 100, 50));
  EXPECT_TRUE(places.overlap(1, 1000, 8));
}

} // namespace
} // namespace occl::net
