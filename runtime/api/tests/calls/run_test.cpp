// Submitting and waiting in one call: results, what it may meet, what it leaves behind.
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
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
        for (int i = 0; i < 5; ++i)
          ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
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
    for (uint32_t i = 0; i < kIterations; ++i) {
      occlRequest_t request = 0;
      const bool first = (r + i) % 2 == 0; // else it comes in when it has ended
      if (first) {
        ASSERT_EQ(submitOnceFree(open, ranks[r], r, &request), occlSuccess);
      }
      ASSERT_EQ(ran.run(ranks[r], r), occlSuccess) << occlGetLastError();
      if (!first) {
        ASSERT_EQ(submitOnceFree(open, ranks[r], r, &request), occlSuccess);
      }
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
      ASSERT_EQ(ran.check(r) + open.check(r), "");
    }
  });
}

/// Two threads of each rank: the second one finds the first one's task claimed.
/// Threads that share the calls' order, and others that start ids of their own.
TEST(Run, SeveralThreadsOfARank) {
  constexpr uint32_t kRanks = 2, kIterations = 2000 / kSlowness;
  Ranks ranks(kRanks);
  Job called(0, inLines(oneShotAllReduce(kRanks)), 16, DataType::Int32);
  std::vector<Job> jobs;
  for (uint64_t id : {1, 2})
    jobs.emplace_back(id, inLines(oneShotAllReduce(kRanks)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    std::vector<std::thread> threads;
    std::mutex turn; // the calls of all have one order; these are alike
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        for (uint32_t i = 0; i < kIterations / 2; ++i) {
          std::lock_guard lock(turn);
          ASSERT_EQ(called.run(ranks[r], r), occlSuccess) << occlGetLastError();
        }
      });
    for (Job &job : jobs)
      threads.emplace_back([&] {
        for (uint32_t i = 0; i < kIterations; ++i) {
          occlRequest_t request = 0;
          ASSERT_EQ(submitOnceFree(job, ranks[r], r, &request), occlSuccess) << occlGetLastError();
          ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(checkAll(jobs, r), "");
    EXPECT_EQ(called.check(r), "");
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
      for (uint32_t i = 0; i < kIterations; ++i) {
        ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
      }
      EXPECT_EQ(job.check(r), "");
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
  auto runFor = [&](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end)
      ASSERT_EQ(job.run(ranks[0], 0), occlSuccess) << occlGetLastError();
  };
  runFor(200ms);
  const uint64_t before = countSleeps();
  runFor(1s);
  EXPECT_LT(countSleeps() - before, 50u);
}

/// Rank 0 has started as many as may be in flight, and rank 1 starts them only when its call has
/// ended: calls need no place among them.
TEST(Run, BesideAsManyAsMayBeInFlight) {
  constexpr uint32_t kMost = 3;
  occlConfig_t config = withTimeout(60000);
  config.maxInFlight = kMost;
  Ranks ranks(2, config);
  for (const PlanHandle &plan : {handleOf(ringAllReduce(2)), inLines(oneShotAllReduce(2))}) {
    Job job(1, plan, 10), called(0, plan, 10);
    ranks.run([&](uint32_t r) {
      std::vector<occlRequest_t> requests(kMost);
      const auto startAll = [&] {
        for (occlRequest_t &request : requests)
          ASSERT_EQ(job.submit(ranks[r], r, &request), occlSuccess) << occlGetLastError();
      };
      if (r == 0)
        startAll();
      EXPECT_EQ(called.run(ranks[r], r), occlSuccess) << occlGetLastError();
      if (r == 1)
        startAll();
      EXPECT_EQ(waitForAll(ranks[r], requests), "");
      EXPECT_EQ(called.check(r), "");
    });
  }
}

TEST(Run, WrongCalls) {
  Ranks ranks(1);
  Job job(1, handleOf(ringAllReduce(1)), 10);
  EXPECT_EQ(job.run(nullptr, 0), occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(), "occlCall: comm and call must not be NULL");
  EXPECT_EQ(job.runOn(ranks[0], nullptr, job.output(0)), occlInvalidArgument);
  EXPECT_EQ(job.run(ranks[0], 0), occlSuccess);
}

/// The peer never comes.
TEST(Run, EndsAtItsDeadline) {
  for (const PlanHandle &plan : {handleOf(twoShotAllReduce(2)), inLines(oneShotAllReduce(2))}) {
    Ranks ranks(2, withTimeout(100));
    Job job(1, plan, 10);
    EXPECT_EQ(job.run(ranks[0], 0), occlTimeout);
    EXPECT_EQ(job.run(ranks[0], 0), occlTimeout); // the communicator has failed
    EXPECT_NE(std::string(occlGetLastError()).find("did not end on rank 0 before its deadline"),
              std::string::npos)
        << occlGetLastError();
  }
}

TEST(Run, EndsWhenAborted) {
  for (auto delay : {0ms, 1ms, 30ms}) { // while it looks, yields, sleeps
    Ranks ranks(2);
    Job job(1, inLines(oneShotAllReduce(2)), 10);
    std::thread runner([&] { EXPECT_EQ(job.run(ranks[0], 0), occlAborted); });
    std::this_thread::sleep_for(delay);
    EXPECT_EQ(occlCommAbort(ranks[1]), occlSuccess);
    runner.join();
  }
}

/// A rank that keeps no id but the last keeps the calls' sequence all the same.
TEST(Run, BesideIdsThatOneRankForgets) {
  constexpr uint32_t kIterations = 60;
  Ranks ranks(2);
  ranks[0]->daemon->setMostActiveSequences(1);
  Job job(3, inLines(oneShotAllReduce(2)), 16, DataType::Int32);
  Job other(4, handleOf(oneShotAllReduce(2)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < kIterations; ++i) {
      if (i % 20 == 10) {
        occlRequest_t request = 0;
        ASSERT_EQ(other.submit(ranks[r], r, &request), occlSuccess) << occlGetLastError();
        ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
      }
      ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
    }
    EXPECT_EQ(job.check(r), "");
  });
}

} // namespace
} // namespace occl::communicator::testing
