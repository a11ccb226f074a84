// One endpoint over several connections: order, faults, ends, shares.
#include "runtime/net/transport/frame.h"
#include "runtime/net/transport/rail_share.h"
#include "runtime/net/transport/tcp.h"
#include "runtime/net/transport/testing/conformance.h"
#include "runtime/net/transport/testing/socket_pair.h"
#include "runtime/net/transport/testing/traffic.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <linux/tcp.h>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <random>
#include <span>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

std::string nameOf(size_t rail) { return "eth" + std::to_string(rail); }

template <size_t Count> void overRails(Side &a, Side &b) {
  std::vector<Rail> ofA, ofB;
  for (size_t r = 0; r < Count; ++r) {
    auto [first, second] = socketPair();
    ofA.push_back({std::move(first), nameOf(r)});
    ofB.push_back({std::move(second), nameOf(r)});
  }
  a.endpoint = makeTcpEndpoint(std::move(ofA), a.regions, 30s);
  b.endpoint = makeTcpEndpoint(std::move(ofB), b.regions, 30s);
}

INSTANTIATE_TEST_SUITE_P(TwoRails, Transport, ::testing::Values(overRails<2>));
INSTANTIATE_TEST_SUITE_P(FourRails, Transport, ::testing::Values(overRails<4>));
INSTANTIATE_TEST_SUITE_P(MostRails, Transport, ::testing::Values(overRails<kMostRails>));

// --- Links of which each has a mood.

/// A wire between two sockets: passes on what comes, in pieces and after pauses of its own.
class Wire {
public:
  Wire(Descriptor left, Descriptor right, unsigned seed, std::chrono::microseconds longest)
      : ends{std::move(left), std::move(right)}, random(seed), longest(longest),
        thread([this] { run(); }) {}
  ~Wire() {
    stops = true;
    thread.join();
  }
  std::atomic<uint64_t> passed{0}; // in both directions

private:
  void run() {
    std::vector<std::byte> bytes(64 << 10);
    while (!stops) {
      pollfd ready[2] = {{ends[0].get(), POLLIN, 0}, {ends[1].get(), POLLIN, 0}};
      poll(ready, 2, 1);
      for (size_t from : {0u, 1u})
        if (ready[from].revents != 0 && !pass(bytes, ends[from].get(), ends[1 - from].get()))
          return;
      if (longest > 0us && random() % 4 == 0)
        std::this_thread::sleep_for(longest * (random() % 100) / 100);
    }
  }
  bool pass(std::vector<std::byte> &bytes, int from, int to) {
    const size_t most = longest > 0us ? 1 + random() % bytes.size() : bytes.size();
    const ssize_t got = recv(from, bytes.data(), most, MSG_DONTWAIT);
    if (got == 0)
      return shutdown(to, SHUT_WR), false;
    for (ssize_t sent = 0; sent < got && !stops;) {
      pollfd room = {to, POLLOUT, 0};
      poll(&room, 1, 1);
      const ssize_t now = send(to, bytes.data() + sent, static_cast<size_t>(got - sent),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      sent += std::max<ssize_t>(now, 0);
    }
    passed += static_cast<uint64_t>(std::max<ssize_t>(got, 0));
    return true;
  }

  Descriptor ends[2];
  std::mt19937 random;
  const std::chrono::microseconds longest;
  std::atomic<bool> stops{false};
  std::thread thread;
};

using Wires = std::vector<std::unique_ptr<Wire>>;

/// A pair of which each rail has a wire with pauses of up to so long.
Wires overWires(Side &a, Side &b, const std::vector<std::chrono::microseconds> &pauses) {
  const auto seed = static_cast<unsigned>(printedSeed());
  Wires wires;
  std::vector<Rail> ofA, ofB;
  for (size_t r = 0; r < pauses.size(); ++r) {
    auto [own, left] = socketPair();
    auto [right, other] = socketPair();
    const int little = 32 << 10; // what a wire has not passed on is in the sender's queue
    setsockopt(left.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    ofA.push_back({std::move(own), nameOf(r)});
    ofB.push_back({std::move(other), nameOf(r)});
    wires.push_back(std::make_unique<Wire>(std::move(left), std::move(right),
                                           seed + static_cast<unsigned>(r), pauses[r]));
  }
  a.endpoint = makeTcpEndpoint(std::move(ofA), a.regions, 30s);
  b.endpoint = makeTcpEndpoint(std::move(ofB), b.regions, 30s);
  return wires;
}

TEST(Rails, RandomPutsAreRightWhateverEachRailDoes) {
  for (const auto &pauses :
       std::vector<std::vector<std::chrono::microseconds>>{{0us, 0us},
                                                           {300us, 300us},
                                                           {0us, 3000us},
                                                           {3000us, 0us},
                                                           {0us, 200us, 1000us, 3000us}}) {
    Side a, b;
    const Wires wires = overWires(a, b, pauses);
    converse(a, b, 300);
    a.endpoint.reset();
    b.endpoint.reset();
  }
}

/// Sends, and has the other side receive, until all is there.
void putAll(Side &a, Side &b, uint64_t numPuts, uint32_t bytesOfEach) {
  const std::vector<std::byte> bytes(bytesOfEach, std::byte{7});
  for (uint64_t i = 1; i <= numPuts;) {
    const Posted posted = a.endpoint->put(
        {.bytes = bytes, .hasWord = true, .wordOffset = kRegionBytes - 8, .word = i});
    ASSERT_NE(posted, Posted::Down) << a.endpoint->whyDown();
    i += posted == Posted::Yes;
    a.endpoint->flush();
    while (i - b.word(0, kRegionBytes - 8) > 8)
      b.endpoint->receive(b);
  }
  ASSERT_TRUE(b.await([&] {
    a.endpoint->flush();
    return b.word(0, kRegionBytes - 8) == numPuts;
  }));
}

TEST(Rails, EqualRailsGetEqualBytes) {
  for (const uint32_t bytes : {64u << 10, kMaxPut, 20u << 10}) {
    Side a, b;
    overRails<3>(a, b);
    putAll(a, b, 1000, bytes);
    uint64_t least = ~uint64_t{0}, most = 0;
    for (const int socket : a.endpoint->descriptors()) {
      tcp_info info{};
      socklen_t size = sizeof info;
      ASSERT_EQ(getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
      least = std::min<uint64_t>(least, info.tcpi_bytes_acked);
      most = std::max<uint64_t>(most, info.tcpi_bytes_acked);
    }
    EXPECT_LE(static_cast<double>(most) / static_cast<double>(least), 1.05)
        << most << " and " << least << " bytes";
  }
}

TEST(RailShare, TheFewestBytesUnlessItsQueueIsLonger) {
  RailShare share;
  const auto choose = [&](std::vector<uint64_t> backlogs) {
    const size_t rail = share.choose(backlogs);
    if (rail < backlogs.size())
      share.count(rail, 32 << 10, backlogs.size());
    return rail;
  };
  EXPECT_EQ(choose({0, 0}), 0u);
  EXPECT_EQ(choose({0, 0}), 1u);
  EXPECT_EQ(choose({0, 0}), 0u);
  EXPECT_EQ(choose({0, RailShare::kSlack}), 1u);
  EXPECT_EQ(choose({0, 0}), 0u);
  EXPECT_EQ(choose({0, RailShare::kSlack + 1}), 0u);
  EXPECT_EQ(choose({RailShare::kNoRoom, 1 << 20}), 1u);
  EXPECT_EQ(choose({RailShare::kNoRoom, RailShare::kNoRoom}), 2u);
}

TEST(RailShare, ARailThatWasPassedOverMakesUpForLittle) {
  RailShare share;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t backlogs[] = {0, 1 << 20}; // of the second
    ASSERT_EQ(share.choose(backlogs), 0u);
    share.count(0, 32 << 10, 2);
  }
  int inARow = 0;
  for (const uint64_t backlogs[] = {0, 0}; share.choose(backlogs) == 1; ++inARow)
    share.count(1, 32 << 10, 2);
  EXPECT_EQ(inARow, static_cast<int>(RailShare::kMostToMakeUp / (32 << 10)));
}

// --- Bytes that no endpoint has made.

/// An endpoint whose peer is the test itself.
struct Raw {
  Side side;
  std::vector<Descriptor> ends;

  explicit Raw(size_t count) : Raw(count, std::nullopt) {}
  /// `regions`: others than the side's.
  Raw(size_t count, const std::optional<Regions> &regions) {
    std::vector<Rail> rails;
    for (size_t r = 0; r < count; ++r) {
      auto [own, other] = socketPair();
      rails.push_back({std::move(own), nameOf(r)});
      ends.push_back(std::move(other));
    }
    side.endpoint = makeTcpEndpoint(std::move(rails), regions.value_or(side.regions), 30s);
  }
  void send(size_t rail, FrameHeader header, const std::vector<std::byte> &bytes = {}) {
    header.bytes = static_cast<uint32_t>(bytes.size());
    send(rail, std::as_bytes(std::span(&header, 1)));
    send(rail, bytes);
  }
  void send(size_t rail, std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(ends[rail].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// Receives for a while.
  void receive() {
    for (int i = 0; i < 50; ++i, std::this_thread::sleep_for(1ms))
      side.endpoint->receive(side);
  }
};

FrameHeader word(uint64_t number, uint64_t value) {
  return {.kind = FrameHeader::kPut,
          .region = 1,
          .hasWord = 1,
          .offset = 4096 * (number + 1),
          .wordOffset = 8,
          .word = value,
          .number = number};
}

TEST(Rails, ARailThatStallsGetsNoMore) {
  Raw raw(2);
  const std::vector<std::byte> bytes(64 << 10);
  std::vector<std::byte> sink(1 << 20);
  constexpr uint64_t kNumPuts = 200;
  uint64_t byTheOther = 0;
  const auto drain = [&] {
    raw.side.endpoint->flush();
    const ssize_t got = recv(raw.ends[0].get(), sink.data(), sink.size(), MSG_DONTWAIT);
    byTheOther += static_cast<uint64_t>(std::max<ssize_t>(got, 0));
    return got > 0;
  };
  for (uint64_t i = 0; i < kNumPuts; ++i) {
    ASSERT_EQ(raw.side.endpoint->put({.bytes = bytes}), Posted::Yes);
    while (drain()) {
    }
  }
  for (int idle = 0; idle < 20; std::this_thread::sleep_for(1ms))
    idle = drain() ? 0 : idle + 1;
  EXPECT_GT(byTheOther, (kNumPuts - 16) * bytes.size());
  EXPECT_LT(byTheOther, kNumPuts * bytes.size());
}

TEST(Rails, NoWordOvertakesBytesOnAnotherRail) {
  Raw raw(3);
  const std::vector<std::byte> bytes(2048, std::byte{5});
  raw.send(2, word(2, 30), bytes);
  raw.send(1, word(1, 20), bytes);
  raw.receive();
  EXPECT_EQ(raw.side.word(1, 8), 0u);
  EXPECT_EQ(raw.side.regions[1][3 * 4096], std::byte{0}) << "not before it is due";
  // The one that is due, all but its last byte.
  FrameHeader first = word(0, 10);
  first.bytes = 2048;
  first.offset = 16;
  raw.send(0, std::as_bytes(std::span(&first, 1)));
  raw.send(0, std::span(bytes).first(2047));
  raw.receive();
  EXPECT_EQ(raw.side.word(1, 8), 0u);
  raw.send(0, std::span(bytes).last(1));
  EXPECT_TRUE(raw.side.await([&] { return raw.side.word(1, 8) == 30; }));
  EXPECT_EQ(raw.side.regions[1][2 * 4096], std::byte{5});
  EXPECT_EQ(raw.side.regions[1][3 * 4096], std::byte{5});
  EXPECT_FALSE(raw.side.endpoint->isDown());
}

TEST(Rails, AFrameThatCannotComeAnyMoreEndsTheConnection) {
  Raw raw(2);
  raw.send(0, word(1, 1));
  raw.receive();
  EXPECT_FALSE(raw.side.endpoint->isDown()) << "the other one may have it";
  raw.send(1, word(2, 2));
  EXPECT_TRUE(raw.side.await([&] { return raw.side.endpoint->isDown(); }));
  EXPECT_EQ(raw.side.word(1, 8), 0u);
  EXPECT_NE(raw.side.endpoint->whyDown().find("in the place of frame 0"), std::string::npos)
      << raw.side.endpoint->whyDown();
}

TEST(Rails, ARepeatedFrameEndsTheConnection) {
  Raw raw(2);
  raw.send(0, word(0, 1));
  raw.send(1, word(1, 2));
  raw.send(1, word(1, 3));
  EXPECT_TRUE(raw.side.await([&] { return raw.side.endpoint->isDown(); }));
  EXPECT_EQ(raw.side.word(1, 8), 2u);
}

/// What a peer may write to, between memory that it may not: little takes it beyond a region, and
/// less than the guard behind it is long.
class GuardedRegions {
public:
  GuardedRegions() : memory(kNumRegions * kStride + kGuard, kPattern) {
    for (uint32_t r = 0; r < kNumRegions; ++r)
      regions[r] = std::span(memory).subspan(kGuard + r * kStride, kSizes[r]);
  }
  /// Where a byte outside of the regions has changed, counted from the one before; "" if none has.
  std::string whatIsWritten() const {
    for (size_t i = 0; i < memory.size(); ++i)
      if (const bool isGuard =
              i < kGuard || (i - kGuard) % kStride >= kSizes[(i - kGuard) / kStride];
          isGuard && memory[i] != kPattern)
        return i < kGuard ? "before region 0"
                          : "at " + std::to_string((i - kGuard) % kStride) + " of region " +
                                std::to_string((i - kGuard) / kStride);
    return "";
  }

  /// One that is not there, one shorter than a word, and others.
  static constexpr size_t kSizes[kNumRegions] = {8192, 0, 4, 4096, 1000};
  static constexpr size_t kGuard = 4096, kStride = 8192 + kGuard;
  Regions regions;

private:
  static constexpr std::byte kPattern{0xa5};
  std::vector<std::byte> memory;
};

/// Near an end of a region, in it, or anywhere.
uint64_t randomOffset(std::mt19937 &random, uint64_t size) {
  switch (random() % 4) {
  case 0:
    return size + random() % 64 - 32; // may wrap
  case 1:
    return (uint64_t{random()} << 32 | random()) - random() % 4096;
  case 2:
    return size;
  default:
    return size == 0 ? 0 : random() % size & ~uint64_t{7};
  }
}

/// Mostly right, so that what is wrong comes after something that was right.
FrameHeader randomFrame(std::mt19937 &random, uint64_t &number) {
  const auto rarely = [&](uint32_t otherwise, uint32_t most) {
    return random() % 32 == 0 ? random() % most : otherwise;
  };
  FrameHeader header;
  header.kind = rarely(random() % 4 == 0 ? FrameHeader::kMessage : FrameHeader::kPut, 4);
  constexpr uint32_t kMostlyLarge[] = {0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 4, 4, 2, 1};
  header.region = rarely(kMostlyLarge[random() % std::size(kMostlyLarge)], 2 * kNumRegions);
  header.hasWord = header.kind == FrameHeader::kPut ? rarely(random() % 2, 3) : 0;
  header.word = ~uint64_t{random()}; // more than what is there, or it is not stored
  header.number = number + rarely(0, 4);
  header.bytes = random() % 4 == 0 ? 0 : static_cast<uint32_t>(random() % 3000);
  const uint64_t size = GuardedRegions::kSizes[header.region % kNumRegions];
  const bool isOffsetWild = random() % 16 == 0, isWordWild = random() % 16 == 0;
  header.offset = isOffsetWild ? randomOffset(random, size) : random() % 1000 % (size + 1);
  header.wordOffset = random() % 125 * sizeof(uint64_t);
  if (isWordWild)
    header.wordOffset = randomOffset(random, size) & ~uint64_t{random() % 4 == 0 ? 0u : 7u};
  number = header.number + 1;
  return header;
}

/// Frames on random rails, until one cannot be sent any more.
void sendRandomFrames(std::mt19937 &random, Raw &raw) {
  uint64_t number = 0;
  for (int i = 0; i < 60; ++i) {
    const FrameHeader header = randomFrame(random, number);
    const std::vector<std::byte> bytes(random() % 16 == 0 ? random() % 3000 : header.bytes);
    const size_t rail = random() % raw.ends.size();
    if (::send(raw.ends[rail].get(), &header, sizeof header, MSG_NOSIGNAL) < 0 ||
        ::send(raw.ends[rail].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0)
      return;
    raw.side.endpoint->receive(raw.side);
  }
}

/// Whatever comes on however many rails, nothing outside of the regions is written, and what is
/// wrong ends the connection.
TEST(Rails, RandomFramesDoNoHarm) {
  std::mt19937 random(static_cast<unsigned>(printedSeed()));
  for (int round = 0; round < 400; ++round) {
    GuardedRegions guarded;
    Raw raw(1 + random() % kMostRails, guarded.regions);
    sendRandomFrames(random, raw);
    raw.ends.clear();
    ASSERT_TRUE(raw.side.await([&] { return raw.side.endpoint->isDown(); }));
    ASSERT_EQ(guarded.whatIsWritten(), "") << "round " << round;
  }
}

// --- Ends.

TEST(Rails, TheEndOfOneIsNotBelievedBeforeTheOthersAreRead) {
  Raw raw(2);
  const std::vector<std::byte> bytes(kMaxPut, std::byte{1});
  raw.ends[0] = Descriptor();
  raw.receive();
  EXPECT_FALSE(raw.side.endpoint->isDown());
  raw.send(1, word(0, 7), bytes);
  raw.ends[1] = Descriptor();
  EXPECT_TRUE(raw.side.await([&] { return raw.side.endpoint->isDown(); }));
  EXPECT_EQ(raw.side.word(1, 8), 7u);
}

TEST(Rails, OneThatThePeerClosesEndsThePairAndIsNotBlamed) {
  Raw raw(3);
  raw.ends[1] = Descriptor();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(raw.side.await([&] { return raw.side.endpoint->isDown(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(raw.side.endpoint->whyDown(), "closed by the peer");
  // The others learn of it.
  char byte = 0;
  for (size_t r : {0u, 2u})
    EXPECT_EQ(recv(raw.ends[r].get(), &byte, 1, 0), 0);
}

TEST(Rails, OneThatIsResetIsNamed) {
  Raw raw(3);
  const linger atOnce = {.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(raw.ends[1].get(), SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce), 0);
  raw.ends[1] = Descriptor();
  EXPECT_TRUE(raw.side.await([&] { return raw.side.endpoint->isDown(); }));
  EXPECT_TRUE(raw.side.endpoint->whyDown().starts_with("by eth1: reset by the peer"))
      << raw.side.endpoint->whyDown();
}

TEST(Rails, DataDueOnARailThatHasEndedNeverCome) {
  Raw raw(2);
  raw.send(1, word(1, 1));
  raw.ends[0] = Descriptor();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(raw.side.await([&] { return raw.side.endpoint->isDown(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 900ms);
  EXPECT_EQ(raw.side.word(1, 8), 0u);
}

TEST(Rails, NothingIsDeliveredWhileARailHasSomething) {
  Raw raw(2);
  const std::vector<std::byte> bytes(kMaxPut);
  while (raw.side.endpoint->put({.bytes = bytes}) == Posted::Yes) {
  }
  EXPECT_FALSE(raw.side.endpoint->isDelivered());
  const auto drain = [&](size_t rail) {
    std::vector<char> sink(1 << 20);
    for (int idle = 0; idle < 20;) {
      raw.side.endpoint->flush();
      idle = recv(raw.ends[rail].get(), sink.data(), sink.size(), MSG_DONTWAIT) > 0 ? 0 : idle + 1;
      std::this_thread::sleep_for(idle == 0 ? 0ms : 5ms);
    }
  };
  drain(0);
  EXPECT_FALSE(raw.side.endpoint->isDelivered());
  drain(1);
  EXPECT_TRUE(raw.side.endpoint->isDelivered());
}

} // namespace
} // namespace occl::net
