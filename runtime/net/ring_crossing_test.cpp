// Rings of transfers between two ranks of different islands, step by step in random orders: what
// comes is what was written, however the connection holds it up.
#include "runtime/net/ring_crossing.h"

#include "runtime/control/shm/mapping.h"
#include "runtime/net/network.h"
#include "runtime/net/transport/testing/loop.h"
#include "runtime/transfer/pair_ring.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using bootstrap::Mapping;
using transfer::kLineBytes;
using transport::Segment;

constexpr uint32_t kRanks = 2;
constexpr uint64_t kArenaBytes = 4096;

/// Of what a rank sends, at a position.
std::byte byteAt(uint32_t rank, uint64_t position) {
  return static_cast<std::byte>((position * 2654435761 + position / 8192 + rank) >> 7);
}

struct Member final : Sink {
  explicit Member(uint32_t rank)
      : rank(rank), ownMemory(std::move(*Mapping::anonymous(Segment::bytesFor(kArenaBytes)))),
        mirrorMemory(std::move(*Mapping::anonymous(Segment::bytesFor(kArenaBytes)))),
        own(*Segment::format(ownMemory.get(), rank, kRanks)),
        mirror(*Segment::format(mirrorMemory.get(), 1 - rank, kRanks)),
        source(own.ringTo(1 - rank)), sink(mirror.ringTo(rank)),
        crossing(own.ringTo(1 - rank), own.tailsAndRings().data(), mirror.ringTo(rank)) {}

  Regions regions() { return regionsFor(mirror, ownMemory.get().data(), 1 - rank); }
  bool message(std::span<const std::byte>) override { return false; }

  void write(uint64_t lines) {
    std::vector<std::byte> bytes(std::min(lines * kLineBytes, *source.room()));
    for (std::byte &byte : bytes)
      byte = byteAt(rank, numWritten++);
    source.write(bytes.data(), bytes.size());
    source.publish();
  }
  void send() { wasFull |= crossing.send(*endpoint) == RingCrossing::Sent::Full; }
  /// Whether it was what the other has written; no more than it says has come.
  bool read(uint64_t lines) {
    std::vector<std::byte> bytes(std::min(lines * kLineBytes, *sink.available()));
    sink.look(bytes.data(), bytes.size());
    sink.skip(bytes.size());
    sink.release();
    return std::ranges::all_of(bytes,
                               [&](std::byte got) { return got == byteAt(1 - rank, numRead++); });
  }

  const uint32_t rank;
  Mapping ownMemory, mirrorMemory;
  Segment own, mirror;
  transfer::RingSource source;
  transfer::RingSink sink;
  RingCrossing crossing;
  std::unique_ptr<Endpoint> endpoint;
  uint64_t numWritten = 0, numRead = 0;
  bool wasFull = false;
};

class Rings : public ::testing::Test {
protected:
  /// Holds one piece of a ring, and not a second one.
  Rings() {
    std::tie(members[0].endpoint, members[1].endpoint) =
        makeLoop(members[0].regions(), members[1].regions(), 100000);
  }

  Member members[kRanks] = {Member(0), Member(1)};
};

TEST_F(Rings, DataArriveAsTheyWereWritten) {
  std::mt19937_64 random(printedSeed());
  constexpr uint64_t kBytes = 6 << 20; // both go around their rings many times
  const auto isThere = [](const Member &member) { return member.numRead >= kBytes; };
  for (uint64_t step = 0; !std::ranges::all_of(members, isThere); ++step) {
    ASSERT_LT(step, 1000000u) << "nothing moves";
    Member &member = members[random() % kRanks];
    const uint64_t lines = random() % (random() % 2 == 0 ? 3000 : 3);
    switch (random() % 4) {
    case 0:
      member.write(lines);
      break;
    case 1:
      member.send();
      break;
    case 2:
      member.endpoint->receive(member);
      break;
    default:
      ASSERT_TRUE(member.read(lines)) << "of rank " << 1 - member.rank;
    }
    ASSERT_FALSE(member.endpoint->isDown()) << member.endpoint->whyDown();
  }
  EXPECT_TRUE(members[0].wasFull && members[1].wasFull);
}

/// The room that a source has comes back with the heads alone.
TEST_F(Rings, AFullRingWaitsForItsHead) {
  const uint64_t size = members[0].own.ringTo(1).size;
  const auto exchange = [&] {
    for (uint32_t i = 0; i < 20; ++i)
      for (Member &member : members) {
        member.send();
        while (member.endpoint->receive(member)) {
        }
      }
  };
  members[0].write(size / kLineBytes);
  exchange();
  EXPECT_EQ(*members[0].source.room(), 0u);
  ASSERT_TRUE(members[1].read(3));
  EXPECT_EQ(*members[0].source.room(), 0u);
  exchange();
  EXPECT_EQ(*members[0].source.room(), 3 * kLineBytes);
  ASSERT_TRUE(members[1].read(size));
  exchange();
  EXPECT_EQ(*members[0].source.room(), size);
  EXPECT_EQ(members[1].numRead, size);
}

TEST_F(Rings, AHeadBeyondWhatWasSentIsDamage) {
  members[0].write(2);
  auto &head = members[0].own.ringTo(1).head->bytes;
  head.store(kLineBytes, std::memory_order_release);
  EXPECT_EQ(members[0].crossing.send(*members[0].endpoint), RingCrossing::Sent::Damaged);
  head.store(0, std::memory_order_release);
  EXPECT_EQ(members[0].crossing.send(*members[0].endpoint), RingCrossing::Sent::All);
  head.store(2 * kLineBytes, std::memory_order_release);
  EXPECT_EQ(members[0].crossing.send(*members[0].endpoint), RingCrossing::Sent::All);
}

/// Data for a rank that is gone has been sent.
TEST_F(Rings, NothingWaitsForAConnectionThatIsDown) {
  members[1].endpoint.reset();
  members[0].write(5000);
  EXPECT_EQ(members[0].crossing.send(*members[0].endpoint), RingCrossing::Sent::All);
}

} // namespace
} // namespace occl::net
