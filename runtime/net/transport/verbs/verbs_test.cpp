// Endpoints over RDMA. Tests are skipped without a device; `make verbs` brings some along.
#include "runtime/net/transport/testing/conformance.h"
#include "runtime/net/transport/testing/traffic.h"
#include "runtime/net/transport/verbs/testing/over_verbs.h"
#include "runtime/net/transport/verbs/verbs_endpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(Verbs, Transport, ::testing::Values(overVerbs));

uint64_t bytesWritten(const Side &side) {
  return static_cast<const VerbsEndpoint &>(*side.endpoint).bytesWritten();
}

class Verbs : public ::testing::Test {
protected:
  void SetUp() override { overVerbs(a, b); }

  Side a, b;
};

TEST_F(Verbs, RandomPutsInBothDirectionsAreRight) {
  converse(a, b, 1000);
  // What is much used is registered, and then written by the device.
  EXPECT_GT(bytesWritten(a), 10u << 20);
  EXPECT_GT(bytesWritten(b), 10u << 20);
}

/// A region whose end is no multiple of an extent, and puts across extents.
TEST_F(Verbs, PutsAcrossExtentsAreRight) {
  constexpr uint64_t kBytes = 2 * kExtentBytes + 4096;
  std::vector<std::byte> memory(kBytes), other(kBytes), sent(kMaxPut);
  a.endpoint.reset();
  b.endpoint.reset();
  a.regions[3] = other;
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
  EXPECT_LT(std::chrono::steady_clock::now() - ended, kVerbsSilence);
  EXPECT_EQ(a.endpoint->whyDown(), "closed by the peer");
  EXPECT_EQ(a.messages, std::vector<std::string>{"last"});
}

/// A child made by fork() has copies of all descriptors, and lives on when its parent is killed.
TEST_F(Verbs, AChildThatLivesOnHidesNoEnd) {
  a.endpoint.reset();
  b.endpoint.reset();
  auto sockets = socketPair();
  int toChild[2];
  ASSERT_EQ(pipe(toChild), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    sockets.first = Descriptor();
    Side there;
    auto connected = connectSide(std::move(sockets.second), there, 1);
    if (connected.ok() && fork() != 0)
      kill(getpid(), SIGKILL);
    close(toChild[1]);
    char byte = 0;
    (void)!read(toChild[0], &byte, 1); // until the test is over
    _exit(0);
  }
  sockets.second = Descriptor();
  auto connected = connectSide(std::move(sockets.first), a, 0);
  ASSERT_TRUE(connected.ok()) << connected.status().message();
  a.endpoint = std::move(connected->endpoint);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(a.await([&] { return a.endpoint->isDown(); }));
  close(toChild[0]);
  close(toChild[1]);
}

/// A peer that sends what no endpoint does.
class DamagedPeer {
public:
  explicit DamagedPeer(Side &victim) : memory(std::move(*bootstrap::Mapping::anonymous(1 << 16))) {
    const RdmaPort &port = rdmaPorts().ports.front();
    pair = std::move(*QueuePair::make(port, 16, 80));
    registered.emplace(
        std::move(*Registration::make(pair->domain(), memory.get(), IBV_ACCESS_LOCAL_WRITE)));
    for (int i = 0; i < 80; ++i) { // what the victim says
      ibv_sge range = {reinterpret_cast<uint64_t>(memory.get().data()) + 4096, 1 << 13,
                       registered->localKey()};
      ibv_recv_wr request{};
      request.sg_list = &range;
      request.num_sge = 1;
      EXPECT_TRUE(pair->post(request));
    }
    auto made = std::move(*VerbsEndpoint::make(port, victim.regions, kVerbsSilence));
    EXPECT_TRUE(made->connect(pair->address()).ok());
    EXPECT_TRUE(pair->connect(made->address(), kVerbsSilence).ok());
    auto sockets = socketPair();
    socket = std::move(sockets.first);
    made->watch(std::move(sockets.second));
    victim.endpoint = std::move(made);
  }

  void send(const VerbsHead &head, uint64_t bytes = sizeof(VerbsHead),
            const VerbsExtent &extent = {}) {
    std::memcpy(memory.get().data(), &head, sizeof head);
    std::memcpy(memory.get().data() + sizeof head, &extent, sizeof extent);
    ibv_sge range = {reinterpret_cast<uint64_t>(memory.get().data()), static_cast<uint32_t>(bytes),
                     registered->localKey()};
    ibv_send_wr request{};
    request.sg_list = &range;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    EXPECT_TRUE(pair->post(request));
  }

private:
  const bootstrap::Mapping memory;
  std::unique_ptr<QueuePair> pair;
  std::optional<Registration> registered;
  Descriptor socket;
};

TEST_F(Verbs, DamagedHeadsEndTheConnection) {
  const auto expectDown = [&](VerbsHead head, uint64_t bytes, VerbsExtent extent = {}) {
    Side victim;
    DamagedPeer peer(victim);
    // A good one first, so that it is not down for another reason.
    peer.send({.frame = {.kind = FrameHeader::kPut, .hasWord = 1, .wordOffset = 8, .word = 1}});
    ASSERT_TRUE(victim.await([&] { return victim.word(0, 8) == 1; }));
    head.frame.number += head.frame.kind != 0;
    peer.send(head, bytes, extent);
    EXPECT_TRUE(victim.await([&] { return victim.endpoint->isDown(); }));
    EXPECT_NE(victim.endpoint->whyDown().find("the peer"), std::string::npos)
        << victim.endpoint->whyDown();
    EXPECT_EQ(victim.word(0, 8), 1u);
  };
  constexpr uint64_t kHead = sizeof(VerbsHead);
  const FrameHeader word = {.kind = FrameHeader::kPut, .hasWord = 1, .wordOffset = 8, .word = 2};
  FrameHeader with8 = word, otherNumber = word, outside = word;
  with8.bytes = 8;
  otherNumber.number = 1;
  outside.region = kNumRegions;
  expectDown({.frame = word}, kHead - 1);
  expectDown({.frame = word}, kHead + 8);
  expectDown({.frame = with8}, kHead);
  expectDown({.frame = with8, .isPlaced = 1}, kHead + 8);
  expectDown({.frame = otherNumber}, kHead);
  expectDown({.frame = outside}, kHead);
  expectDown({.frame = {.kind = 3}}, kHead);
  expectDown({.frame = word, .consumed = 1}, kHead); // of what was never sent
  expectDown({.frame = {}, .numExtents = 2}, kHead + sizeof(VerbsExtent));
  expectDown({.frame = {}, .numExtents = 1}, kHead + sizeof(VerbsExtent), {.region = kNumRegions});
  expectDown({.frame = {}, .numExtents = 1}, kHead + sizeof(VerbsExtent), {.offset = 8});
}

} // namespace
} // namespace occl::net
