// Submissions in any order: what the runtime is for. Every test prints what differs with its seed.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

constexpr uint32_t kRanks = 8, kJobs = 8;

std::vector<Job> makeJobs() {
  std::vector<Job> jobs;
  PlanHandle plans[] = {handleOf(ringAllReduce(kRanks)), handleOf(oneShotAllReduce(kRanks)),
                        handleOf(twoShotAllReduce(kRanks))};
  uint64_t count = 64;
  for (uint32_t j = 0; j < kJobs; ++j, count = count * 13 / 4)
    jobs.emplace_back(j, plans[j % 3], count, j % 2 ? DataType::Float32 : DataType::Int32);
  return jobs;
}

/// Order in which a rank submits in an iteration.
using Order = std::function<std::vector<uint32_t>(uint32_t rank, uint32_t iteration)>;

void submitInOrder(std::vector<Job> &jobs, const Ranks &ranks, uint32_t iterations,
                   const Order &order, uint32_t maxDelayMicroseconds = 0) {
  ranks.run([&](uint32_t r) {
    std::mt19937 random(r);
    for (uint32_t iteration = 0; iteration < iterations; ++iteration) {
      std::vector<occlRequest_t> requests;
      for (uint32_t j : order(r, iteration)) {
        if (maxDelayMicroseconds != 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % maxDelayMicroseconds));
        ASSERT_EQ(submitOnceFree(jobs[j], ranks[r], r, &requests.emplace_back()), occlSuccess)
            << occlGetLastError();
      }
      ASSERT_EQ(waitForAll(ranks[r], requests), "");
      ASSERT_EQ(checkAll(jobs, r), "") << "iteration " << iteration;
    }
  });
}

TEST(Chaos, LatinSquareOrders) {
  constexpr uint32_t kIterations = 200 / kSlowness;
  std::vector<Job> jobs = makeJobs();
  Ranks ranks(kRanks);
  submitInOrder(jobs, ranks, kIterations,
                [](uint32_t r, uint32_t i) { return latinOrder(kJobs, r, i); });
  occlStats_t stats{};
  stats.size = sizeof stats;
  ASSERT_EQ(occlCommGetStats(ranks[0], &stats), occlSuccess);
  EXPECT_EQ(stats.submitted, kIterations * kJobs);
  EXPECT_EQ(stats.completed, kIterations * kJobs);
  EXPECT_GT(stats.preemptions, 0u) << "the orders conflict, so something must have been preempted";
}

std::vector<uint32_t> randomOrder(uint32_t r, uint32_t i) {
  constexpr uint32_t kSeed = 20;
  std::vector<uint32_t> order(kJobs);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(kSeed + r * 1000 + i));
  return order;
}

constexpr uint32_t kMostDelay = 300;

TEST(Chaos, RandomOrdersAndDelays) {
  std::vector<Job> jobs = makeJobs();
  Ranks ranks(kRanks);
  submitInOrder(jobs, ranks, 10, randomOrder, kMostDelay);
}

TEST(Chaos, TwoWorkersARank) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.workers = 2;
  std::vector<Job> jobs = makeJobs();
  Ranks ranks(kRanks, config);
  submitInOrder(jobs, ranks, 10 / kSlowness,
                [](uint32_t r, uint32_t i) { return latinOrder(kJobs, r, i); });
}

/// Until an error, which comes soon: long before any deadline. Who has submitted everything of an
/// iteration may hear of it when it submits again.
void expectDeadlockWithoutPreemption(const Order &order, uint32_t maxDelayMicroseconds) {
  occlConfig_t config = withTimeout(10 * 60 * 1000);
  config.preemption = 2;
  std::vector<Job> jobs = makeJobs();
  Ranks ranks(kRanks, config);
  ranks.run([&](uint32_t r) {
    std::mt19937 random(r);
    occlResult_t result = occlSuccess;
    for (uint32_t iteration = 0; iteration < 10 && result == occlSuccess; ++iteration) {
      std::vector<occlRequest_t> requests;
      for (uint32_t j : order(r, iteration)) {
        if (maxDelayMicroseconds != 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % maxDelayMicroseconds));
        if (result == occlSuccess)
          result = submitOnceFree(jobs[j], ranks[r], r, &requests.emplace_back());
      }
      for (occlRequest_t request : requests)
        if (result == occlSuccess)
          result = occlWait(ranks[r], request);
    }
    EXPECT_EQ(result, occlDeadlock) << occlGetLastError();
    std::string text = occlCommGetLastError(ranks[r]);
    EXPECT_NE(text.find("waits for rank"), std::string::npos) << text;
    EXPECT_NE(text.find("allreduce of"), std::string::npos) << text;
  });
}

TEST(Chaos, LatinSquareOrdersWithoutPreemptionAreADeadlock) {
  expectDeadlockWithoutPreemption([](uint32_t r, uint32_t i) { return latinOrder(kJobs, r, i); },
                                  0);
}

TEST(Chaos, RandomOrdersAndDelaysWithoutPreemptionAreADeadlock) {
  expectDeadlockWithoutPreemption(randomOrder, kMostDelay);
}

TEST(Chaos, WithoutPreemptionEqualOrdersWork) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.preemption = 2;
  std::vector<Job> jobs = makeJobs();
  Ranks ranks(kRanks, config);
  submitInOrder(jobs, ranks, 5, [](uint32_t, uint32_t i) { return latinOrder(kJobs, 0, i); });
}

} // namespace
} // namespace occl::communicator::testing
