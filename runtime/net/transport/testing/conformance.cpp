#include "runtime/net/transport/testing/conformance.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytesOf(const std::string &text) {
  return std::as_bytes(std::span(text));
}

} // namespace

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
      a.endpoint->receive(a); // what makes room
      i += posted == Posted::Yes;
      if (posted == Posted::Yes) // taken is taken
        std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
      while (posted == Posted::Yes &&
             b.word(0, 0) < i - 1) { // no later put changes what is looked at
        a.poll();
        std::this_thread::yield();
      }
    }
    while (b.word(0, 0) < kPuts) {
      a.poll();
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
  ASSERT_TRUE(arrives([&] { return b.word(2, 32) == 1; }));
  EXPECT_EQ(b.word(2, 24), 9u);
  put({.region = 2, .hasWord = true, .wordOffset = 24, .word = 10});
  EXPECT_TRUE(arrives([&] { return b.word(2, 24) == 10; }));
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
  for (int i = 0; i < 10000 && b.word(0, 16) == 0; ++i) {
    a.poll();
    if (!b.endpoint->receive(looking))
      std::this_thread::sleep_for(50us);
  }
  EXPECT_EQ(looking.before, 1u);
  EXPECT_EQ(looking.behind, 0u);
  EXPECT_EQ(b.word(0, 16), 2u);
}

/// Short puts, then a long one over them, while the receiver is late: the last one counts.
TEST_P(Transport, ALongPutOverShortOnesIsTheLast) {
  std::vector<std::byte> shortOne(1000, std::byte{1}), longOne(kMaxPut, std::byte{2});
  uint64_t word = 0;
  const auto put = [&](uint64_t offset, const std::vector<std::byte> &bytes) {
    const Put what = {.region = 3,
                      .offset = offset,
                      .bytes = bytes,
                      .hasWord = true,
                      .wordOffset = kRegionBytes - 8,
                      .word = ++word};
    while (a.endpoint->put(what) == Posted::Full)
      a.endpoint->receive(a);
    a.endpoint->flush();
  };
  for (int round = 0; round < 20; ++round) {
    put(500, shortOne);
    put(kMaxPut - 1000, shortOne);
    put(0, longOne);
    std::this_thread::sleep_for(1ms); // a device writes meanwhile
    ASSERT_TRUE(arrives([&] {
      a.endpoint->flush();
      a.endpoint->receive(a);
      return b.word(3, kRegionBytes - 8) == word;
    }));
    ASSERT_TRUE(std::ranges::all_of(b.regions[3].first(kMaxPut),
                                    [](std::byte it) { return it == std::byte{2}; }))
        << "round " << round;
  }
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
  const auto staysFull = [&] {      // what takes some of it late makes room once more
    for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(100us))
      if (post(taken + 1) != Posted::Full)
        return false;
    return true;
  };
  while (taken < kMost && !staysFull())
    ++taken;
  ASSERT_LT(taken, kMost) << "nobody has received anything";
  ASSERT_FALSE(a.endpoint->isDown());
  ASSERT_TRUE(arrives([&] {
    a.endpoint->flush();
    a.endpoint->receive(a);
    return b.word(0, kRegionBytes - 8) == taken;
  }));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), b.regions[0].begin()));
  for (auto end = std::chrono::steady_clock::now() + 10s;
       post(taken + 1) == Posted::Full && std::chrono::steady_clock::now() < end;)
    a.endpoint->receive(a);
  EXPECT_TRUE(arrives([&] { return b.word(0, kRegionBytes - 8) == taken + 1; }));
}

TEST_P(Transport, DataSentBeforeTheEndArrive) {
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
  EXPECT_TRUE(arrives([&] {
    a.endpoint->flush();
    return a.endpoint->isDelivered();
  }));
  a.endpoint.reset();
  EXPECT_TRUE(arrives([&] { return b.endpoint->isDown(); }));
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
    EXPECT_TRUE(arrives(from, to, [&] { return to.endpoint->isDown(); }));
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
  EXPECT_TRUE(arrives([&] { return b.endpoint->isDown(); }));
  EXPECT_EQ(b.word(0, 8), 0u) << "what follows does not count";
}

} // namespace occl::net
