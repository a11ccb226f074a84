// How many ranks of as many machines meet and connect to each other: in which time, if only the
// network takes any, and what each of them sends and receives.
#include "runtime/net/rendezvous/mesh.h"
#include "runtime/net/rendezvous/rendezvous.h"
#include "runtime/sync/thread.h"
#include "support/testing/seed.h"
#include "test/simulation/tcp_network.h"
#include "test/simulation/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace occl::simulation {
namespace {

using namespace std::chrono_literals;

constexpr uint16_t kPort = 29500;

/// Ranks that meet and connect, and what became of it.
class Bootstrap {
public:
  explicit Bootstrap(uint32_t numRanks) : numRanks(numRanks), results(numRanks) {}

  std::string run() {
    for (uint32_t r = 0; r < numRanks; ++r)
      world.add([this, r] {
        results[r] = connect(r);
        last = std::max(last, world.sinceBegin());
        sleepFor(30s); // the others have what it has said
      });
    std::string defect = world.run(200s);
    for (uint32_t r = 0; r < numRanks && defect.empty(); ++r)
      if (!results[r].ok())
        defect = "rank " + std::to_string(r) + ": " + results[r].message();
    return defect;
  }

  const uint32_t numRanks;
  World world{1};
  std::vector<Status> results;
  Duration met{}, last{};

private:
  Status connect(uint32_t rank) {
    net::Meeting meeting;
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
    met = std::max(met, world.sinceBegin());
    std::vector<uint32_t> others;
    for (uint32_t r = 0; r < numRanks; ++r)
      if (r != rank)
        others.push_back(r);
    auto sockets = net::connectMesh(meeting, *joined, others, deadline);
    if (!sockets.ok())
      return sockets.status();
    for (uint32_t r : others)
      if (!(*sockets)[r].valid() ||
          net::addressOfPeer((*sockets)[r])->host != TcpNetwork::addressOf(r).host)
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

} // namespace
} // namespace occl::simulation
