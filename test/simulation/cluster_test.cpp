// What the simulation has in the place of kernels and cables, through the runtime's own sockets.
#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/liveness.h"
#include "runtime/sync/thread.h"
#include "test/simulation/tcp_network.h"
#include "test/simulation/world.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>

namespace occl::simulation {
namespace {

using namespace std::chrono_literals;
using net::Descriptor;

constexpr uint16_t kPort = 29500;
using Words = std::array<uint64_t, 4>;

/// Two machines, of which the first listens and the second connects.
struct Two {
  World world{1};
  std::function<void(const Descriptor &)> first, second;

  std::string run(Duration most = 1000s) {
    world.add([this] {
      auto listener = net::listenOnPort(kPort);
      auto socket = net::acceptFrom(*listener, Deadline(30s));
      ASSERT_TRUE(socket.ok()) << socket.status().message();
      first(*socket);
    });
    world.add([this] {
      auto address = TcpNetwork::addressOf(0);
      address.port = kPort;
      auto socket = net::connectTo({&address, 1}, Deadline(30s));
      ASSERT_TRUE(socket.ok()) << socket.status().message();
      EXPECT_EQ(*net::addressOfPeer(*socket), address);
      second(*socket);
    });
    return world.run(most);
  }
};

TEST(Cluster, TimePassesOnlyWhenAllSleep) {
  World world(1);
  std::string order;
  for (char name : {'a', 'b'})
    world.add([&order, name] {
      const Deadline minute(60s);
      Thread other([&order, name] {
        sleepFor(name == 'a' ? 2h : 1h);
        order += name;
      });
      for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(minute.remaining(), 60s);
      other.join();
    });
  EXPECT_EQ(world.run(3h), "");
  EXPECT_EQ(order, "ba");
  EXPECT_EQ(world.sinceBegin(), 2h);
}

TEST(Cluster, AThreadThatWaitsForNothingIsNamed) {
  World world(1);
  world.add([] {});
  world.add([] {
    Mutex mutex;
    ConditionVariable never;
    std::unique_lock lock(mutex);
    never.wait(lock, [] { return false; });
  });
  EXPECT_NE(world.run(1h).find("have not ended: 1"), std::string::npos);
}

TEST(Cluster, AnAnswerTakesARoundTrip) {
  Two two;
  two.world.network().latency = 5ms;
  two.first = [](const Descriptor &socket) {
    Words words{};
    ASSERT_TRUE(net::receiveRecord(socket, words, Deadline(1s)).ok());
    ASSERT_TRUE(net::sendRecord(socket, words, Deadline(1s)).ok());
  };
  two.second = [&](const Descriptor &socket) {
    const auto begin = two.world.now();
    const Words said = {1, 2, 3, 4};
    Words heard{};
    ASSERT_TRUE(net::sendRecord(socket, said, Deadline(1s)).ok());
    ASSERT_TRUE(net::receiveRecord(socket, heard, Deadline(1s)).ok());
    EXPECT_EQ(heard, said);
    EXPECT_EQ(two.world.now() - begin, 10ms);
  };
  EXPECT_EQ(two.run(), "");
  EXPECT_EQ(two.world.network().trafficOf(0).received, 1u);
  EXPECT_EQ(two.world.network().trafficOf(0).bytesSent, sizeof(Words));
}

TEST(Cluster, AReaderThatSleepsHoldsTheWriterUp) {
  Two two;
  std::vector<std::byte> sent(3 << 20, std::byte{7}), got(sent.size());
  two.first = [&](const Descriptor &socket) {
    sleepFor(10s);
    ASSERT_TRUE(net::receiveAll(socket, got, Deadline(1s)).ok());
    EXPECT_EQ(got, sent);
  };
  two.second = [&](const Descriptor &socket) {
    ASSERT_TRUE(net::sendAll(socket, sent, Deadline(60s)).ok());
    EXPECT_GE(two.world.sinceBegin(), 10s);
  };
  EXPECT_EQ(two.run(), "");
}

TEST(Cluster, TheEndOfAProcessIsSeenAtOnceAndWhatItHadSaidBefore) {
  Two two;
  two.first = [&](const Descriptor &socket) {
    Words words{};
    ASSERT_TRUE(net::receiveRecord(socket, words, Deadline(10s)).ok());
    const Status status = net::receiveRecord(socket, words, Deadline(10s));
    EXPECT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
    EXPECT_LT(two.world.sinceBegin(), 2001ms);
  };
  two.second = [](const Descriptor &socket) {
    ASSERT_TRUE(net::sendRecord(socket, Words{}, Deadline(1s)).ok());
    sleepFor(1h);
  };
  two.world.at(2s, [&] { two.world.kill(1); });
  EXPECT_EQ(two.run(), "");
}

/// As a machine that has no power; a stopped process has a kernel that answers.
TEST(Cluster, AMachineIsGoneWhenItsKernelIsSilent) {
  for (bool isOff : {false, true}) {
    Two two;
    two.first = [&](const Descriptor &socket) {
      net::Liveness liveness(socket.get(), 3s);
      for (; two.world.sinceBegin() < 30s; sleepFor(100ms))
        if (liveness.whyGone())
          break;
      if (isOff) {
        EXPECT_GT(two.world.sinceBegin(), 5s);
        EXPECT_LT(two.world.sinceBegin(), 6200ms);
      } else {
        EXPECT_GE(two.world.sinceBegin(), 30s);
      }
    };
    two.second = [](const Descriptor &) { sleepFor(40s); };
    two.world.at(2s, [&] {
      if (isOff)
        two.world.powerOff(1);
      else
        two.world.stop(1);
    });
    two.world.at(20s, [&] { two.world.resume(1); });
    EXPECT_EQ(two.run(), "");
  }
}

TEST(Cluster, DataLostByACutPathComesLaterAndInOrder) {
  Two two;
  constexpr uint64_t kNumWords = 1000;
  two.first = [&](const Descriptor &socket) {
    for (uint64_t i = 0; i < kNumWords; ++i) {
      uint64_t word = 0;
      ASSERT_TRUE(net::receiveRecord(socket, word, Deadline(100s)).ok());
      ASSERT_EQ(word, i);
    }
    EXPECT_GE(two.world.sinceBegin(), 5s);
  };
  two.second = [&](const Descriptor &socket) {
    for (uint64_t i = 0; i < kNumWords; ++i, sleepFor(2ms))
      ASSERT_TRUE(net::sendRecord(socket, i, Deadline(100s)).ok());
    sleepFor(20s);
  };
  two.world.at(1s, [&] { two.world.network().cut(1, 0); });
  two.world.at(5s, [&] { two.world.network().heal(1, 0); });
  EXPECT_EQ(two.run(), "");
}

TEST(Cluster, NobodyAnswersBehindACutPathAndNextDoorItIsTheKernel) {
  World world(1);
  world.network().cut(1, 0); // not even that nobody listens
  world.add([] {
    for (uint32_t machine : {1, 2}) {
      auto address = TcpNetwork::addressOf(machine);
      address.port = kPort;
      const auto socket = net::beginConnect(TcpNetwork::addressOf(0), address);
      ASSERT_TRUE(socket.ok()) << socket.status().message();
      sleepFor(1s);
      const auto connected = net::isConnected(*socket);
      EXPECT_EQ(connected.ok(), machine == 1);
    }
  });
  for (int other = 0; other < 2; ++other)
    world.add([] { sleepFor(10s); });
  EXPECT_EQ(world.run(1h), "");
}

} // namespace
} // namespace occl::simulation
