#include "runtime/sync/doorbell.h"

#include <gtest/gtest.h>

#include <thread>

namespace occl {
namespace {

using namespace std::chrono_literals;

TEST(Doorbell, RingBetweenTicketAndSleepIsNotLost) {
  Doorbell bell;
  uint32_t ticket = bell.prepareSleep();
  bell.ring();
  auto start = std::chrono::steady_clock::now();
  bell.sleep(ticket, 10s);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Doorbell, RingWithoutSleeperLeavesTheWordAlone) {
  Doorbell bell;
  bell.ring();
  EXPECT_EQ(bell.word.load(), 0u);
}

/// Two threads hand a counter back and forth, always asleep when it is the other's turn. A lost
/// wake-up would cost a whole timeout, which the test would notice.
TEST(Doorbell, PingPongLosesNoWakeUp) {
  Doorbell bells[2];
  std::atomic<uint32_t> turn{0};
  constexpr uint32_t kTurns = 2000;
  std::atomic<uint32_t> timeouts{0};
  auto play = [&](uint32_t me) {
    for (uint32_t t = me; t < kTurns; t += 2) {
      while (turn.load(std::memory_order_acquire) != t) {
        uint32_t ticket = bells[me].prepareSleep();
        if (turn.load(std::memory_order_acquire) == t)
          break;
        auto start = std::chrono::steady_clock::now();
        bells[me].sleep(ticket, 5s);
        if (std::chrono::steady_clock::now() - start >= 5s)
          timeouts.fetch_add(1);
      }
      turn.store(t + 1, std::memory_order_release);
      bells[1 - me].ring();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  EXPECT_EQ(turn.load(), kTurns);
  EXPECT_EQ(timeouts.load(), 0u);
}

} // namespace
} // namespace occl
