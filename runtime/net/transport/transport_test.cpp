// What every transport must do, tried on each.
#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/frame.h"
#include "runtime/net/transport/loop.h"
#include "runtime/net/transport/tcp.h"
#include "runtime/net/transport/transport.h"

#include "runtime/sync/atomic.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kRegionBytes = 1 << 20;

struct Side final : Sink {
  std::vector<uint64_t> memory[kNumRegions];
  Regions regions;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::string> messages;
  std::string refused; // a message that makes no sense to it

  Side() {
    for (uint32_t r = 0; r < kNumRegions; ++r) {
      memory[r].resize(kRegionBytes / sizeof(uint64_t));
      regions[r] = std::as_writable_bytes(std::span(memory[r]));
    }
  }
  bool message(std::span<const std::byte> bytes) override {
    messages.emplace_back(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return messages.back() != refused;
  }
  uint64_t word(uint32_t region, uint64_t offset) const {
    return loadShared(&memory[region][offset / sizeof(uint64_t)], std::memory_order_acquire);
  }
  /// Receives until `there()`, a while at most.
  template <class There> bool await(There there) {
    for (auto end = std::chrono::steady_clock::now() + 10s;
         !there() && std::chrono::steady_clock::now() < end;) {
      if (!endpoint->receive(*this))
        std::this_thread::sleep_for(50us);
    }
    return there();
  }
};

std::span<const std::byte> bytesOf(const std::string &text) {
  return std::as_bytes(std::span(text));
}

using Connect = void (*)(Side &a, Side &b);

void overLoop(Side &a, Side &b) {
  std::tie(a.endpoint, b.endpoint) = makeLoop(a.regions, b.regions, 4 * kMaxPut);
}

void overTcp(Side &a, Side &b) {
  auto listener = listenOn(loopback(0));
  ASSERT_TRUE(listener.ok());
  const Deadline deadline(5s);
  auto first = connectTo(std::vector{*addressOf(*listener)}, deadline);
  auto second = acceptFrom(*listener, deadline);
  ASSERT_TRUE(first.ok() && second.ok());
  a.endpoint = makeTcpEndpoint(std::move(*first), a.regions, 30s);
  b.endpoint = makeTcpEndpoint(std::move(*second), b.regions, 30s);
}

class Transport : public ::testing::TestWithParam<Connect> {
protected:
  Transport() { GetParam()(a, b); }
  /// Sends it, or fails the test.
  void put(const Put &put) {
    ASSERT_EQ(a.endpoint->put(put), Posted::Yes);
    a.endpoint->flush();
  }

  Side a, b;
};

TEST_P(Transport, BytesAreThereWhenTheWordIs) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr uint64_t kPuts = 2000, kWord = kRegionBytes - 8;
  std::vector<std::byte> bytes(kMaxPut);
  std::thread sender([&] {
    for (uint64_t i = 1; i <= kPuts;) {
      const uint64_t size = (i * 7919) % (kMaxPut + 1);
      std::fill(bytes.begin(), bytes.end(), std::byte(i));
      const Posted posted = a.endpoint->put({.region = 1,
                                             .offset = 24 + i % 8,
                                             .bytes = std::span(bytes).first(size),
                                             .hasWord = true,
                                             .wordOffset = kWord,
                                             .word = i});
      a.endpoint->flush();
      i += posted == Posted::Yes;
      if (posted == Posted::Yes) // taken is taken
        std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
      while (posted == Posted::Yes &&
             b.word(0, 0) < i - 1) // no later put changes what is looked at
        std::this_thread::yield();
    }
  });
  for (uint64_t i = 1; i <= kPuts; ++i) {
    ASSERT_TRUE(b.await([&] { return b.word(1, kWord) >= i; }));
    ASSERT_EQ(b.word(1, kWord), i);
    const uint64_t size = (i * 7919) % (kMaxPut + 1);
    const auto place = b.regions[1].subspan(24 + i % 8, size);
    for (uint64_t at : {uint64_t{0}, size / 2, size - 1})
      if (size != 0) {
        ASSERT_EQ(place[at], std::byte(i)) << "put " << i << " at " << at;
      }
    storeShared(&b.memory[0][0], i, std::memory_order_release);
  }
  sender.join();
}

/// Which somebody else has stored meanwhile.
TEST_P(Transport, ALargerWordStays) {
  storeShared(&b.memory[2][3], 9, std::memory_order_release);
  put({.region = 2, .hasWord = true, .wordOffset = 24, .word = 8});
  put({.region = 2, .hasWord = true, .wordOffset = 32, .word = 1});
  ASSERT_TRUE(b.await([&] { return b.word(2, 32) == 1; }));
  EXPECT_EQ(b.word(2, 24), 9u);
  put({.region = 2, .hasWord = true, .wordOffset = 24, .word = 10});
  EXPECT_TRUE(b.await([&] { return b.word(2, 24) == 10; }));
}

TEST_P(Transport, TakesEffectInOrder) {
  const std::string message = "now";
  put({.hasWord = true, .wordOffset = 8, .word = 1});
  ASSERT_EQ(a.endpoint->send(bytesOf(message)), Posted::Yes);
  put({.hasWord = true, .wordOffset = 16, .word = 2});
  struct Looking final : Sink {
    Side &side;
    uint64_t before = 0, behind = 0;
    explicit Looking(Side &side) : side(side) {}
    bool message(std::span<const std::byte>) override {
      before = side.word(0, 8);
      behind = side.word(0, 16);
      return true;
    }
  } looking(b);
  for (int i = 0; i < 10000 && b.word(0, 16) == 0; ++i)
    if (!b.endpoint->receive(looking))
      std::this_thread::sleep_for(50us);
  EXPECT_EQ(looking.before, 1u);
  EXPECT_EQ(looking.behind, 0u);
  EXPECT_EQ(b.word(0, 16), 2u);
}

TEST_P(Transport, AReceiverThatStopsMakesItFullAndThenGoesOn) {
  std::vector<std::byte> bytes(kMaxPut); // that tell their places: puts are taken in parts
  for (uint64_t i = 0; i < kMaxPut; ++i)
    bytes[i] = std::byte(i % 251);
  const auto post = [&](uint64_t i) {
    const Posted posted = a.endpoint->put(
        {.bytes = bytes, .hasWord = true, .wordOffset = kRegionBytes - 8, .word = i});
    a.endpoint->flush();
    return posted;
  };
  uint64_t taken = 0;
  constexpr uint64_t kMost = 10000; // 640 MiB: more than any buffer
  while (taken < kMost && post(taken + 1) == Posted::Yes)
    ++taken;
  ASSERT_LT(taken, kMost) << "nobody has received anything";
  ASSERT_EQ(post(taken + 1), Posted::Full);
  EXPECT_FALSE(a.endpoint->isDelivered());
  ASSERT_TRUE(b.await([&] {
    a.endpoint->flush();
    return b.word(0, kRegionBytes - 8) == taken;
  }));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), b.regions[0].begin()));
  EXPECT_EQ(post(taken + 1), Posted::Yes);
  EXPECT_TRUE(b.await([&] { return b.word(0, kRegionBytes - 8) == taken + 1; }));
}

TEST_P(Transport, WhatWasSentBeforeTheEndArrives) {
  const std::string last = "farewell";
  std::vector<std::byte> bytes(kMaxPut, std::byte{9});
  for (uint64_t i = 1; i <= 3; ++i)
    put({.bytes = bytes, .hasWord = true, .wordOffset = kRegionBytes - 8, .word = i});
  ASSERT_EQ(a.endpoint->send(bytesOf(last)), Posted::Yes);
  a.endpoint->flush();
  // And in the other direction something is under way that nobody will receive.
  b.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 1});
  b.endpoint->flush();
  // Once the peer's machine has it, an end that resets the connection takes nothing back.
  EXPECT_TRUE(b.await([&] {
    a.endpoint->flush();
    return a.endpoint->isDelivered();
  }));
  a.endpoint.reset();
  EXPECT_TRUE(b.await([&] { return b.endpoint->isDown(); }));
  EXPECT_NE(b.endpoint->whyDown(), "");
  EXPECT_EQ(b.word(0, kRegionBytes - 8), 3u);
  ASSERT_EQ(b.messages.size(), 1u);
  EXPECT_EQ(b.messages[0], last);
}

TEST_P(Transport, PutsToNobodyAreDown) {
  b.endpoint.reset();
  Posted posted = Posted::Yes;
  for (int i = 0; i < 10000 && posted == Posted::Yes; ++i) {
    posted = a.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 1});
    a.endpoint->flush();
    std::this_thread::sleep_for(100us);
  }
  EXPECT_EQ(posted, Posted::Down);
  EXPECT_TRUE(a.endpoint->isDelivered()) << "nobody waits for what will never be";
}

TEST_P(Transport, PutsOutsideOfTheirRegionEndTheConnection) {
  const auto expectDown = [](const Put &put) {
    Side from, to;
    GetParam()(from, to);
    ASSERT_EQ(from.endpoint->put(put), Posted::Yes);
    from.endpoint->flush();
    EXPECT_TRUE(to.await([&] { return to.endpoint->isDown(); }));
    EXPECT_NE(to.endpoint->whyDown().find("the peer has sent"), std::string::npos)
        << to.endpoint->whyDown();
    for (uint64_t word : to.memory[0])
      ASSERT_EQ(word, 0u);
  };
  const std::vector<std::byte> bytes(16, std::byte{1});
  expectDown({.region = kNumRegions, .bytes = bytes});
  expectDown({.offset = kRegionBytes - 15, .bytes = bytes});
  expectDown({.offset = ~uint64_t{0} - 7, .bytes = bytes});
  expectDown({.hasWord = true, .wordOffset = kRegionBytes, .word = 1});
  expectDown({.hasWord = true, .wordOffset = kRegionBytes - 4, .word = 1});
  expectDown({.hasWord = true, .wordOffset = 4, .word = 1});
}

TEST_P(Transport, AMessageThatMakesNoSenseEndsTheConnection) {
  const std::string message = "nonsense";
  b.refused = message;
  ASSERT_EQ(a.endpoint->send(bytesOf(message)), Posted::Yes);
  put({.hasWord = true, .wordOffset = 8, .word = 1});
  EXPECT_TRUE(b.await([&] { return b.endpoint->isDown(); }));
  EXPECT_EQ(b.word(0, 8), 0u) << "what follows does not count";
}

INSTANTIATE_TEST_SUITE_P(Loop, Transport, ::testing::Values(overLoop));
INSTANTIATE_TEST_SUITE_P(Tcp, Transport, ::testing::Values(overTcp));

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

} // namespace
} // namespace occl::net
