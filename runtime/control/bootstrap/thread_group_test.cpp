#include "runtime/control/bootstrap/bootstrap.h"

#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace occl::bootstrap {
namespace {

using namespace std::chrono_literals;

std::vector<std::shared_ptr<SharedBell>> makeBells(uint32_t number) {
  std::vector<std::shared_ptr<SharedBell>> bells;
  for (uint32_t b = 0; b < number; ++b)
    bells.push_back(*SharedBell::makePrivate());
  return bells;
}

TEST(ThreadGroup, segmentsAreSharedZeroAndPageAligned) {
  auto groups = formThreadGroup(makeBells(3), 5000);
  ASSERT_TRUE(groups.ok()) << groups.status().message();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Group &group = *(*groups)[rank];
    EXPECT_EQ(group.rank(), rank);
    EXPECT_EQ(group.numRanks(), 3u);
    EXPECT_FALSE(group.acrossProcesses());
    EXPECT_TRUE(group.isAlive(rank));
    EXPECT_EQ(group.segment(rank).size(), 8192u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(group.segment(rank).data()) % 4096, 0u);
    EXPECT_EQ(group.segment(rank)[8191], std::byte{0});
    EXPECT_EQ(group.segment(1).data(), (*groups)[0]->segment(1).data());
    EXPECT_EQ(&group.bell(1), &(*groups)[0]->bell(1));
    EXPECT_NE(&group.bell(1), &group.bell(2));
  }
}

TEST(ThreadGroup, barrierWaitsForAll) {
  auto groups = formThreadGroup(makeBells(4), 1);
  ASSERT_TRUE(groups.ok());
  std::atomic<int> entered = 0;
  std::vector<std::thread> threads;
  for (auto &group : *groups)
    threads.emplace_back([&] {
      for (int round = 1; round <= 50; ++round) {
        ++entered;
        EXPECT_TRUE(group->barrier(Deadline(10s)).ok());
        EXPECT_GE(entered.load(), 4 * round);
        EXPECT_TRUE(group->barrier(Deadline(10s)).ok());
      }
    });
  for (auto &thread : threads)
    thread.join();
}

TEST(ThreadGroup, barrierEndsWithoutTheOthers) {
  auto groups = formThreadGroup(makeBells(2), 1);
  ASSERT_TRUE(groups.ok());
  Status late = (*groups)[0]->barrier(Deadline(20ms));
  EXPECT_EQ(late.code(), StatusCode::Timeout);
  EXPECT_NE(late.message().find("rank 1"), std::string::npos) << late.message();
  (*groups)[1].reset();
  EXPECT_EQ((*groups)[0]->barrier(Deadline(10s)).code(), StatusCode::PeerFailed);
}

TEST(ThreadGroup, refusesWrongSizes) {
  EXPECT_EQ(formThreadGroup(makeBells(0), 1).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(formThreadGroup(makeBells(kMaxRanks + 1), 1).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(formThreadGroup(makeBells(1), 0).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(formThreadGroup(makeBells(1), ~0ull).status().code(), StatusCode::InvalidArgument);
}

} // namespace
} // namespace occl::bootstrap
