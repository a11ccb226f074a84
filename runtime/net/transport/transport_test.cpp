// The transports that need nothing of a machine; over RDMA: verbs/verbs_test.cpp.
#include "runtime/net/transport/frame.h"
#include "runtime/net/transport/tcp.h"
#include "runtime/net/transport/testing/conformance.h"
#include "runtime/net/transport/testing/loop.h"
#include "runtime/net/transport/testing/silent.h"
#include "runtime/net/transport/testing/socket_pair.h"
#include "runtime/net/transport/testing/traffic.h"

#include <gtest/gtest.h>

#include <chrono>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <tuple>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

void overLoop(Side &a, Side &b) {
  std::tie(a.endpoint, b.endpoint) = makeLoop(a.regions, b.regions, 4 * kMaxPut);
}

void overTcp(Side &a, Side &b) {
  auto sockets = socketPair();
  a.endpoint = makeTcpEndpoint(std::move(sockets.first), a.regions, 30s);
  b.endpoint = makeTcpEndpoint(std::move(sockets.second), b.regions, 30s);
}

INSTANTIATE_TEST_SUITE_P(Loop, Transport, ::testing::Values(overLoop));
INSTANTIATE_TEST_SUITE_P(Tcp, Transport, ::testing::Values(overTcp));

TEST(TcpTransport, RandomPutsInBothDirectionsAreRight) {
  Side a, b;
  overTcp(a, b);
  converse(a, b, 1000);
}

TEST(TcpTransport, UnreadDataAreNotDelivered) {
  Side a, b;
  overTcp(a, b);
  const std::vector<std::byte> bytes(kMaxPut);
  while (a.endpoint->put({.bytes = bytes}) == Posted::Yes) {
  }
  EXPECT_FALSE(a.endpoint->isDelivered());
}

/// Who polls it sees all of it or nothing.
TEST(TcpTransport, AWordThatComesInPartsIsStoredAtOnce) {
  Side side;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor raw(ends[1]);
  side.endpoint = makeTcpEndpoint(Descriptor(ends[0]), side.regions, 30s);
  const FrameHeader header = {.kind = FrameHeader::kPut, .bytes = 8, .region = 1, .offset = 16};
  const uint64_t word = 0x0102030405060708;
  const auto *bytes = reinterpret_cast<const char *>(&word);
  ASSERT_EQ(send(raw.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  ASSERT_EQ(send(raw.get(), bytes, 3, 0), 3);
  for (int i = 0; i < 3; ++i)
    side.endpoint->receive(side);
  EXPECT_EQ(side.word(1, 16), 0u);
  ASSERT_EQ(send(raw.get(), bytes + 3, 5, 0), 5);
  EXPECT_TRUE(side.await([&] { return side.word(1, 16) == word; }));
}

/// Bytes that no endpoint has made.
TEST(TcpTransport, DamagedFramesEndTheConnection) {
  const auto expectDown = [](FrameHeader header) {
    Side side;
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const Descriptor raw(ends[1]);
    side.endpoint = makeTcpEndpoint(Descriptor(ends[0]), side.regions, 30s);
    ASSERT_EQ(send(raw.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
    EXPECT_TRUE(side.await([&] { return side.endpoint->isDown(); }));
  };
  expectDown({.kind = 3});
  expectDown({.kind = FrameHeader::kMessage, .bytes = kMaxMessage + 1});
  expectDown({.kind = FrameHeader::kPut, .bytes = kMaxPut + 1});
  expectDown({.kind = FrameHeader::kPut, .hasWord = 2});
  expectDown({.kind = FrameHeader::kMessage, .number = 1}); // a repeated, or a lost one
}

/// The other side must not go on as if it were heard.
TEST(TcpTransport, AnEndpointThatIsDownTakesNothingAndTellsThePeer) {
  Side side;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor raw(ends[1]);
  side.endpoint = makeTcpEndpoint(Descriptor(ends[0]), side.regions, 30s);
  EXPECT_EQ(side.endpoint->put({.hasWord = true}), Posted::Yes);
  const FrameHeader header = {.kind = 3};
  ASSERT_EQ(send(raw.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  EXPECT_TRUE(side.await([&] { return side.endpoint->isDown(); }));
  EXPECT_EQ(side.endpoint->put({.hasWord = true}), Posted::Down);
  char byte = 0;
  EXPECT_EQ(recv(raw.get(), &byte, sizeof byte, MSG_DONTWAIT), 0) << "it sees no end";
}

/// The ordinary end of a connection waits behind what is lost.
TEST(TcpTransport, APeerThatWasNotReachedLearnsOfTheEnd) {
  const auto expectEnd = [](std::chrono::milliseconds silence, bool isAbandoned) {
    auto sockets = socketPair();
    const int near = sockets.first.get(), far = sockets.second.get();
    Side a, b;
    a.endpoint = makeTcpEndpoint(std::move(sockets.first), a.regions, silence);
    b.endpoint = makeTcpEndpoint(std::move(sockets.second), b.regions, 100s);
    ASSERT_TRUE(makeUnheard(near, far));
    EXPECT_EQ(a.endpoint->put({.hasWord = true}), Posted::Yes);
    EXPECT_TRUE(b.await([&] {
      a.poll();
      a.endpoint->checkPeer();
      if (isAbandoned)
        a.endpoint->abandon();
      return b.endpoint->isDown();
    })) << isAbandoned;
    EXPECT_EQ(a.endpoint->isDown(), !isAbandoned);
  };
  expectEnd(300ms, false);
  expectEnd(100s, true);
}

/// As of a process that is stopped: its kernel answers that it has no room.
TEST(TcpTransport, DataOfAnAbandonedLinkStillReachesAPeerThatReadsLater) {
  Side a, b;
  overTcp(a, b);
  const std::vector<std::byte> bytes(kMaxPut);
  uint64_t numPuts = 0;
  while (a.endpoint->put({.bytes = bytes, .hasWord = true, .wordOffset = 8, .word = numPuts + 1}) ==
         Posted::Yes)
    ++numPuts;
  for (int i = 0; i < 30; ++i) {
    a.endpoint->checkPeer();
    std::this_thread::sleep_for(50ms);
  }
  a.endpoint->abandon();
  EXPECT_TRUE(b.await([&] {
    a.endpoint->flush();
    return b.word(0, 8) == numPuts;
  }));
}

/// The kernel repeats what was lost each second, so it gets an answer soon after the cut has
/// healed.
TEST(TcpTransport, ACutThatHealsInTimeIsNoEnd) {
  auto sockets = socketPair();
  const int raw[] = {sockets.first.get(), sockets.second.get()};
  Side a, b;
  a.endpoint = makeTcpEndpoint(std::move(sockets.first), a.regions, 5s);
  b.endpoint = makeTcpEndpoint(std::move(sockets.second), b.regions, 5s);
  int most = 0;
  socklen_t size = sizeof most;
  constexpr int kMostBetweenRepeats = 44; // TCP_RTO_MAX_MS
  if (getsockopt(raw[0], IPPROTO_TCP, kMostBetweenRepeats, &most, &size) != 0)
    GTEST_SKIP() << "this kernel's pauses double without end";
  for (const int socket : raw)
    ASSERT_TRUE(makeSilent(socket));
  EXPECT_EQ(a.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 1}), Posted::Yes);
  const auto spend = [&](std::chrono::milliseconds time) {
    for (const auto end = std::chrono::steady_clock::now() + time;
         std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(20ms)) {
      a.poll();
      a.endpoint->checkPeer();
    }
  };
  spend(3800ms); // if pauses double the kernel has repeated it after 1.5 and 3.2 s, then 6.5
  for (const int socket : raw) {
    const int anyHops = 0;
    ASSERT_EQ(setsockopt(socket, IPPROTO_IP, IP_MINTTL, &anyHops, sizeof anyHops), 0);
  }
  spend(2500ms);
  EXPECT_FALSE(a.endpoint->isDown()) << a.endpoint->whyDown();
  EXPECT_TRUE(b.await([&] { return b.word(0, 8) == 1; }));
}

} // namespace
} // namespace occl::net
