// Executors and what is submitted to streams: when it begins, who stays for it.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/resident/testing/executor_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;
using namespace std::chrono_literals;

namespace {

constexpr auto kShort = 100ms;

TEST(ResidentExecutor, AStreamedSubmissionBeginsWhenItsStreamReachesIt) {
  Group group(2, hostSettings(2));
  HostCollective &collective = group.add(plan::testing::ringAllReduce(2), 50, 2);
  uint64_t mine = group[0].submitStreamed(collective, 0), theirs = group[1].submit(collective, 1);
  std::this_thread::sleep_for(kShort);
  EXPECT_FALSE(group[0].side().isComplete(mine));
  EXPECT_FALSE(group[1].side().isComplete(theirs));
  group[0].reach(mine);
  ASSERT_TRUE(waitForBoth(group, mine, theirs));
  // A gate that is open from the beginning.
  group[0].reach(mine + 1);
  mine = group[0].submitStreamed(collective, 0);
  theirs = group[1].submitStreamed(collective, 1);
  group[1].reach(theirs);
  ASSERT_TRUE(waitForBoth(group, mine, theirs));
  group.expectRight(2);
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_TRUE(group[r].waitForQuit(kLong)) << "the lookout leaves when no stream is held";
}

/// A lookout needs no launch: it takes in what comes, and finishes what is open, by itself.
TEST(ResidentExecutor, OneExecutorStaysForStreamsAndGoesOnAlone) {
  Group group(2, hostSettings(3));
  HostCollective &streamed = group.add(plan::testing::twoShotAllReduce(2), 700, 1);
  HostCollective &other = group.add(plan::testing::ringAllReduce(2), 50, 1);
  const uint64_t mine = group[0].submitStreamed(streamed, 0);
  ASSERT_TRUE(waitFor([&] { return group[0].side().hasQuit(); }));
  EXPECT_TRUE(group[0].side().hasLookout());
  EXPECT_EQ(group[0].side().starts(), 1u);
  group[0].side().restartIfOpen();
  EXPECT_EQ(group[0].side().starts(), 1u) << "nothing moves";
  group[0].mayBegin(false);
  const uint64_t later = group[0].submit(other, 0);
  EXPECT_EQ(group[0].side().starts(), 2u);
  const uint64_t theirs[] = {group[1].submit(streamed, 1), group[1].submit(other, 1)};
  ASSERT_TRUE(waitForBoth(group, later, theirs[1])) << "by the lookout";
  EXPECT_FALSE(group[0].side().isComplete(mine));
  group[0].reach(mine);
  ASSERT_TRUE(waitForBoth(group, mine, theirs[0]));
  EXPECT_TRUE(group[0].side().isStartPending());
  group[0].mayBegin(true);
  EXPECT_TRUE(group[0].waitForQuit(kLong));
  group.expectRight(1);
}

/// In strict mode, until a stream waits, they leave all the same, the lookout, too, and come back
/// to look.
TEST(ResidentExecutor, NobodyStaysForStreamsWhereNobodyNeedStay) {
  Group group(2, hostSettings(3));
  HostCollective &streamed = group.add(plan::testing::twoShotAllReduce(2), 700, 1);
  SubmissionSide &side = group[0].side();
  const uint64_t mine = group[0].submitStreamed(streamed, 0);
  group[0].reach(mine);
  ASSERT_TRUE(waitFor([&] { return side.hasLookout(); }));
  side.stayFor(StayFor::Nothing);
  side.restartIfOpen();
  for (uint32_t times = 0; times < 3; ++times) {
    ASSERT_TRUE(group[0].waitForQuit(kLong)) << "all, though a stream is held";
    EXPECT_FALSE(side.hasLookout());
    side.restartIfOpen();
  }
  side.stayFor(StayFor::Anything);
  side.ensureLookout();
  ASSERT_TRUE(waitFor([&] { return side.hasLookout(); }));
  const uint64_t theirs = group[1].submit(streamed, 1);
  ASSERT_TRUE(waitForBoth(group, mine, theirs));
  group.expectRight(1);
  EXPECT_TRUE(group[0].waitForQuit(kLong));
}

/// Streams wait for another daemon: here one stays though no stream will wait for what is open.
TEST(ResidentExecutor, OneStaysForAnythingWhileOtherStreamsWait) {
  Group group(2, hostSettings(3));
  HostCollective &plain = group.add(plan::testing::twoShotAllReduce(2), 700, 1);
  SubmissionSide &side = group[0].side();
  const uint64_t mine = group[0].submit(plain, 0);
  ASSERT_TRUE(group[0].waitForQuit(kLong));
  EXPECT_FALSE(side.hasLookout());
  side.stayFor(StayFor::Anything);
  side.ensureLookout();
  ASSERT_TRUE(waitFor([&] { return side.hasLookout(); }));
  group[0].mayBegin(false); // it does it alone
  const uint64_t theirs = group[1].submit(plain, 1);
  ASSERT_TRUE(waitForBoth(group, mine, theirs));
  group[0].mayBegin(true);
  EXPECT_TRUE(group[0].waitForQuit(kLong));
  group.expectRight(1);
}

/// Later generations come back to help, and find their way with the lookouts before them.
TEST(ResidentExecutor, StreamedAndOtherSubmissionsInConflictingOrdersComplete) {
  constexpr uint32_t kRanks = 3, kCollectives = 4, kIterations = 8;
  Settings settings = hostSettings(2);
  settings.idleLimit = 20'000;
  settings.stuckLimit = 100'000;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Group group(kRanks, settings);
  for (uint32_t c = 0; c < kCollectives; ++c)
    group.add(c % 2 ? plan::testing::ringAllReduce(kRanks)
                    : plan::testing::twoShotAllReduce(kRanks),
              64 + 100 * c, kIterations);
  std::vector<std::thread> threads;
  std::vector<char> complete(kRanks, false);
  for (uint32_t r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      std::mt19937 random(seed + r);
      for (uint32_t i = 0; i < kIterations; ++i) {
        std::vector<uint64_t> requests, gates;
        for (uint32_t c = 0; c < kCollectives; ++c) {
          HostCollective &collective = *group.collectives[(r + c) % kCollectives];
          const bool isStreamed = random() % 2 == 0;
          requests.push_back(isStreamed ? group[r].submitStreamed(collective, r)
                                        : group[r].submit(collective, r));
          if (isStreamed)
            gates.push_back(requests.back());
        }
        std::ranges::shuffle(gates, random);
        for (uint64_t gate : gates) {
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
          group[r].reach(gate);
        }
        for (uint64_t request : requests)
          if (!group[r].wait(request, kLong))
            return;
      }
      complete[r] = true;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (char is : complete)
    ASSERT_TRUE(is);
  group.expectRight(kIterations);
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_TRUE(group[r].waitForQuit(kLong));
}

/// Taken out before its stream has reached it: then that is nothing to anybody.
TEST(ResidentExecutor, AStreamedSubmissionIsWithdrawn) {
  Group group(2, hostSettings(2));
  HostCollective &other = group.add(plan::testing::ringAllReduce(2), 64, 2);
  HostCollective &gone = group.add(plan::testing::ringAllReduce(2), 50, 1);
  auto taken = std::move(group.collectives[1]);
  group.collectives.pop_back();
  const uint64_t request = group[0].submitStreamed(gone, 0);
  ASSERT_TRUE(waitFor([&] { return group[0].side().hasLookout(); }));
  ASSERT_TRUE(group[0].withdraw(request, kLong)) << "the lookout leaves, too, when it is asked to";
  EXPECT_TRUE(group[0].side().isComplete(request)) << "for the stream";
  for (uint32_t i = 0; i < 2; ++i) {
    const uint64_t mine = group[0].submit(other, 0), theirs = group[1].submit(other, 1);
    ASSERT_TRUE(waitForBoth(group, mine, theirs));
    group[0].reach(request);
  }
  group.expectRight(2);
  EXPECT_TRUE(group[0].waitForQuit(kLong));
}

} // namespace
