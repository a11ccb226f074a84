// How many ranks of as many machines meet and connect to each other: in which time, if only the
// network takes any, and what each of them sends and receives. And how soon the others know of one
// that ends meanwhile.
#include "runtime/net/rendezvous/mesh.h"
#include "runtime/net/rendezvous/rendezvous.h"
#include "runtime/sync/thread.h"
#include "support/testing/seed.h"
#include "test/simulation/tcp_network.h"
#include "test/simulation/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace occl::simulation {
namespace {

using namespace std::chrono_literals;

constexpr uint16_t kPort = 29500;
constexpr uint32_t kNumRanks = 9; // of those of which some are lost

/// Ranks that meet and connect, and what became of it.
class Bootstrap {
public:
  explicit Bootstrap(uint32_t numRanks) : numRanks(numRanks), results(numRanks) {}

  void start() {
    for (uint32_t r = 0; r < numRanks; ++r)
      world.add([this, r] {
        Connections own;
        results[r] = connect(r, own);
        if (!results[r].ok())
          own = {};
        last = std::max(last, world.sinceBegin());
        sleepFor(30s); // the others have what it has said
      });
  }
  std::string run() {
    start();
    std::string defect = world.run(200s);
    for (uint32_t r = 0; r < numRanks && defect.empty(); ++r)
      if (!results[r].ok())
        defect = "rank " + std::to_string(r) + ": " + results[r].message();
    return defect;
  }

  /// Whose process is killed at which point, before it goes on; the last rank may come late.
  enum class Point : uint8_t { None, Met };
  Point point = Point::None;
  uint32_t victim = 0;
  Duration lastComesLate{};
  std::function<bool(uint32_t)> isGone;

  const uint32_t numRanks;
  World world{1};
  std::vector<Status> results;
  Duration met{}, last{};

private:
  void dieAt(uint32_t rank, Point here) {
    if (rank != victim || point != here)
      return;
    world.at(world.sinceBegin(), [this] { world.kill(victim); });
    sleepFor(100s);
  }

  struct Connections {
    net::Met met;
    std::vector<net::Descriptor> sockets;
  };

  Status connect(uint32_t rank, Connections &own) {
    if (rank == numRanks - 1)
      sleepFor(lastComesLate);
    net::Meeting meeting;
    meeting.isGone = isGone;
    meeting.isListening = isGone != nullptr; // as in a division
    meeting.rank = rank;
    meeting.numRanks = numRanks;
    meeting.root = {TcpNetwork::addressOf(0)};
    meeting.root.front().port = kPort;
    meeting.rootName = meeting.root.front().text();
    meeting.secret = "sixteen characters, or more";
    net::Card card;
    card.host.back() = static_cast<std::byte>(rank);
    const Deadline deadline(30s);
    auto joined = net::meet(meeting, card, deadline);
    if (!joined.ok())
      return joined.status();
    own.met = std::move(*joined);
    met = std::max(met, world.sinceBegin());
    dieAt(rank, Point::Met);
    std::vector<uint32_t> others;
    for (uint32_t r = 0; r < numRanks; ++r)
      if (r != rank)
        others.push_back(r);
    auto sockets = net::connectMesh(meeting, own.met, others, deadline);
    if (!sockets.ok())
      return sockets.status();
    own.sockets = std::move(*sockets);
    for (uint32_t r : others)
      if (!own.sockets[r].valid() ||
          net::addressOfPeer(own.sockets[r])->host != TcpNetwork::addressOf(r).host)
        return {StatusCode::InternalError, "the connection to rank " + std::to_string(r)};
    return {};
  }
};

double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

/// With round trips of 50 us, all of them at the same time.
TEST(Bootstrap, AllRanksAreConnectedWithinASecond) {
  const auto numRanks = static_cast<uint32_t>(numberFrom("OCCL_TEST_RANKS", 192));
  Bootstrap bootstrap(numRanks);
  ASSERT_EQ(bootstrap.run(), "");
  EXPECT_LT(bootstrap.last, 1s);
  uint64_t mostReceived = 0, mostBytes = 0;
  for (uint32_t r = 1; r < numRanks; ++r) {
    const Traffic &traffic = bootstrap.world.network().trafficOf(r);
    mostReceived = std::max(mostReceived, traffic.received);
    mostBytes = std::max(mostBytes, traffic.bytesReceived + traffic.bytesSent);
  }
  const Traffic &root = bootstrap.world.network().trafficOf(0);
  std::cout << numRanks << " ranks: have met after " << seconds(bootstrap.met)
            << " s, are connected after " << seconds(bootstrap.last) << " s; the root has received "
            << root.received << " messages, the others at most " << mostReceived << "; a rank "
            << mostBytes << " bytes both ways\n";
  // There is no tree: the root hears each rank, and each rank each other one.
  constexpr uint64_t kHeardOfGuest = 2, kHeardOfHost = 2; // hello and proof; challenge and answer
  constexpr uint64_t kHandshakeBytes = 392, kCardBytes = 80, kVerdictBytes = 512;
  const uint64_t others = numRanks - 1;
  EXPECT_EQ(root.received, others * (kHeardOfGuest + 1 + kHeardOfHost));
  EXPECT_LE(mostReceived, others * kHeardOfHost + kHeardOfHost + 2);
  EXPECT_LE(mostBytes,
            (others + 1) * kHandshakeBytes + kVerdictBytes + (numRanks + 1) * kCardBytes);
}

/// All but the victim fail at once, and some of them name it.
void expectLossIsKnown(Bootstrap &bootstrap, uint32_t victim, uint32_t numConcerned) {
  const std::string defect = bootstrap.world.run(200s);
  uint32_t numNamed = 0;
  for (uint32_t r = 0; r < numConcerned; ++r) {
    const Status &result = bootstrap.results[r];
    if (r == victim)
      continue;
    EXPECT_EQ(result.code(), StatusCode::PeerFailed) << "rank " << r << ": " << result.message();
    numNamed += result.message().find("rank " + std::to_string(victim)) != std::string::npos;
  }
  EXPECT_EQ(defect, "");
  EXPECT_GT(numNamed, 0u);
}

class Loss : public ::testing::TestWithParam<uint32_t> {};

/// Whoever waits for it, or for one that does, has no word from it any more.
TEST_P(Loss, OfARankThatHasMetIsKnownToAllWithinASecond) {
  Bootstrap bootstrap(kNumRanks);
  bootstrap.victim = GetParam();
  bootstrap.point = Bootstrap::Point::Met;
  bootstrap.start();
  expectLossIsKnown(bootstrap, GetParam(), kNumRanks);
  EXPECT_LT(bootstrap.last, 1s);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Loss, ::testing::Values(0, 1, 4, kNumRanks - 1));

/// While another rank is waited for.
TEST(Bootstrap, ARankThatHasComeAndEndsIsNotWaitedFor) {
  Bootstrap bootstrap(kNumRanks);
  bootstrap.lastComesLate = 40s;
  bootstrap.world.at(1s, [&] { bootstrap.world.kill(3); });
  bootstrap.start();
  expectLossIsKnown(bootstrap, 3, kNumRanks - 1);
}

/// As the communicator that is divided knows.
TEST(Bootstrap, ARankThatIsKnownToBeGoneIsNotWaitedFor) {
  Bootstrap bootstrap(kNumRanks);
  bootstrap.lastComesLate = 40s;
  bootstrap.isGone = [](uint32_t rank) { return rank == kNumRanks - 1; };
  bootstrap.start();
  expectLossIsKnown(bootstrap, kNumRanks - 1, kNumRanks - 1);
}

/// Rank 0 is named by those that look for it.
TEST(Bootstrap, WithoutRankZeroNobodyWaits) {
  Bootstrap bootstrap(kNumRanks);
  bootstrap.isGone = [](uint32_t rank) { return rank == 0; };
  bootstrap.world.at(0s, [&] { bootstrap.world.kill(0); });
  bootstrap.start();
  expectLossIsKnown(bootstrap, 0, kNumRanks);
  EXPECT_LT(bootstrap.last, 1s);
}

} // namespace
} // namespace occl::simulation
