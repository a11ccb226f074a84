// A ring of transfers between ranks of different islands, with all threads that take part: the
// executors at its ends, and the sending and receiving threads of both ranks.
#include "runtime/net/ring_crossing.h"

#include "runtime/control/shm/mapping.h"
#include "runtime/net/testing/side_of_two.h"
#include "runtime/net/transport/testing/loop.h"
#include "runtime/sync/thread.h"
#include "runtime/transfer/pair_ring.h"
#include "test/explore/explorer/explore.h"
#include "test/explore/small_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

namespace occl::explore {
namespace {

using namespace net;
using transfer::kLineBytes;

struct NoMessages final : Sink {
  bool message(std::span<const std::byte>) override { return false; }
};

/// Rank 0 sends to rank 1.
struct TwoRanks {
  TwoRanks() {
    Regions ofSource, ofDestination;
    ofSource[kRingHeadRegion] = {reinterpret_cast<std::byte *>(&own.head.bytes), sizeof(uint64_t)};
    ofDestination[kRingsRegion] = {mirror.begin(), sizeof mirror};
    std::tie(source, destination) = makeLoop(ofSource, ofDestination, 200);
  }

  SmallRing own, mirror, unused, unusedMirror;
  std::unique_ptr<Endpoint> source, destination;
  RingCrossing fromSource{own.ring(), own.begin(), unusedMirror.ring()};
  RingCrossing fromDestination{unused.ring(), unused.begin(), mirror.ring()};
};

constexpr uint64_t kNumber = 5;

void writeAll(const transport::PairRing &memory) {
  transfer::RingSource ring(memory);
  for (uint64_t i = 0; i < kNumber; ++i) {
    while (*ring.room() == 0)
      yieldProcessor();
    const uint64_t value = i + 1;
    ring.write(&value, sizeof value);
    if (i % 2 == 1 || i + 1 == kNumber || *ring.room() == 0) // also two at once
      ring.publish();
  }
}

TEST(RingCrossing, EachMessageReadWasWritten) {
  Settings settings;
  settings.schedules = 2000;
  settings.racesEvery = 8;
  Outcome outcome = explore(settings, [] {
    TwoRanks ranks;
    Atomic<bool> isOver{false};
    const auto untilOver = [&](const std::function<void()> &step) {
      return Thread([&isOver, step] {
        while (!isOver.load(std::memory_order_acquire)) {
          step();
          yieldProcessor();
        }
      });
    };
    NoMessages none;
    const auto send = [](RingCrossing &crossing, Endpoint &endpoint) {
      require(crossing.send(endpoint) != RingCrossing::Sent::Damaged, "damaged");
    };
    Thread threads[] = {untilOver([&] { send(ranks.fromSource, *ranks.source); }),
                        untilOver([&] { send(ranks.fromDestination, *ranks.destination); }),
                        untilOver([&] { ranks.source->receive(none); }),
                        untilOver([&] { ranks.destination->receive(none); }),
                        Thread([&] { writeAll(ranks.own.ring()); })};
    readNumbers(ranks.mirror.ring(), kNumber);
    isOver.store(true, std::memory_order_release);
    for (Thread &thread : threads)
      thread.join();
  });
  EXPECT_EQ(outcome.defect, "");
}

/// As rank 1: what has come when rank 0 says that it has left.
struct Left final : Sink {
  explicit Left(const transport::RingPosition &tail) : tail(tail) {}
  bool message(std::span<const std::byte> bytes) override {
    if (decode(bytes)->message.kind != Message::Left)
      return true;
    require(tail.bytes.load(std::memory_order_acquire) == kLineBytes, "it has left before");
    isThere = true;
    return true;
  }

  const transport::RingPosition &tail;
  bool isThere = false;
};

TEST(RingCrossing, TheLastBytesAreThereWhenTheirSenderHasLeft) {
  Settings settings;
  settings.schedules = 300;
  Outcome outcome = explore(settings, [] {
    using net::testing::SideOfTwo;
    auto memory = std::move(
        *bootstrap::Mapping::anonymous(transport::Segment::bytesFor(SideOfTwo::kArenaBytes)));
    const auto mirror =
        *transport::Segment::format(memory.get(), SideOfTwo::kSelf, SideOfTwo::kRanks);
    std::unique_ptr<Endpoint> endpoint;
    SideOfTwo side([&](const Regions &regions) {
      Regions ofPeer;
      ofPeer[kRingsRegion] = mirror.tailsAndRings();
      auto [own, peer] = makeLoop(regions, ofPeer, 1 << 20);
      endpoint = std::move(peer);
      return std::move(own);
    });
    Thread leaving([&] {
      transfer::RingSource ring(side.own.ringTo(SideOfTwo::kPeer));
      ring.write("x", 1);
      ring.publish();
      side.own.header().state.store(transport::SegmentHeader::Left, std::memory_order_release);
    });
    Left left(*mirror.ringTo(SideOfTwo::kPeer).tail);
    while (!left.isThere) {
      side.network->send();
      while (endpoint->receive(left)) {
      }
      yieldProcessor();
    }
    leaving.join();
  });
  EXPECT_EQ(outcome.defect, "");
}

} // namespace
} // namespace occl::explore
