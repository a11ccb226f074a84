#include "runtime/net/transport/rails/path_failures.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

const PathFailures::Clock::time_point kNow = PathFailures::Clock::now();

Path path(uint8_t own, uint8_t there, uint8_t met = 1) {
  Path made;
  made.own[15] = own;
  made.there[15] = there;
  made.met[15] = met;
  return made;
}

TEST(PathFailures, AFailureIsThatOfOnePairOfAddressesOfOneMachine) {
  PathFailures failures;
  failures.addFailure(path(1, 2), kNow);
  EXPECT_TRUE(failures.hasFailed(path(1, 2), kNow));
  for (const Path &other : {path(2, 2), path(1, 1), path(1, 2, 2)})
    EXPECT_FALSE(failures.hasFailed(other, kNow));
}

TEST(PathFailures, ItExpires) {
  PathFailures failures;
  failures.addFailure(path(1, 2), kNow);
  EXPECT_TRUE(failures.hasFailed(path(1, 2), kNow + PathFailures::kLifetime - 1ns));
  EXPECT_FALSE(failures.hasFailed(path(1, 2), kNow + PathFailures::kLifetime));
  failures.addFailure(path(1, 2), kNow + PathFailures::kLifetime);
  EXPECT_TRUE(failures.hasFailed(path(1, 2), kNow + PathFailures::kLifetime));
}

TEST(PathFailures, OneThatWorksIsNone) {
  PathFailures failures;
  failures.addFailure(path(1, 2), kNow);
  failures.addFailure(path(3, 4), kNow);
  failures.remove(path(1, 2));
  failures.remove(path(5, 6));
  EXPECT_FALSE(failures.hasFailed(path(1, 2), kNow));
  EXPECT_TRUE(failures.hasFailed(path(3, 4), kNow));
}

TEST(PathFailures, OfTooManyTheNewOnesAreNotRememberedUntilOthersExpire) {
  PathFailures failures;
  Path each;
  for (size_t i = 0; i < PathFailures::kMost; ++i) {
    each.own[14] = static_cast<uint8_t>(i / 256);
    each.own[15] = static_cast<uint8_t>(i % 256);
    failures.addFailure(each, kNow);
  }
  failures.addFailure(path(1, 2), kNow);
  EXPECT_FALSE(failures.hasFailed(path(1, 2), kNow));
  failures.addFailure(each, kNow + 1s); // is there already
  EXPECT_TRUE(failures.hasFailed(each, kNow + PathFailures::kLifetime));
  failures.addFailure(path(1, 2), kNow + PathFailures::kLifetime);
  EXPECT_TRUE(failures.hasFailed(path(1, 2), kNow + PathFailures::kLifetime));
}

#ifndef __SANITIZE_THREAD__ // which does not survive fork() of a process with threads
TEST(PathFailures, AChildMadeAtAnyTimeRemembersAndIsNotHeldUp) {
  PathFailures failures;
  failures.addFailure(path(1, 2), kNow);
  std::atomic<bool> stops{false};
  std::thread remembers([&] {
    while (!stops)
      failures.remove(path(3, 4));
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      failures.remove(path(3, 4));
      _exit(failures.hasFailed(path(1, 2), kNow) ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  stops = true;
  remembers.join();
}
#endif

} // namespace
} // namespace occl::net
