// Collectives end to end over threads, called in the same order on all ranks.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

void runOnce(Job &job, const Ranks &ranks) {
  ranks.run([&](uint32_t r) {
    occlRequest_t request = 0;
    ASSERT_EQ(job.submit(ranks[r], r, &request), occlSuccess) << occlGetLastError();
    EXPECT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
    EXPECT_EQ(job.check(r), "");
  });
}

class Collectives : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Collectives, AllPlansGiveTheRightResult) {
  uint32_t n = GetParam();
  Ranks ranks(n);
  uint64_t id = 0;
  for (const plan::Plan &plan :
       {ringAllReduce(n), oneShotAllReduce(n), twoShotAllReduce(n), chainBroadcast(n),
        chainReduce(n), ringAllGather(n), ringReduceScatter(n), allToAll(n), shift(n)}) {
    PlanHandle handle = handleOf(plan);
    for (uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{n - 1}, uint64_t{10007}}) {
      Job job(id++, handle, count);
      runOnce(job, ranks);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(NumRanks, Collectives, ::testing::Values(1, 2, 3, 5, 8));

TEST(Collective, ManyInvocationsOfOneCollective) {
  constexpr uint32_t kRanks = 4, kIterations = 300;
  Ranks ranks(kRanks);
  Job job(5, handleOf(twoShotAllReduce(kRanks)), 1000, DataType::Int32);
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < kIterations; ++i) {
      occlRequest_t request = 0;
      ASSERT_EQ(job.submit(ranks[r], r, &request), occlSuccess) << occlGetLastError();
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
      ASSERT_EQ(job.check(r), "");
    }
  });
}

TEST(Collective, SeveralOrdinalsInFlight) {
  constexpr uint32_t kRanks = 3, kInFlight = 6, kRounds = 40;
  Ranks ranks(kRanks);
  PlanHandle handle = handleOf(ringAllReduce(kRanks));
  // One id, but each invocation in flight has buffers of its own.
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < kInFlight; ++j) {
    jobs.emplace_back(9, handle, 5000);
    jobs.back().fill(j);
  }
  ranks.run([&](uint32_t r) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      std::vector<occlRequest_t> requests(kInFlight);
      for (uint32_t j = 0; j < kInFlight; ++j) {
        ASSERT_EQ(submitOnceFree(jobs[j], ranks[r], r, &requests[j]), occlSuccess)
            << occlGetLastError();
      }
      for (uint32_t j = kInFlight; j-- > 0;)
        ASSERT_EQ(occlWait(ranks[r], requests[j]), occlSuccess) << occlGetLastError();
      ASSERT_EQ(checkAll(jobs, r), "");
    }
  });
}

TEST(Collective, TestCompletesWithoutWait) {
  Ranks ranks(2);
  Job job(1, handleOf(ringAllReduce(2)), 100000);
  ranks.run([&](uint32_t r) {
    occlRequest_t request = 0;
    ASSERT_EQ(job.submit(ranks[r], r, &request), occlSuccess);
    occlResult_t result = occlInProgress;
    while (result == occlInProgress)
      result = occlTest(ranks[r], request);
    EXPECT_EQ(result, occlSuccess);
    EXPECT_EQ(job.check(r), "");
  });
}

TEST(Collective, WorkersAloneCompleteWhatHasACallback) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  Job job(1, handleOf(oneShotAllReduce(kRanks)), 1000);
  std::atomic<uint32_t> done{0};
  for (uint32_t r = 0; r < kRanks; ++r) {
    occlCallback_t callback = [](occlRequest_t, occlResult_t result, void *user) {
      EXPECT_EQ(result, occlSuccess);
      static_cast<std::atomic<uint32_t> *>(user)->fetch_add(1);
    };
    ASSERT_EQ(job.submit(ranks[r], r, nullptr, callback, &done), occlSuccess);
  }
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (done.load() < kRanks && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  ASSERT_EQ(done.load(), kRanks);
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(job.check(r), "");
}

TEST(Collective, SubmissionsThatNobodyWaitsForStillRun) {
  Ranks ranks(2);
  Job job(1, handleOf(ringAllReduce(2)), 1000);
  occlRequest_t requests[2];
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(job.submit(ranks[r], r, &requests[r]), occlSuccess);
  }
  // Rank 1's part must be run by its own worker while this thread waits for rank 0's.
  EXPECT_EQ(occlWait(ranks[0], requests[0]), occlSuccess);
  EXPECT_EQ(job.check(0), "");
  EXPECT_EQ(occlWait(ranks[1], requests[1]), occlSuccess);
  EXPECT_EQ(job.check(1), "");
}

TEST(Collective, APlanForOtherSizesIsRefused) {
  plan::Plan plan = ringAllReduce(1);
  plan.minBytes = 64;
  plan.maxBytes = 4095;
  PlanHandle handle = handleOf(std::move(plan));
  Ranks ranks(1);
  for (uint64_t count : {16, 1023})
    EXPECT_EQ(Job(1, handle, count).run(ranks[0], 0), occlSuccess) << occlGetLastError();
  for (uint64_t count : {15, 1024}) {
    EXPECT_EQ(Job(1, handle, count).run(ranks[0], 0), occlInvalidArgument);
    EXPECT_EQ(occlGetLastError(), "the plan is not meant for " + std::to_string(4 * count) +
                                      " bytes, but for 64 to 4095");
  }
}

} // namespace
} // namespace occl::communicator::testing
