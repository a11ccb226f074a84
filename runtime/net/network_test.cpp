// What a damaged peer sends ends the connection, with the reason, and touches nothing else.
#include "runtime/net/network.h"

#include "runtime/net/testing/side_of_two.h"
#include "runtime/net/transport/loop.h"
#include "runtime/sync/atomic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace occl::net {
namespace {

using testing::SideOfTwo;

constexpr uint64_t kArenaBytes = SideOfTwo::kArenaBytes, kId = SideOfTwo::kId;

class DamagedPeer : public ::testing::Test {
protected:
  DamagedPeer()
      : side([this](const Regions &regions) {
          auto [own, peer] = makeLoop(regions, {}, 1 << 20);
          endpoint = std::move(peer);
          return std::move(own);
        }) {}

  /// Rank 0 gets it, and does what it has to do then. Whether the connection is still up.
  bool tell(const Message &message, std::string_view text = {}) {
    EXPECT_EQ(endpoint->send(encode(message, text)), Posted::Yes);
    return serve();
  }
  bool serve() {
    while (side.network->receive(0))
      ;
    side.network->send();
    return side.network->isUp(SideOfTwo::kPeer);
  }
  /// As if rank 0 had received something of each flow, wherever the block of rank 1 is.
  void setHeads() {
    auto *heads = reinterpret_cast<uint64_t *>(side.mirror.sharedArena());
    std::fill(heads, heads + (kArenaBytes + 4096) / sizeof *heads, 1);
  }
  /// Whether rank 0 has put anything: rank 1 has no memory for it here.
  bool hasPut() {
    struct Nobody final : Sink {
      bool message(std::span<const std::byte>) override { return true; }
    } nobody;
    while (endpoint->receive(nobody))
      ;
    return endpoint->isDown();
  }

  std::unique_ptr<Endpoint> endpoint; // rank 1's
  SideOfTwo side;
};

TEST_F(DamagedPeer, WhatIsRightIsTaken) {
  const uint64_t last = kArenaBytes - side.binding->arenaBytes(SideOfTwo::kPeer);
  EXPECT_TRUE(tell(side.published(last / 128 * 128)));
  EXPECT_TRUE(tell({.kind = Message::Finished, .id = kId, .ordinal = 1}));
  EXPECT_EQ(side.numMismatches, 0u);
}

TEST_F(DamagedPeer, ABlockOutsideOfTheArenaIsRefused) {
  EXPECT_FALSE(tell(side.published(kArenaBytes)));
  EXPECT_NE(side.network->describeDown(SideOfTwo::kPeer).find("makes no sense"), std::string::npos)
      << side.network->describeDown(SideOfTwo::kPeer);
}

TEST_F(DamagedPeer, ABlockThatIsNotAlignedIsRefused) { EXPECT_FALSE(tell(side.published(64))); }

TEST_F(DamagedPeer, SizesThatWrapAroundAreRefused) {
  Message message = side.published(128);
  message.controlBytes = ~uint64_t{0} - 64;
  EXPECT_FALSE(tell(message));
}

TEST_F(DamagedPeer, HeadsBeyondTheArenaAreRefused) {
  Message message = side.published(0);
  message.headBytes = kArenaBytes + 1;
  EXPECT_FALSE(tell(message));
}

TEST_F(DamagedPeer, HeadsOfABlockThatIsThereAreSent) {
  EXPECT_TRUE(tell(side.published(0)));
  setHeads();
  EXPECT_TRUE(serve());
  EXPECT_TRUE(hasPut());
}

/// With these sizes it seems to fit; what the plan says of it lies behind the arena.
TEST_F(DamagedPeer, ABlockThatDoesNotFitByThePlanIsNotAccessed) {
  setHeads();
  Message message = side.published(kArenaBytes - 128);
  message.controlBytes = message.headBytes = 0;
  EXPECT_TRUE(tell(message)); // binding it is an error of the invocation
  EXPECT_FALSE(hasPut());
}

/// Before anything of it is written over that was not sent yet.
TEST_F(DamagedPeer, AHeadOfTransfersThatWereNotSentIsNamed) {
  Put put;
  put.region = kRingHeadRegion;
  put.hasWord = true;
  put.word = 64;
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_TRUE(serve());
  EXPECT_EQ(side.failure.code(), StatusCode::InternalError);
  EXPECT_NE(side.failure.message().find("rank 1 says that it has read transfers that rank 0"),
            std::string::npos)
      << side.failure.message();
}

TEST_F(DamagedPeer, HeadsOfOtherPairsAreNotItsOwn) {
  Put put;
  put.region = kRingHeadRegion;
  put.hasWord = true;
  put.wordOffset = sizeof(transport::RingPosition);
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_FALSE(serve());
}

TEST_F(DamagedPeer, RingsEndWhereTheyDo) {
  const std::byte bytes[128] = {};
  Put put;
  put.region = kRingsRegion;
  put.offset = side.mirror.tailsAndRings().size() - 64;
  put.bytes = std::span(bytes).first(64);
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_TRUE(serve());
  put.bytes = bytes;
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_FALSE(serve());
}

TEST_F(DamagedPeer, AnUnknownCodeOrKindEndsTheConnection) {
  EXPECT_FALSE(tell({.kind = Message::Failed, .code = 1000}, "because"));
  EXPECT_TRUE(side.failure.ok());
}

TEST_F(DamagedPeer, AFailureIsToldOnce) {
  EXPECT_TRUE(tell({.kind = Message::Failed, .code = static_cast<uint32_t>(StatusCode::Aborted)},
                   "because"));
  EXPECT_EQ(side.failure.message(), "because");
  EXPECT_TRUE(tell({.kind = Message::Failed, .code = static_cast<uint32_t>(StatusCode::Timeout)},
                   "another"));
  EXPECT_EQ(side.failure.message(), "because");
}

TEST_F(DamagedPeer, MoreIdsThanThereArePlacesEndTheConnection) {
  bool isUp = true;
  uint64_t id = 0;
  for (; isUp && id < 2 * transport::Segment::kCells; ++id) {
    Message message = side.published(0);
    message.id = 1000 + id;
    isUp = tell(message);
  }
  EXPECT_FALSE(isUp);
  EXPECT_GE(id, transport::Segment::kCells / 2);
}

TEST_F(DamagedPeer, OtherTraitsAreTold) {
  Message message = side.published(0);
  message.count = 3;
  EXPECT_TRUE(tell(message));
  EXPECT_EQ(side.numMismatches, 1u);
}

} // namespace
} // namespace occl::net
