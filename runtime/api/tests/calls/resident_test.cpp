// Small collectives in lines, whose ranks need no announcement of each other once they know where
// each other's blocks lie: right results whatever the order, and what is said where ranks disagree.
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

PlanHandle inLines(plan::Plan plan, plan::Protocol protocol = plan::Protocol::LL128) {
  plan.protocol = protocol;
  return handleOf(std::move(plan));
}

std::vector<Job> makeJobs(uint32_t numRanks) {
  std::vector<Job> jobs;
  uint64_t id = 0;
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::LL128})
    for (uint64_t count : {1, 16, 200, 3000})
      for (auto make : {oneShotAllReduce, twoShotAllReduce, ringAllGather, allToAll})
        jobs.emplace_back(id++, inLines(make(numRanks), protocol), count, DataType::Int32);
  return jobs;
}

/// Every rank in an order of its own, two invocations of each collective at once.
std::string iterate(occlComm_t comm, std::vector<Job> &jobs, uint32_t rank, uint32_t iterations) {
  constexpr uint32_t kSeed = 11;
  std::string wrong;
  std::mt19937 random(kSeed + rank);
  std::vector<uint32_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t iteration = 0; iteration < iterations && wrong.empty(); ++iteration) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<uint32_t> twice = order;
    twice.insert(twice.end(), order.begin(), order.end());
    wrong = runInOrder(comm, jobs, rank, twice);
  }
  return wrong;
}

TEST(Resident, AnyOrderOfSubmissionBetweenThreads) {
  constexpr uint32_t kRanks = 4;
  std::vector<Job> jobs = makeJobs(kRanks);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) { ASSERT_EQ(iterate(ranks[r], jobs, r, 30 / kSlowness + 1), ""); });
}

TEST(Resident, AnyOrderOfSubmissionBetweenProcesses) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "resident", [](occlComm_t comm, uint32_t rank) {
    std::vector<Job> jobs = makeJobs(kRanks);
    return iterate(comm, jobs, rank, 20);
  });
}

void runOnce(const Ranks &ranks, Job &job, uint32_t rank) {
  occlRequest_t request = 0;
  ASSERT_EQ(job.submit(ranks[rank], rank, &request), occlSuccess) << occlGetLastError();
  ASSERT_EQ(occlWait(ranks[rank], request), occlSuccess) << occlCommGetLastError(ranks[rank]);
  ASSERT_EQ(job.check(rank), "");
}

TEST(Resident, CalledWithOtherCounts) {
  constexpr uint32_t kRanks = 3;
  std::vector<Job> jobs;
  for (uint64_t count : {10, 500, 10})
    jobs.emplace_back(5, inLines(oneShotAllReduce(kRanks)), count);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    for (Job &job : jobs) {
      for (int i = 0; i < 20; ++i)
        ASSERT_NO_FATAL_FAILURE(runOnce(ranks, job, r));
    }
  });
}

/// Rank 1 forgets the id and comes back to it: then its blocks lie elsewhere, and the others
/// notice.
TEST(Resident, ForgottenByOneRankOnly) {
  constexpr uint32_t kRanks = 3;
  Job job(5, inLines(oneShotAllReduce(kRanks)), 10),
      other(6, handleOf(oneShotAllReduce(kRanks)), 10);
  Ranks ranks(kRanks);
  ranks[1]->daemon->setMostActiveSequences(1);
  ranks.run([&](uint32_t r) {
    for (int i = 0; i < 60; ++i) {
      ASSERT_NO_FATAL_FAILURE(runOnce(ranks, job, r));
      if (i % 20 == 19) {
        ASSERT_NO_FATAL_FAILURE(runOnce(ranks, other, r));
      }
    }
  });
}

/// Forgetting is of use to nobody if others keep the id: then it has its blocks again at once, and
/// data come where they look.
TEST(Resident, IsSoAgainWhenItComesBack) {
  constexpr uint32_t kRanks = 2;
  Job job(5, inLines(oneShotAllReduce(kRanks)), 10),
      other(6, handleOf(oneShotAllReduce(kRanks)), 10);
  Ranks ranks(kRanks);
  ranks[1]->daemon->setMostActiveSequences(1);
  ranks.run([&](uint32_t r) {
    for (int i = 0; i < 5; ++i)
      ASSERT_NO_FATAL_FAILURE(runOnce(ranks, job, r));
    ASSERT_NO_FATAL_FAILURE(runOnce(ranks, other, r));
    ASSERT_NO_FATAL_FAILURE(runOnce(ranks, job, r));
    bool isResident = false;
    ranks[r]->daemon->inspect(
        5, [&](const daemon::IdState &sequence) { isResident = sequence.resident != nullptr; });
    EXPECT_TRUE(isResident) << "rank " << r;
  });
}

TEST(Resident, ADisagreementIsFound) {
  constexpr uint32_t kRanks = 2;
  Job job(5, inLines(oneShotAllReduce(kRanks)), 10), other(5, inLines(oneShotAllReduce(kRanks)), 9);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    ASSERT_NO_FATAL_FAILURE(runOnce(ranks, job, r));
    Job &next = r == 1 ? other : job;
    occlRequest_t request = 0;
    occlResult_t result = next.submit(ranks[r], r, &request);
    if (result == occlSuccess)
      result = occlWait(ranks[r], request);
    EXPECT_EQ(result, occlMismatch);
    std::string text = occlCommGetLastError(ranks[r]);
    EXPECT_NE(text.find("count 10"), std::string::npos) << text;
    EXPECT_NE(text.find("count 9"), std::string::npos) << text;
  });
}

/// Who waits for data where a rank's blocks lie says whether that rank has called it at all: by the
/// thread that calls, and by the executors of what is started.
TEST(Resident, WhoHasNotCalledIsSaid) {
  constexpr uint32_t kRanks = 2;
  for (bool isStarted : {false, true}) {
    Job job(5, inLines(oneShotAllReduce(kRanks)), 10);
    Ranks ranks(kRanks);
    ranks.run([&](uint32_t r) {
      ASSERT_NO_FATAL_FAILURE(runOnce(ranks, job, r));
      if (r == 1)
        return;
      occlCall_t call = job.call(r);
      call.timeoutMs = 300;
      occlRequest_t request = 0;
      if (isStarted) {
        ASSERT_EQ(occlStart(ranks[r], &call, nullptr, nullptr, &request), occlSuccess);
      }
      EXPECT_EQ(isStarted ? occlWait(ranks[r], request) : occlCall(ranks[r], &call, nullptr),
                occlTimeout);
      std::string text = occlCommGetLastError(ranks[r]);
      EXPECT_NE(text.find("waits for rank 1, which has not submitted it"), std::string::npos)
          << text;
    });
  }
}

/// Rank 0 of a broadcast waits for nobody: it may run ahead of the others as far as the blocks
/// reach.
TEST(Resident, ASenderThatRunsAheadIsHeldBack) {
  constexpr uint32_t kRanks = 2;
  Job job(5, inLines(chainBroadcast(kRanks, 1)), 10);
  Ranks ranks(kRanks);
  std::atomic<bool> refused{false};
  ranks.run([&](uint32_t r) {
    constexpr uint32_t kInvocations = 100;
    if (r == 1)
      while (!refused)
        ;
    for (uint32_t i = 0; i < kInvocations;) {
      occlRequest_t request = 0;
      occlResult_t result = job.submit(ranks[r], r, &request);
      if (result == occlAgain) {
        std::string text = occlGetLastError();
        ASSERT_EQ(r, 0u) << text;
        ASSERT_NE(text.find("rank 1 has not finished it"), std::string::npos) << text;
        refused = true;
        continue;
      }
      ASSERT_EQ(result, occlSuccess) << occlGetLastError();
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlCommGetLastError(ranks[r]);
      ASSERT_EQ(job.check(r), "");
      ++i;
    }
  });
}

} // namespace
} // namespace occl::communicator::testing
