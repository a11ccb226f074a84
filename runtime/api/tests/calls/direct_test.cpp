// Collectives whose ranks access each other's buffers: any order of submission, invocations one
// after another on the same buffers, and what is said where it cannot work.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

std::vector<Job> makeJobs(uint32_t numRanks) {
  std::vector<Job> jobs;
  PlanHandle plans[] = {handleOf(directAllReduce(numRanks)), handleOf(directAllGather(numRanks)),
                        handleOf(twoShotAllReduce(numRanks))};
  uint64_t id = 0;
  for (uint64_t count : {0, 1, 63, 5000})
    for (const PlanHandle &plan : plans)
      jobs.emplace_back(id++, plan, count, count % 2 ? DataType::Float32 : DataType::Int32);
  return jobs;
}

class Direct : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Direct, AnyOrderOfSubmission) {
  std::vector<Job> jobs = makeJobs(GetParam());
  Ranks ranks(GetParam());
  constexpr uint32_t kSeed = 5;
  ranks.run([&](uint32_t r) {
    std::mt19937 random(kSeed + r);
    std::vector<uint32_t> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    for (uint32_t iteration = 0; iteration < 20 / kSlowness + 1; ++iteration) {
      std::shuffle(order.begin(), order.end(), random);
      std::vector<uint32_t> twice = order;
      twice.insert(twice.end(), order.begin(), order.end());
      ASSERT_EQ(runInOrder(ranks[r], jobs, r, twice), "")
          << "iteration " << iteration << ", seed " << kSeed;
    }
  });
}

/// Each invocation reduces in place what the one before has left: a peer that came too early, or
/// left too late, would see or spoil another one's values.
TEST_P(Direct, InvocationsDoNotOverlap) {
  const uint32_t numRanks = GetParam();
  constexpr uint64_t kCount = 4099;
  constexpr uint32_t kInFlight = 6;
  Ranks ranks(numRanks);
  PlanHandle plan = handleOf(directAllReduce(numRanks));
  ranks.run([&](uint32_t r) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.plan = plan.get();
    call.id = 1;
    call.count = kCount;
    call.dataType = occlInt32;
    std::vector<uint32_t> buffer(kCount);
    for (uint32_t i = 0; i < kCount; ++i)
      buffer[i] = i + r;
    std::vector<occlRequest_t> requests(kInFlight);
    call.sendBuffer = call.recvBuffer = buffer.data();
    for (occlRequest_t &request : requests)
      ASSERT_EQ(occlStart(ranks[r], &call, nullptr, nullptr, &request), occlSuccess)
          << occlGetLastError();
    for (occlRequest_t request : requests)
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlCommGetLastError(ranks[r]);
    uint32_t factor = 1;
    for (uint32_t i = 1; i < kInFlight; ++i)
      factor *= numRanks;
    for (uint32_t i = 0; i < kCount; ++i)
      ASSERT_EQ(buffer[i], (i * numRanks + numRanks * (numRanks - 1) / 2) * factor) << i;
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Direct, ::testing::Values(1, 2, 3, 8));

TEST(DirectAccess, ACycleOfSignalsIsReportedWithoutPreemption) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.preemption = 2;
  Ranks ranks(2, config);
  PlanHandle plan = handleOf(directAllReduce(2));
  std::vector<Job> jobs;
  for (uint64_t id : {0, 1})
    jobs.emplace_back(id, plan, 100);
  ranks.run([&](uint32_t r) {
    occlRequest_t requests[2];
    for (uint32_t j : {r, 1 - r})
      ASSERT_EQ(jobs[j].submit(ranks[r], r, &requests[j]), occlSuccess) << occlGetLastError();
    for (uint32_t j : {r, 1 - r})
      EXPECT_EQ(occlWait(ranks[r], requests[j]), occlDeadlock);
    std::string text = occlCommGetLastError(ranks[r]);
    EXPECT_NE(text.find("a signal"), std::string::npos) << text;
  });
}

} // namespace
} // namespace occl::communicator::testing
