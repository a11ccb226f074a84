#include "tools/occl-run/scoreboard.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::run {
namespace {

TEST(Scoreboard, keepsTheSlowestOfProcesses) {
  auto board = SharedScoreboard::create(3, 2);
  for (uint32_t rank = 0; rank < 3; ++rank)
    if (fork() == 0) {
      board->setSeconds(rank, 0, 1.0 + rank);
      board->setSeconds(rank, 1, 5.0 - rank);
      board->addWrong(rank);
      _exit(board->barrier() ? 0 : 1);
    }
  int status = 0;
  while (wait(&status) > 0)
    EXPECT_EQ(status, 0);
  EXPECT_EQ(board->secondsOf(0), 3.0);
  EXPECT_EQ(board->secondsOf(1), 5.0);
  EXPECT_EQ(board->wrong(), 3u);
}

TEST(Scoreboard, barrierWaitsForAllAgainAndAgain) {
  auto board = SharedScoreboard::create(3, 1);
  std::atomic<int> count = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&] {
      for (int round = 1; round <= 100; ++round) {
        ++count;
        EXPECT_TRUE(board->barrier());
        EXPECT_GE(count.load(), 3 * round);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Scoreboard, aFailureFreesThoseWhoWait) {
  auto board = SharedScoreboard::create(2, 1);
  std::thread waiting([&] { EXPECT_FALSE(board->barrier()); });
  board->fail();
  waiting.join();
}

} // namespace
} // namespace occl::run
