#include "plan/testing/example_plans.h"
#include "runtime/base/deadline.h"
#include "runtime/cuda/resident/executor.h"
#include "runtime/cuda/resident/testing/host_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;
using namespace std::chrono_literals;

namespace {

constexpr auto kLong = 60s;

/// Executors of the host are slow: they share few processors.
Settings hostSettings(uint32_t numExecutors) {
  Settings settings;
  settings.numExecutors = numExecutors;
  settings.idleLimit = 2'000'000;
  settings.stuckLimit = 20'000'000;
  return settings;
}

class Group {
public:
  Group(uint32_t numRanks, const Settings &settings) {
    for (uint32_t r = 0; r < numRanks; ++r)
      ranks.push_back(std::make_unique<HostRank>(settings));
  }
  HostCollective &add(const plan::Plan &plan, uint64_t count, uint32_t invocations) {
    collectives.push_back(std::make_unique<HostCollective>(
        plan, count, invocations, static_cast<uint32_t>(collectives.size())));
    return *collectives.back();
  }
  uint32_t numRanks() const { return static_cast<uint32_t>(ranks.size()); }
  HostCollective &collective(uint32_t number) { return *collectives[number]; }
  HostRank &operator[](uint32_t rank) { return *ranks[rank]; }

  /// Every rank submits all collectives, rank r beginning at the r-th, and waits for all of them,
  /// again and again. False: something was not complete in time.
  /// `pause`: between iterations, times 0 to 15.
  bool runInLatinSquareOrder(uint32_t iterations, std::chrono::milliseconds atMost,
                             std::chrono::microseconds pause = {}) {
    std::vector<std::thread> threads;
    std::vector<char> complete(numRanks(), false);
    for (uint32_t r = 0; r < numRanks(); ++r)
      threads.emplace_back([&, r] {
        for (uint32_t i = 0; i < iterations; ++i) {
          std::vector<uint64_t> requests;
          for (uint32_t c = 0; c < collectives.size(); ++c)
            requests.push_back(ranks[r]->submit(*collectives[(r + c) % collectives.size()], r));
          for (uint64_t request : requests)
            if (!ranks[r]->wait(request, atMost))
              return;
          std::this_thread::sleep_for(pause * (i % 16));
        }
        complete[r] = true;
      });
    for (std::thread &thread : threads)
      thread.join();
    return std::ranges::all_of(complete, [](char is) { return is != 0; });
  }
  void expectRight(uint32_t invocations) {
    for (auto &collective : collectives)
      for (uint32_t i = 0; i < invocations; ++i)
        EXPECT_TRUE(collective->isRight(i)) << "invocation " << i;
  }
  uint64_t total(Count what) {
    uint64_t sum = 0;
    for (auto &rank : ranks)
      sum += rank->side().total(what);
    return sum;
  }

  std::vector<std::unique_ptr<HostCollective>> collectives;

private:
  std::vector<std::unique_ptr<HostRank>> ranks; // end before the collectives
};

TEST(ResidentExecutor, OneRankOneCollective) {
  Group group(1, hostSettings(1));
  HostCollective &collective = group.add(plan::testing::oneShotAllReduce(1), 10, 1);
  ASSERT_TRUE(group[0].wait(group[0].submit(collective, 0), kLong));
  group.expectRight(1);
}

/// Of one thread block, alone: the executor that has nothing else to do begins it, also when nobody
/// has looked at the ring for long, and enters it nowhere; else it would be known when it was taken
/// in and when it began.
TEST(ResidentExecutor, WhatComesAloneIsBegunAndNotEntered) {
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
TEST(ResidentExecutor, WhatIsBegunAtOnceIsAnnouncedToo) {
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
TEST(ResidentExecutor, WhatIsHandedToWhoLeavesGoesOn) {
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
TEST(ResidentExecutor, WhatIsWithdrawnLeavesTheOthersAlone) {
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

constexpr auto kShort = 100ms;

bool waitFor(const std::function<bool()> &holds) {
  for (auto end = std::chrono::steady_clock::now() + kLong; std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(1ms))
    if (holds())
      return true;
  return false;
}

/// A request of each rank; executors of all that left are started again.
bool waitForBoth(Group &group, uint64_t mine, uint64_t theirs) {
  return waitFor([&] {
    group[0].side().restartIfOpen();
    group[1].side().restartIfOpen();
    return group[0].side().isComplete(mine) && group[1].side().isComplete(theirs);
  });
}

/// Of several thread blocks, alone, with executors that have nothing to do: each is handed one.
TEST(ResidentExecutor, WhatComesAloneIsHandedToIdleExecutors) {
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

/// In strict mode they leave all the same, the lookout, too, and come back to look.
TEST(ResidentExecutor, NobodyStaysForStreamsWhereNobodyNeedStay) {
  Group group(2, hostSettings(3));
  HostCollective &streamed = group.add(plan::testing::twoShotAllReduce(2), 700, 1);
  SubmissionSide &side = group[0].side();
  const uint64_t mine = group[0].submitStreamed(streamed, 0);
  group[0].reach(mine);
  ASSERT_TRUE(waitFor([&] { return side.hasLookout(); }));
  side.letAllLeave(true);
  side.restartIfOpen();
  for (uint32_t times = 0; times < 3; ++times) {
    ASSERT_TRUE(group[0].waitForQuit(kLong)) << "all, though a stream is held";
    EXPECT_FALSE(side.hasLookout());
    side.restartIfOpen();
  }
  side.letAllLeave(false);
  side.ensureLookout();
  ASSERT_TRUE(waitFor([&] { return side.hasLookout(); }));
  const uint64_t theirs = group[1].submit(streamed, 1);
  ASSERT_TRUE(waitForBoth(group, mine, theirs));
  group.expectRight(1);
  EXPECT_TRUE(group[0].waitForQuit(kLong));
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

TEST(ResidentExecutor, CountsByCollectiveAndThreadBlock) {
  constexpr uint32_t kIterations = 4;
  Group group(2, hostSettings(1));
  group.add(plan::testing::twoShotAllReduce(2), 100, kIterations);
  group.add(plan::testing::ringAllReduce(2), 100, kIterations);
  ASSERT_TRUE(group.runInLatinSquareOrder(kIterations, kLong));
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_TRUE(group[r].waitForQuit(kLong));
  uint64_t visits = 0, moves = 0, preemptions = 0;
  for (auto &collective : group.collectives)
    for (uint32_t r = 0; r < 2; ++r)
      for (uint32_t b = 0; b < kMaxTasks; ++b) {
        const BlockCounts &counts = collective->counts(r, b);
        visits += counts.visits;
        moves += counts.moves;
        preemptions += counts.preemptions;
        EXPECT_LE(counts.moves, counts.visits);
        EXPECT_GE(counts.slices, counts.moves == 0 ? 0 : kIterations);
        uint64_t waits = 0, waitNs = 0;
        for (uint32_t reason = 0; reason < BlockCounts::kReasons; ++reason) {
          waits += counts.waits[reason];
          waitNs += counts.waitNs[reason];
        }
        EXPECT_TRUE(waits != 0 || waitNs == 0);
        EXPECT_LE(counts.longestQueue, counts.queueLengths);
      }
  EXPECT_EQ(visits, group.total(Count::Visits));
  EXPECT_LE(moves, group.total(Count::Moves) + group.total(Count::Finished));
  EXPECT_EQ(preemptions, group.total(Count::Preemptions));
}

/// One rank comes late: until then nobody knows that all have announced it. In two ways: alone, and
/// while others are open.
TEST(ResidentExecutor, CountsWhenInvocationsWereBegunAndAnnounced) {
  constexpr uint64_t kLate = 400'000'000, kNearlyLate = 300'000'000; // beside compilers, too
  for (uint32_t others : {0u, 3u}) {
    Group group(2, hostSettings(2));
    HostCollective &late = group.add(plan::testing::twoShotAllReduce(2), 100, 1);
    for (uint32_t c = 0; c < others; ++c)
      group.add(plan::testing::twoShotAllReduce(2), 100, 1);
    std::vector<std::pair<uint32_t, uint64_t>> requests;
    requests.emplace_back(0, group[0].submit(late, 0));
    for (uint32_t c = 0; c < others; ++c)
      for (uint32_t r = 0; r < 2; ++r)
        requests.emplace_back(r, group[r].submit(group.collective(1 + c), r));
    std::this_thread::sleep_for(std::chrono::nanoseconds(kLate));
    requests.emplace_back(1, group[1].submit(late, 1));
    std::vector<std::thread> waiting; // at a time, as each starts its rank's executors again
    std::array<bool, 2> areComplete = {true, true};
    for (uint32_t r = 0; r < 2; ++r)
      waiting.emplace_back([&, r] {
        for (auto [rank, request] : requests)
          areComplete[r] = areComplete[r] && (rank != r || group[r].wait(request, kLong));
      });
    for (std::thread &thread : waiting)
      thread.join();
    ASSERT_TRUE(areComplete[0] && areComplete[1]);
    for (uint32_t r = 0; r < 2; ++r)
      ASSERT_TRUE(group[r].waitForQuit(kLong));
    EXPECT_GE(late.counts(0, 0).announceNs, kNearlyLate) << others << " others";
    EXPECT_LT(late.counts(1, 0).announceNs, kNearlyLate) << others << " others";
    EXPECT_LT(late.counts(0, 0).startNs, kNearlyLate) << others << " others";
    for (uint32_t r = 0; r < 2; ++r) {
      EXPECT_LE(late.counts(r, 0).startNs, late.counts(r, 0).announceNs);
      EXPECT_EQ(late.counts(r, 1).announceNs, 0u) << "thread block 0's alone";
    }
  }
}

/// Every submission is taken in once and completed once, every task finished once, in this order.
void expectAllMarks(HostRank &rank, uint32_t submissions, uint32_t blocks) {
  std::map<uint32_t, std::map<Moment, uint32_t>> counts; // by sequence
  std::map<uint32_t, uint64_t> takenIn, completed;
  for (uint32_t e = 0; e < 2; ++e) {
    const MarkRing &ring = rank.marksOf(e);
    uint64_t before = 0;
    for (uint64_t i = 0; i < ring.written; ++i) {
      const MarkView mark = decode(ring.marks[i]);
      EXPECT_GE(mark.time, before) << "of one executor they come in order";
      before = mark.time;
      ++counts[mark.sequence][mark.moment];
      if (mark.moment == Moment::TakenIn)
        takenIn[mark.sequence] = mark.time;
      if (mark.moment == Moment::Completed)
        completed[mark.sequence] = mark.time;
    }
  }
  EXPECT_EQ(counts.size(), submissions);
  for (auto &[sequence, moments] : counts) {
    EXPECT_EQ(moments[Moment::TakenIn], 1u);
    EXPECT_EQ(moments[Moment::Finished], blocks);
    EXPECT_EQ(moments[Moment::Completed], 1u);
    EXPECT_EQ(moments[Moment::Visit], moments[Moment::Finished] + moments[Moment::Left]);
    EXPECT_LE(takenIn[sequence], completed[sequence]);
  }
}

TEST(ResidentExecutor, MarksSayWhatHappenedToEveryTask) {
  constexpr uint32_t kIterations = 6, kBlocks = 4, kAttempts = 50;
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    Group group(2, hostSettings(2));
    group.add(plan::testing::twoShotAllReduce(2), 100, kIterations);
    group.add(plan::testing::twoShotAllReduce(2), 300, kIterations);
    for (uint32_t r = 0; r < 2; ++r)
      group[r].trace();
    ASSERT_TRUE(group.runInLatinSquareOrder(kIterations, kLong));
    // A rank that waits long for the other's threads makes many visits in vain.
    bool haveFit = true;
    for (uint32_t r = 0; r < 2; ++r) {
      ASSERT_TRUE(group[r].waitForQuit(kLong));
      for (uint32_t e = 0; e < 2; ++e)
        haveFit = haveFit && group[r].marksOf(e).written <= MarkRing::kMarks;
    }
    if (!haveFit)
      continue;
    for (uint32_t r = 0; r < 2; ++r)
      expectAllMarks(group[r], 2 * kIterations, kBlocks);
    return;
  }
  FAIL() << "in none of " << kAttempts << " runs all marks have fit in their rings";
}

/// One executor, several tasks: blocked ones are preempted, what moved is saved and loaded again.
TEST(ResidentExecutor, CountsPreemptionsAndContexts) {
  constexpr uint32_t kIterations = 3;
  Group group(3, hostSettings(1));
  for (uint32_t c = 0; c < 6; ++c)
    group.add(plan::testing::ringAllReduce(3), 300, kIterations);
  ASSERT_TRUE(group.runInLatinSquareOrder(kIterations, kLong));
  for (uint32_t r = 0; r < 3; ++r)
    ASSERT_TRUE(group[r].waitForQuit(kLong));
  EXPECT_EQ(group.total(Count::Finished), 3u * 6 * kIterations);
  EXPECT_GE(group.total(Count::Visits), group.total(Count::Moves));
  EXPECT_GT(group.total(Count::Moves), 0u);
  EXPECT_LE(group.total(Count::ContextSaves), group.total(Count::Moves));
}

} // namespace
