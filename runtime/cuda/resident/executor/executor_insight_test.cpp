// What executors count and record of what they do.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/resident/testing/executor_group.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;
using namespace std::chrono_literals;

namespace {

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
