// Endpoints over RDMA, between the first and the last port of this machine. Without a device tests
// are skipped, unless OCCL_REQUIRE_VERBS is set: `make verbs` brings devices along.
#include "runtime/net/choose_transport.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/testing/conformance.h"
#include "runtime/net/transport/verbs/verbs_endpoint.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

constexpr auto kSilence = 2s;

bool hasDevice() { return rdmaPorts().ports.size() >= 2; }

/// As two ranks do.
StatusOr<Connected> connectSide(Descriptor socket, Side &side, uint32_t rank) {
  return connectEndpoint(std::move(socket), {rank, 1 - rank, side.regions, kSilence, {true, false}},
                         Deadline(20s));
}

std::pair<Descriptor, Descriptor> socketPair() {
  auto listener = listenOn(loopback(0));
  auto first = connectTo(std::vector{*addressOf(*listener)}, Deadline(5s));
  auto second = acceptFrom(*listener, Deadline(5s));
  return {std::move(*first), std::move(*second)};
}

void overVerbs(Side &a, Side &b) {
  if (!hasDevice()) {
    ASSERT_EQ(std::getenv("OCCL_REQUIRE_VERBS"), nullptr) << rdmaPorts().whyNone;
    GTEST_SKIP() << rdmaPorts().whyNone;
  }
  auto sockets = socketPair();
  std::thread other([&] {
    auto connected = connectSide(std::move(sockets.second), b, 1);
    ASSERT_TRUE(connected.ok()) << connected.status().message();
    b.endpoint = std::move(connected->endpoint);
  });
  auto connected = connectSide(std::move(sockets.first), a, 0);
  other.join();
  ASSERT_TRUE(connected.ok()) << connected.status().message();
  ASSERT_EQ(connected->how.substr(0, 5), "RDMA ");
  a.endpoint = std::move(connected->endpoint);
}

INSTANTIATE_TEST_SUITE_P(Verbs, Transport, ::testing::Values(overVerbs));

uint64_t bytesWritten(const Side &side) {
  return static_cast<const VerbsEndpoint &>(*side.endpoint).bytesWritten();
}

class Verbs : public ::testing::Test {
protected:
  void SetUp() override { overVerbs(a, b); }

  Side a, b;
};

/// Sends puts of many sizes to random places, and checks what arrives: each 8 bytes of a put are
/// its number, and the place of a put is that of its number, so that nothing later covers it.
class Traffic {
public:
  Traffic(unsigned seed, uint64_t numPuts) : random(seed) {
    for (uint64_t i = 1; i <= numPuts; ++i) {
      const uint64_t most = random() % 3 == 0 ? kMaxPut : random() % 2 ? 16 << 10 : 64;
      sizes.push_back((random() % most) / 8 * 8);
    }
  }

  /// Whether it was taken. Words: the number that was sent, and the number that the peer has read.
  bool sendOne(Side &side, uint64_t number) {
    const uint64_t size = sizes[number - 1];
    bytes.assign(size / 8, number);
    return side.endpoint->put({.region = 1,
                               .offset = placeOf(number),
                               .bytes = std::as_bytes(std::span(bytes)),
                               .hasWord = true,
                               .wordOffset = kSentWord,
                               .word = number}) == Posted::Yes;
  }
  bool isRight(const Side &side, uint64_t number) const {
    const uint64_t *place = &side.memory[1][placeOf(number) / 8];
    return std::all_of(place, place + sizes[number - 1] / 8,
                       [&](uint64_t word) { return word == number; });
  }
  uint64_t size() const { return sizes.size(); }
  static constexpr uint64_t kSentWord = kRegionBytes - 8;
  /// Two puts may be under way: the places are halves of the region.
  static constexpr uint64_t kUnderWay = 2;

private:
  uint64_t placeOf(uint64_t number) const {
    return number % kUnderWay * (kRegionBytes / 2) + number * 64 % 4096;
  }

  std::mt19937 random;
  std::vector<uint64_t> sizes, bytes;
};

/// One rank of a conversation: sends its puts, and checks the peer's.
void converse(Side &side, Traffic &own, const Traffic &theirs, std::string &fault) {
  uint64_t sent = 0, seen = 0;
  const auto end = std::chrono::steady_clock::now() + 100s;
  while (sent < own.size() || seen < theirs.size()) {
    if (std::chrono::steady_clock::now() > end || side.endpoint->isDown()) {
      fault = "sent " + std::to_string(sent) + ", seen " + std::to_string(seen) + ": " +
              side.endpoint->whyDown();
      return;
    }
    // The peer says in region 0 how many it has checked.
    if (sent < own.size() && sent < side.word(0, 0) + Traffic::kUnderWay)
      sent += own.sendOne(side, sent + 1);
    if (!side.endpoint->receive(side))
      std::this_thread::sleep_for(20us);
    const uint64_t there = side.word(1, Traffic::kSentWord);
    while (seen < there)
      if (!theirs.isRight(side, ++seen)) {
        fault = "put " + std::to_string(seen) + " is damaged";
        return;
      }
    while (side.endpoint->put({.hasWord = true, .wordOffset = 0, .word = seen}) == Posted::Full)
      side.endpoint->receive(side);
  }
  // The last count has to get there.
  while (!side.endpoint->isDelivered() && !side.endpoint->isDown())
    side.endpoint->receive(side);
}

void converseBoth(Side &a, Side &b, uint64_t numPuts) {
  const auto seed = static_cast<unsigned>(printedSeed());
  Traffic ofA(seed, numPuts), ofB(seed + 1, numPuts);
  std::string faults[2];
  std::thread other([&] { converse(b, ofB, ofA, faults[1]); });
  converse(a, ofA, ofB, faults[0]);
  other.join();
  EXPECT_EQ(faults[0], "");
  EXPECT_EQ(faults[1], "");
}

TEST_F(Verbs, RandomPutsInBothDirectionsAreRight) {
  converseBoth(a, b, 1000);
  // What is much used is registered, and then written by the device.
  EXPECT_GT(bytesWritten(a), 10u << 20);
  EXPECT_GT(bytesWritten(b), 10u << 20);
}

/// A region whose end is no multiple of an extent, and puts across extents.
TEST_F(Verbs, PutsAcrossExtentsAreRight) {
  constexpr uint64_t kBytes = 2 * kExtentBytes + 4096;
  std::vector<std::byte> memory(kBytes), sent(kMaxPut);
  a.endpoint.reset();
  b.endpoint.reset();
  b.regions[3] = memory;
  overVerbs(a, b);
  uint64_t word = 0;
  for (int round = 0; round < 6; ++round)
    for (uint64_t offset : {kExtentBytes - 5000, kExtentBytes - 64000, kBytes - kMaxPut}) {
      ++word;
      for (uint64_t i = 0; i < sent.size(); ++i)
        sent[i] = std::byte(i * 7 + word);
      const Put put = {.region = 3,
                       .offset = offset,
                       .bytes = sent,
                       .hasWord = true,
                       .wordOffset = 0,
                       .word = word};
      while (a.endpoint->put(put) == Posted::Full)
        a.endpoint->receive(a);
      ASSERT_TRUE(b.await([&] {
        a.endpoint->receive(a);
        return loadShared(reinterpret_cast<uint64_t *>(memory.data()), std::memory_order_acquire) ==
               word;
      }));
      ASSERT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin() + offset));
    }
  EXPECT_GT(bytesWritten(a), 0u);
}

/// Room comes back by what the peer says, of which the sender's thread has to hear.
TEST_F(Verbs, RoomThatComesBackIsTold) {
  const std::string text = "x";
  uint64_t taken = 0;
  while (a.endpoint->send(std::as_bytes(std::span(text))) == Posted::Yes)
    ++taken;
  EXPECT_EQ(taken, kFrames);
  EXPECT_FALSE(a.endpoint->hasMadeRoom());
  ASSERT_TRUE(b.await([&] { return b.messages.size() == taken; }));
  bool wasTold = false;
  EXPECT_TRUE(a.await([&] { return wasTold |= a.endpoint->hasMadeRoom(); }));
  while (a.endpoint->receive(a)) {
  }
  a.endpoint->hasMadeRoom();
  EXPECT_FALSE(a.endpoint->hasMadeRoom()) << "is told once";
  EXPECT_EQ(a.endpoint->send(std::as_bytes(std::span(text))), Posted::Yes);
}

/// In a process of its own that ends by SIGKILL: the other one sees it soon, and gets what had
/// arrived.
TEST_F(Verbs, AKilledProcessIsNoticed) {
  a.endpoint.reset(); // these two are of this process
  b.endpoint.reset();
  auto sockets = socketPair();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Side there;
    auto connected = connectSide(std::move(sockets.second), there, 1);
    if (!connected.ok())
      _exit(1);
    const std::string last = "last";
    connected->endpoint->send(std::as_bytes(std::span(last)));
    while (!connected->endpoint->isDelivered())
      usleep(100);
    kill(getpid(), SIGKILL);
  }
  sockets.second = Descriptor();
  auto connected = connectSide(std::move(sockets.first), a, 0);
  ASSERT_TRUE(connected.ok()) << connected.status().message();
  a.endpoint = std::move(connected->endpoint);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto ended = std::chrono::steady_clock::now();
  EXPECT_TRUE(a.await([&] { return a.endpoint->isDown(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - ended, kSilence);
  EXPECT_EQ(a.endpoint->whyDown(), "closed by the peer");
  EXPECT_EQ(a.messages, std::vector<std::string>{"last"});
}

/// A child made by fork() keeps a copy of all descriptors, and lives on.
TEST_F(Verbs, AChildThatLivesOnHidesNoEnd) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  a.endpoint.reset();
  EXPECT_TRUE(b.await([&] { return b.endpoint->isDown(); }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// As a user whose locked memory is limited.
TEST_F(Verbs, WhatCannotBeRegisteredGoesInFrames) {
  a.endpoint.reset();
  b.endpoint.reset();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {4 << 20, 4 << 20}; // what both ends need, and no extents
    Side c, d;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
      _exit(3);
    overVerbs(c, d);
    if (!c.endpoint || !d.endpoint)
      _exit(2);
    converseBoth(c, d, 300);
    _exit(HasFailure() || bytesWritten(c) != 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

TEST_F(Verbs, WithoutEnoughLockedMemoryTheErrorSaysSo) {
  a.endpoint.reset();
  b.endpoint.reset();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {64 << 10, 64 << 10};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
      _exit(3);
    const auto made = VerbsEndpoint::make(rdmaPorts().ports.front(), a.regions, kSilence);
    _exit(made.ok() || made.status().message().find("ulimit -l") == std::string::npos);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

} // namespace
} // namespace occl::net
