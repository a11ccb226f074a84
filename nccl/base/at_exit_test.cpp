// How long processes take to exit that have threads in the background.
#include "nccl/base/at_exit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::nccl {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Of a child that does that and exits; it must not crash.
Clock::duration timeOfExit(const std::function<void()> &before) {
  const auto begin = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    before();
    std::exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return Clock::now() - begin;
}

void holdFor(Clock::duration time, std::chrono::milliseconds atMost) {
  std::thread([time, holds = std::make_unique<HoldsExit>(atMost)] {
    std::this_thread::sleep_for(time);
  }).detach();
}

constexpr std::chrono::milliseconds kSoon = 300ms, kLong = 30s;

TEST(HoldsExit, UntilTheThreadIsOver) {
  const auto took = timeOfExit([] { holdFor(kSoon, kLong); });
  EXPECT_GE(took, kSoon);
  EXPECT_LT(took, kLong / 2);
}

TEST(HoldsExit, NoLongerThanItsTime) {
  const auto took = timeOfExit([] { holdFor(kLong, kSoon); });
  EXPECT_GE(took, kSoon);
  EXPECT_LT(took, kLong / 2);
}

/// What may take long is over before what nobody waits for any more.
TEST(HoldsExit, ForTheLongestTimeOfThoseThatAreLeft) {
  const auto took = timeOfExit([] {
    holdFor(2 * kSoon, kLong);
    holdFor(kLong, kSoon);
  });
  EXPECT_GE(took, 2 * kSoon);
  EXPECT_LT(took, kLong / 2);
}

/// Threads of the process that it was forked from are not there.
TEST(HoldsExit, NotInAForkedChild) {
  const HoldsExit holds(kLong);
  EXPECT_LT(timeOfExit([] { holdFor(kSoon, kLong); }), kLong / 2);
}

} // namespace
} // namespace occl::nccl
