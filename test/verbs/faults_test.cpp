// Connections over RDMA whose cables fail, lose and delay.
#include "runtime/net/transport/testing/traffic.h"
#include "runtime/net/transport/verbs/testing/over_verbs.h"
#include "test/verbs/link.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace occl::net {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Faults : public ::testing::Test {
protected:
  void SetUp() override { overVerbs(a, b); }
  void TearDown() override {
    if (!IsSkipped())
      for (const char *nic : {"nic0", "nic1"})
        link(std::string(nic) + " clear");
  }

  Side a, b;
};

class Disturbed : public Faults, public ::testing::WithParamInterface<const char *> {};

TEST_P(Disturbed, TrafficIsRight) {
  for (const char *way : {"nic0 out ", "nic0 in "})
    link(std::string(way) + GetParam());
  converse(a, b, 150);
}

INSTANTIATE_TEST_SUITE_P(Cables, Disturbed,
                         ::testing::Values("loss 1%", "delay 2ms", "delay 1ms reorder 1%",
                                           "loss 1% delay 1ms"));

/// The ranks still reach each other over TCP, so nobody is dead: but data does not cross any more.
TEST_F(Faults, ACableThatStaysUnpluggedEndsTheConnection) {
  link("nic1 unplug");
  const auto begin = Clock::now();
  ASSERT_EQ(a.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 1}), Posted::Yes);
  bool isDown = false;
  while (!isDown && Clock::now() - begin < 6 * kVerbsSilence)
    isDown = a.await([&] { return a.endpoint->isDown(); });
  ASSERT_TRUE(isDown);
  EXPECT_NE(a.endpoint->whyDown().find("retry counter exceeded"), std::string::npos)
      << a.endpoint->whyDown();
  EXPECT_EQ(a.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 2}), Posted::Down);
  EXPECT_TRUE(a.endpoint->isDelivered()) << "nobody waits for what will never be";
  // The other rank had nothing to send, and learns of it all the same.
  EXPECT_TRUE(b.await([&] { return b.endpoint->isDown(); }));
}

TEST_F(Faults, ACableThatIsPluggedInAgainIsNoFailure) {
  converse(a, b, 20);
  link("nic1 unplug");
  const auto put = [&](uint64_t word) {
    return a.endpoint->put({.region = 2, .hasWord = true, .wordOffset = 8, .word = word});
  };
  ASSERT_EQ(put(1), Posted::Yes);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(b.word(2, 8), 0u);
  link("nic1 plug");
  EXPECT_TRUE(b.await([&] { return b.word(2, 8) == 1; }));
  ASSERT_EQ(put(2), Posted::Yes);
  EXPECT_TRUE(b.await([&] { return b.word(2, 8) == 2; }));
}

/// Ports are up, and nothing gets through.
TEST_F(Faults, WhereNothingGetsThroughTcpIsTaken) {
  link("nic1 in loss 100%");
  auto sockets = socketPair();
  Side c, d;
  std::optional<StatusOr<Connected>> there;
  std::thread other([&] { there.emplace(connectSide(std::move(sockets.second), d, 1, {"verbs", "tcp"})); });
  const StatusOr<Connected> here = connectSide(std::move(sockets.first), c, 0, {"verbs", "tcp"});
  other.join();
  for (const StatusOr<Connected> *connected : {&here, &std::as_const(*there)}) {
    ASSERT_TRUE(connected->ok()) << connected->status().message();
    EXPECT_EQ((*connected)->how.substr(0, 5), "TCP (") << (*connected)->how;
    EXPECT_NE((*connected)->how.find("rxe"), std::string::npos) << (*connected)->how;
  }
}

} // namespace
} // namespace occl::net
