// Executors of a resident daemon: every task once, whatever the order, and leaving.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/resident/testing/executor_group.h"
#include "runtime/sync/deadline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;
using namespace std::chrono_literals;

namespace {

TEST(ResidentExecutor, OneRankOneCollective) {
  Group group(1, hostSettings(1));
  HostCollective &collective = group.add(plan::testing::oneShotAllReduce(1), 10, 1);
  ASSERT_TRUE(group[0].wait(group[0].submit(collective, 0), kLong));
  group.expectRight(1);
}

/// Of one thread block, alone: the executor that has nothing else to do begins it, also when nobody
/// has looked at the ring for long, and enters it nowhere; else it would be known when it was taken
/// in and when it began.
TEST(ResidentExecutor, ATaskThatComesAloneIsBegunAndNotEntered) {
  constexpr uint32_t kInvocations = 20;
  Settings settings = hostSettings(1);
  settings.idleLimit = settings.stayLimit = ~0ull; // it stays
  Group group(1, settings);
  HostCollective &collective = group.add(plan::testing::oneShotAllReduce(1), 10, kInvocations);
  for (uint32_t i = 0; i < kInvocations; ++i)
    ASSERT_TRUE(group[0].wait(group[0].submit(collective, 0), kLong));
  group[0].side().abort();
  ASSERT_TRUE(group[0].waitForEnd(kLong));
  EXPECT_EQ(group.total(Count::Finished), kInvocations);
  EXPECT_EQ(collective.counts(0, 0).startNs, 0u) << "some were entered";
  group.expectRight(kInvocations);
}

TEST(ResidentExecutor, ConflictingOrdersComplete) {
  constexpr uint32_t kIterations = 4;
  for (uint32_t numExecutors : {1u, 3u}) {
    Group group(4, hostSettings(numExecutors));
    for (uint64_t count : {1, 64, 300, 1000})
      group.add(plan::testing::ringAllReduce(4), count, kIterations);
    for (uint64_t count : {5, 600}) // four thread blocks each, with dependencies
      group.add(plan::testing::twoShotAllReduce(4), count, kIterations);
    ASSERT_TRUE(group.runInLatinSquareOrder(kIterations, kLong)) << numExecutors << " executors";
    group.expectRight(kIterations);
  }
}

/// One that is alone and has one thread block is entered nowhere before its first visit: the other
/// ranks learn of it all the same, whether that has finished it or not.
TEST(ResidentExecutor, ATaskBegunAtOnceIsAnnouncedToo) {
  constexpr uint32_t kInvocations = 20;
  Group group(2, hostSettings(2));
  HostCollective &collective = group.add(plan::testing::oneShotAllReduce(2), 10, kInvocations);
  for (uint32_t i = 0; i < kInvocations; ++i) {
    const uint32_t first = i % 2; // it cannot finish alone
    auto early = group[first].submit(collective, first);
    Deadline deadline(kLong);
    while (!collective.hasAnnounced(first, 1 - first, i) && !deadline.passed())
      ASSERT_FALSE(group[first].wait(early, 1ms));
    ASSERT_TRUE(collective.hasAnnounced(first, 1 - first, i));
    ASSERT_TRUE(group[1 - first].wait(group[1 - first].submit(collective, 1 - first), kLong));
    ASSERT_TRUE(group[first].wait(early, kLong));
  }
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_TRUE(group[r].waitForQuit(kLong));
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_TRUE(collective.hasAnnounced(r, 1 - r, kInvocations - 1));
  group.expectRight(kInvocations);
}

/// Executors leave all the time: what they were handed and have not visited is not lost.
TEST(ResidentExecutor, ATaskHandedToALeavingExecutorGoesOn) {
  constexpr uint32_t kInvocations = 150;
  Settings settings = hostSettings(4);
  settings.idleLimit = 1;
  settings.stuckLimit = 50'000;
  settings.stayLimit = 300'000;
  Group group(2, settings);
  group.add(plan::testing::twoShotAllReduce(2), 100, kInvocations);
  ASSERT_TRUE(group.runInLatinSquareOrder(kInvocations, kLong, 20us));
  group.expectRight(kInvocations);
}

/// Its four thread blocks wait for each other, and for the other ranks' ones.
TEST(ResidentExecutor, OneExecutorTakesTurnsAmongTheTasksOfOneInvocation) {
  Group group(3, hostSettings(1));
  group.add(plan::testing::twoShotAllReduce(3), 2000, 1);
  ASSERT_TRUE(group.runInLatinSquareOrder(1, kLong));
  group.expectRight(1);
}

TEST(ResidentExecutor, ManyInvocationsOfOneCollectiveRunInOrder) {
  constexpr uint32_t kInvocations = 3 * kWindow / 2; // the window fills up
  Group group(2, hostSettings(1));
  HostCollective &collective = group.add(plan::testing::ringAllReduce(2), 8, kInvocations);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      uint64_t last = 0;
      for (uint32_t i = 0; i < kInvocations; ++i)
        last = group[r].submit(collective, r);
      EXPECT_TRUE(group[r].wait(last, kLong));
    });
  for (std::thread &thread : threads)
    thread.join();
  group.expectRight(kInvocations);
}

/// Each rank's only executor keeps to what its rank submitted first.
TEST(ResidentExecutor, WithoutPreemptionConflictingOrdersAreStuckAndReported) {
  Settings settings = hostSettings(1);
  settings.preemption = false;
  Group group(2, settings);
  for (uint32_t c = 0; c < 2; ++c)
    group.add(plan::testing::ringAllReduce(2), 100, 1);
  EXPECT_FALSE(group.runInLatinSquareOrder(1, 300ms));
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_TRUE(group[r].waitForQuit(kLong)) << "being stuck ends in leaving, too";
    std::vector<OpenTask> tasks = group[r].side().openTasks();
    ASSERT_EQ(tasks.size(), 1u) << "rank " << r;
    EXPECT_EQ(tasks[0].request, 0u);
    EXPECT_EQ(tasks[0].reason, interpreter::BlockReason::Data);
    EXPECT_EQ(tasks[0].peer, 1 - r);
  }
}

TEST(ResidentExecutor, WithPreemptionTheSameOrdersComplete) {
  Group group(2, hostSettings(1));
  for (uint32_t c = 0; c < 2; ++c)
    group.add(plan::testing::ringAllReduce(2), 100, 1);
  ASSERT_TRUE(group.runInLatinSquareOrder(1, kLong));
  group.expectRight(1);
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_TRUE(group[r].waitForQuit(kLong));
  }
}

/// Executors leave as soon as they have nothing to do, so every submission races with that.
TEST(ResidentExecutor, NoSubmissionIsLostWhileExecutorsLeave) {
  constexpr uint32_t kRounds = 8, kIterations = 10;
  Settings settings = hostSettings(2);
  settings.idleLimit = 1;
  Group group(2, settings);
  group.add(plan::testing::ringAllReduce(2), 6, kRounds * kIterations);
  for (uint32_t round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(group.runInLatinSquareOrder(kIterations, kLong, 10us));
    ASSERT_TRUE(group[round % 2].waitForQuit(kLong));
  }
  group.expectRight(kRounds * kIterations);
  EXPECT_GE(group[0].side().starts(), kRounds / 2);
}

/// A collective that a peer has not submitted keeps nobody from leaving, and runs when it comes.
TEST(ResidentExecutor, StuckExecutorsLeaveAndGoOnWhereTheyStood) {
  Settings settings = hostSettings(1);
  settings.stuckLimit = 5'000'000;
  Group group(2, settings);
  HostCollective &collective = group.add(plan::testing::ringAllReduce(2), 50, 1);
  uint64_t mine = group[0].submit(collective, 0);
  for (uint32_t quits = 0; quits < 3; ++quits) {
    ASSERT_TRUE(group[0].waitForQuit(kLong));
    EXPECT_FALSE(group[0].side().isComplete(mine));
    group[0].side().restartIfOpen();
  }
  uint64_t theirs = group[1].submit(collective, 1);
  ASSERT_TRUE(group[0].wait(mine, kLong));
  ASSERT_TRUE(group[1].wait(theirs, kLong));
  group.expectRight(1);
  EXPECT_GE(group[0].side().starts(), 4u);
}

TEST(ResidentExecutor, AnAbortEndsWhatIsStuck) {
  Settings settings = hostSettings(2);
  settings.stuckLimit = ~0ull;
  auto group = std::make_unique<Group>(2, settings);
  HostCollective &collective = group->add(plan::testing::ringAllReduce(2), 50, 1);
  group->operator[](0).submit(collective, 0);
  group->operator[](0).side().abort();
  group.reset(); // joins the executors
}

/// Of two collectives one never goes on: it is taken out, whether executors have taken it in or
/// not, and the other one is executed again and again.
TEST(ResidentExecutor, AWithdrawnTaskLeavesTheOthersAlone) {
  Settings settings = hostSettings(2);
  settings.stuckLimit = ~0ull;
  settings.stayLimit = ~0ull;
  constexpr uint32_t kRounds = 5;
  Group group(2, settings);
  group.add(plan::testing::ringAllReduce(2), 64, kRounds);
  HostCollective &stuck = group.add(plan::testing::ringAllReduce(2), 50, kRounds);
  auto other = std::move(group.collectives[1]);
  group.collectives.pop_back();
  for (uint32_t round = 0; round < kRounds; ++round) {
    uint64_t request = group[0].submit(stuck, 0);
    if (round % 2 == 0) // long enough to be waited for
      std::this_thread::sleep_for(20ms);
    auto tasks = group[0].withdraw(request, kLong);
    ASSERT_TRUE(tasks) << "executors leave when they are asked to";
    EXPECT_TRUE(group[0].side().isComplete(request));
    if (round == 0) {
      ASSERT_EQ(tasks->size(), 1u);
      EXPECT_EQ(tasks->front().reason, interpreter::BlockReason::Data);
      EXPECT_EQ(tasks->front().peer, 1u);
      EXPECT_EQ(group[0].side().missing(request), 2u) << "rank 1 has not announced it";
    }
    ASSERT_TRUE(group.runInLatinSquareOrder(1, kLong)) << "round " << round;
  }
  group.expectRight(kRounds);
}

/// Of several thread blocks, alone, with executors that have nothing to do: each is handed one.
TEST(ResidentExecutor, ATaskThatComesAloneIsHandedToIdleExecutors) {
  constexpr uint32_t kInvocations = 40;
  Settings settings = hostSettings(6);
  settings.idleLimit = ~0ull; // they stay
  Group group(2, settings);
  HostCollective &collective = group.add(plan::testing::twoShotAllReduce(2), 100, kInvocations);
  for (uint32_t i = 0; i < kInvocations; ++i) {
    // The first one cannot finish: its tasks are given back now and then.
    const uint64_t mine = group[i % 2].submit(collective, i % 2);
    if (i % 4 == 0)
      std::this_thread::sleep_for(2ms);
    const uint64_t theirs = group[1 - i % 2].submit(collective, 1 - i % 2);
    ASSERT_TRUE(i % 2 == 0 ? waitForBoth(group, mine, theirs) : waitForBoth(group, theirs, mine));
  }
  group.expectRight(kInvocations);
  for (uint32_t r = 0; r < 2; ++r) {
    group[r].side().abort();
    ASSERT_TRUE(group[r].waitForEnd(kLong));
  }
  EXPECT_GT(group.total(Count::Handed), 0u);
  EXPECT_EQ(group.total(Count::Finished), 2u * 4 * kInvocations);
}

/// They do not stay for ever, however much there is to do.
TEST(ResidentExecutor, ExecutorsLeaveAfterAWhile) {
  Settings settings = hostSettings(1);
  settings.stuckLimit = ~0ull;
  settings.idleLimit = ~0ull;
  settings.stayLimit = 1'000'000;
  constexpr uint32_t kIterations = 200;
  Group group(2, settings);
  group.add(plan::testing::ringAllReduce(2), 8, kIterations);
  ASSERT_TRUE(group.runInLatinSquareOrder(kIterations, kLong, 200us));
  group.expectRight(kIterations);
  ASSERT_TRUE(group[0].waitForQuit(kLong));
  EXPECT_GT(group[0].side().starts(), 1u);
}

} // namespace
