// Submitting and waiting in one call: results, what it may meet, what it leaves behind.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/testing/harness.h"
#include "runtime/communicator/testing/steps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

PlanHandle inLines(plan::Plan plan) {
  plan.protocol = plan::Protocol::LL128;
  return handleOf(std::move(plan));
}

occlResult_t runJob(Job &job, occlComm_t comm, uint32_t rank) {
  return occlRun(comm, job.id(), job.input(rank), job.output(rank));
}

occlStats_t statsOf(occlComm_t comm) {
  occlStats_t stats{};
  stats.size = sizeof stats;
  EXPECT_EQ(occlCommGetStats(comm, &stats), occlSuccess);
  return stats;
}

class RunOf : public ::testing::TestWithParam<uint32_t> {};

/// Of one thread block and of several, with lines and without, small and large.
TEST_P(RunOf, AllPlansGiveTheRightResult) {
  const uint32_t n = GetParam();
  Ranks ranks(n);
  std::vector<PlanHandle> plans;
  for (auto make : {ringAllReduce, oneShotAllReduce, twoShotAllReduce, ringAllGather, allToAll}) {
    plans.push_back(handleOf(make(n)));
    plans.push_back(inLines(make(n)));
  }
  uint64_t id = 0;
  for (const PlanHandle &plan : plans)
    for (uint64_t count : {0, 1, 16, 10007}) {
      Job job(id++, plan, count, DataType::Int32);
      ranks.run([&](uint32_t r) {
        ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess) << occlGetLastError();
        for (int i = 0; i < 5; ++i)
          ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
        EXPECT_EQ(job.check(r), "");
      });
    }
}

INSTANTIATE_TEST_SUITE_P(NumRanks, RunOf, ::testing::Values(1, 2, 3, 8));

/// What the other ranks have in flight meanwhile is no obstacle, nor what this one has.
TEST(Run, BesideWhatIsInFlight) {
  constexpr uint32_t kRanks = 4, kIterations = 200;
  Ranks ranks(kRanks);
  Job open(1, handleOf(ringAllReduce(kRanks)), 3000, DataType::Int32);
  Job ran(2, inLines(oneShotAllReduce(kRanks)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    ASSERT_EQ(open.registerOn(ranks[r]), occlSuccess);
    ASSERT_EQ(ran.registerOn(ranks[r]), occlSuccess);
    for (uint32_t i = 0; i < kIterations; ++i) {
      occlRequest_t request = 0;
      const bool first = (r + i) % 2 == 0; // else it comes in when it has ended
      if (first) {
        ASSERT_EQ(submitOnceFree(open, ranks[r], r, &request), occlSuccess);
      }
      ASSERT_EQ(runJob(ran, ranks[r], r), occlSuccess) << occlGetLastError();
      if (!first) {
        ASSERT_EQ(submitOnceFree(open, ranks[r], r, &request), occlSuccess);
      }
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
      ASSERT_EQ(ran.check(r) + open.check(r), "");
    }
  });
}

/// Two threads of each rank: the second one finds the first one's task claimed.
TEST(Run, SeveralThreadsOfARank) {
  constexpr uint32_t kRanks = 2, kIterations = 2000 / kSlowness;
  Ranks ranks(kRanks);
  std::vector<Job> jobs;
  for (uint64_t id : {1, 2, 3})
    jobs.emplace_back(id, inLines(oneShotAllReduce(kRanks)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    std::vector<std::thread> threads;
    for (Job &job : jobs)
      threads.emplace_back([&] {
        ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
        for (uint32_t i = 0; i < kIterations; ++i)
          ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(checkAll(jobs, r), "");
  });
}

/// It takes no request, and memory comes back: any number of calls with room for one.
TEST(Run, TakesNoRequests) {
  constexpr uint32_t kIterations = 300;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.maxInFlight = 1;
  Ranks ranks(2, config);
  for (const PlanHandle &plan : {handleOf(twoShotAllReduce(2)), inLines(oneShotAllReduce(2))}) {
    Job job(7, plan, 100, DataType::Int32);
    ranks.run([&](uint32_t r) {
      ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
      for (uint32_t i = 0; i < kIterations; ++i) {
        occlResult_t result = occlAgain; // while the peer has not finished those before
        while (result == occlAgain)
          result = runJob(job, ranks[r], r);
        ASSERT_EQ(result, occlSuccess) << occlGetLastError();
      }
      EXPECT_EQ(job.check(r), "");
      EXPECT_EQ(occlDeregister(ranks[r], 7), occlSuccess) << occlGetLastError();
    });
  }
  for (uint32_t r = 0; r < 2; ++r) {
    occlStats_t stats = statsOf(ranks[r]);
    EXPECT_EQ(stats.submitted, 2 * kIterations);
    EXPECT_EQ(stats.completed, 2 * kIterations);
    EXPECT_EQ(stats.failed, 0u);
  }
}

/// How often the threads of this process have left the processor because they slept.
uint64_t countSleeps() {
  uint64_t sleeps = 0;
  for (const auto &thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string word; status >> word;)
      if (uint64_t number = 0; word == "voluntary_ctxt_switches:" && status >> number)
        sleeps += number;
  }
  return sleeps;
}

/// Whoever submits and waits later keeps workers on the alert; here nobody needs them.
TEST(Run, LeavesWorkersAsleep) {
  Ranks ranks(1);
  Job job(7, handleOf(oneShotAllReduce(1)), 100, DataType::Int32);
  ASSERT_EQ(job.registerOn(ranks[0]), occlSuccess);
  auto runFor = [&](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end)
      ASSERT_EQ(runJob(job, ranks[0], 0), occlSuccess) << occlGetLastError();
  };
  runFor(200ms);
  const uint64_t before = countSleeps();
  runFor(1s);
  EXPECT_LT(countSleeps() - before, 50u);
}

TEST(Run, AgainWhenTooMuchIsInFlight) {
  occlConfig_t config = withTimeout(60000);
  config.maxInFlight = 2;
  Ranks ranks(2, config);
  Job job(1, handleOf(ringAllReduce(2)), 10);
  occlRequest_t requests[2];
  ASSERT_EQ(job.registerOn(ranks[0]), occlSuccess);
  for (occlRequest_t &request : requests)
    ASSERT_EQ(job.submit(ranks[0], 0, &request), occlSuccess);
  EXPECT_EQ(runJob(job, ranks[0], 0), occlAgain);
  EXPECT_NE(std::string(occlGetLastError()).find("an invocation: 2 are in flight; held by"),
            std::string::npos)
      << occlGetLastError();
  EXPECT_EQ(occlCommAbort(ranks[0]), occlSuccess);
}

TEST(Run, WrongCalls) {
  Ranks ranks(1);
  Job job(1, handleOf(ringAllReduce(1)), 10);
  ASSERT_EQ(job.registerOn(ranks[0]), occlSuccess);
  EXPECT_EQ(occlRun(nullptr, 1, job.input(0), job.output(0)), occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(), "occlRun: comm must not be NULL");
  EXPECT_EQ(occlRun(ranks[0], 2, job.input(0), job.output(0)), occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(), "no collective with id 2 is registered");
  EXPECT_EQ(occlRun(ranks[0], 1, nullptr, job.output(0)), occlInvalidArgument);
  EXPECT_EQ(runJob(job, ranks[0], 0), occlSuccess);
}

/// The peer never comes.
TEST(Run, EndsAtItsDeadline) {
  for (const PlanHandle &plan : {handleOf(twoShotAllReduce(2)), inLines(oneShotAllReduce(2))}) {
    Ranks ranks(2, withTimeout(100));
    Job job(1, plan, 10);
    ASSERT_EQ(job.registerOn(ranks[0]), occlSuccess);
    EXPECT_EQ(runJob(job, ranks[0], 0), occlTimeout);
    EXPECT_EQ(runJob(job, ranks[0], 0), occlTimeout); // the communicator has failed
    EXPECT_NE(std::string(occlGetLastError()).find("did not end on rank 0 before its deadline"),
              std::string::npos)
        << occlGetLastError();
  }
}

TEST(Run, EndsWhenAborted) {
  for (auto delay : {0ms, 1ms, 30ms}) { // while it looks, yields, sleeps
    Ranks ranks(2);
    Job job(1, inLines(oneShotAllReduce(2)), 10);
    ASSERT_EQ(job.registerOn(ranks[0]), occlSuccess);
    std::thread runner([&] { EXPECT_EQ(runJob(job, ranks[0], 0), occlAborted); });
    std::this_thread::sleep_for(delay);
    EXPECT_EQ(occlCommAbort(ranks[1]), occlSuccess);
    runner.join();
  }
}

/// One rank registers anew: what the other remembers of its blocks is not what counts any more.
TEST(Run, RegisteredAnewByOneRankOnly) {
  constexpr uint32_t kIterations = 60;
  Ranks ranks(2);
  Job job(3, inLines(oneShotAllReduce(2)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
    for (uint32_t i = 0; i < kIterations; ++i) {
      if (r == 0 && i % 20 == 10) {
        ASSERT_EQ(occlDeregister(ranks[r], 3), occlSuccess) << occlGetLastError();
        ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
      }
      ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
    }
    EXPECT_EQ(job.check(r), "");
  });
}

} // namespace
} // namespace occl::communicator::testing
