// Collectives end to end over threads, called in the same order on all ranks.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/testing/harness.h"
#include "runtime/communicator/testing/steps.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

void runOnce(Job &job, const Ranks &ranks) {
  ranks.run([&](uint32_t r) {
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess) << occlGetLastError();
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

TEST(Collective, StreamsAreForCommunicatorsOnDevices) {
  Ranks ranks(1);
  Job job(1, handleOf(oneShotAllReduce(1)), 10);
  ASSERT_EQ(job.registerOn(ranks[0]), occlSuccess);
  occlRequest_t request = 0;
  EXPECT_EQ(occlSubmitOnStream(ranks[0], 1, job.input(0), job.output(0), nullptr, nullptr, nullptr,
                               &request),
            occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(),
               "occlSubmitOnStream: needs a communicator with deviceKind occlDeviceCuda");
  EXPECT_EQ(occlSubmitOnStream(nullptr, 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
            occlInvalidArgument);
  EXPECT_EQ(occlEnqueueAndWait(ranks[0], 1, job.input(0), job.output(0), nullptr),
            occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(),
               "occlEnqueueAndWait: needs a communicator with deviceKind occlDeviceCuda");
  EXPECT_EQ(occlEnqueueAndWait(nullptr, 1, nullptr, nullptr, nullptr), occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(), "occlEnqueueAndWait: comm must not be NULL");
  occlCollective_t staying = OCCL_COLLECTIVE_INITIALIZER;
  auto plan = handleOf(oneShotAllReduce(1));
  occlPlan_t handle = plan.get();
  staying.id = 2;
  staying.plans = &handle;
  staying.numPlans = 1;
  staying.stayMicroseconds = 100;
  EXPECT_EQ(occlRegister(ranks[0], &staying), occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(),
               "stayMicroseconds needs a communicator with deviceKind occlDeviceCuda");
  staying.stayMicroseconds = 10001;
  EXPECT_EQ(occlRegister(ranks[0], &staying), occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(), "stayMicroseconds must be at most 10000");
}

TEST(Collective, ManyInvocationsOfOneCollective) {
  constexpr uint32_t kRanks = 4, kIterations = 300;
  Ranks ranks(kRanks);
  Job job(5, handleOf(twoShotAllReduce(kRanks)), 1000, DataType::Int32);
  ranks.run([&](uint32_t r) {
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
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
    ASSERT_EQ(jobs[0].registerOn(ranks[r]), occlSuccess);
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
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
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
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
    occlCallback_t callback = [](occlRequest_t, occlResult_t result, void *user) {
      EXPECT_EQ(result, occlSuccess);
      static_cast<std::atomic<uint32_t> *>(user)->fetch_add(1);
    };
    ASSERT_EQ(occlSubmit(ranks[r], job.id(), job.input(r), job.output(r), callback, &done, nullptr),
              occlSuccess);
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
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
    ASSERT_EQ(job.submit(ranks[r], r, &requests[r]), occlSuccess);
  }
  // Rank 1's part must be run by its own worker while this thread waits for rank 0's.
  EXPECT_EQ(occlWait(ranks[0], requests[0]), occlSuccess);
  EXPECT_EQ(job.check(0), "");
  EXPECT_EQ(occlWait(ranks[1], requests[1]), occlSuccess);
  EXPECT_EQ(job.check(1), "");
}

/// What registering floats with plans for these sizes says.
std::string registered(const std::vector<std::pair<uint64_t, uint64_t>> &sizes, uint64_t count) {
  std::vector<PlanHandle> handles;
  std::vector<occlPlan_t> plans;
  for (auto [least, most] : sizes) {
    plan::Plan plan = ringAllReduce(1);
    plan.minBytes = least;
    plan.maxBytes = most;
    plans.push_back(handles.emplace_back(handleOf(std::move(plan))).get());
  }
  Ranks ranks(1);
  occlCollective_t given = OCCL_COLLECTIVE_INITIALIZER;
  given.plans = plans.data();
  given.numPlans = static_cast<uint32_t>(plans.size());
  given.count = count;
  return occlRegister(ranks[0], &given) == occlSuccess ? "" : occlGetLastError();
}

TEST(Collective, WithoutPlanForItsSizeIsToldTheSizes) {
  EXPECT_EQ(registered({{64, 4095}, {8192, ~0ull}}, 16), "");
  EXPECT_EQ(registered({{64, 4095}, {8192, ~0ull}}, 15),
            "none of the 2 plans is meant for 60 bytes, but for 64 to 4095, 8192 and more");
  EXPECT_EQ(registered({{64, 4095}, {8192, ~0ull}}, 1024),
            "none of the 2 plans is meant for 4096 bytes, but for 64 to 4095, 8192 and more");
  EXPECT_EQ(
      registered(std::vector<std::pair<uint64_t, uint64_t>>(9, {8, 9}), 1),
      "none of the 9 plans is meant for 4 bytes, but for 8 to 9, 8 to 9, 8 to 9, 8 to 9, 8 to "
      "9, 8 to 9, 8 to 9, 8 to 9, ...");
}

} // namespace
} // namespace occl::communicator::testing
