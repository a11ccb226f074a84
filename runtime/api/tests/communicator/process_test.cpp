// Ranks that are processes.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

/// Submits all jobs in the order of the iteration, waits, checks.
std::string iterate(occlComm_t comm, std::vector<Job> &jobs, uint32_t rank, uint32_t iterations) {
  std::string wrong;
  for (uint32_t i = 0; i < iterations && wrong.empty(); ++i)
    wrong = runInOrder(comm, jobs, rank, latinOrder(static_cast<uint32_t>(jobs.size()), rank, i));
  return wrong;
}

std::vector<Job> makeJobs(uint32_t numRanks) {
  std::vector<Job> jobs;
  PlanHandle ring = handleOf(ringAllReduce(numRanks)),
             twoShot = handleOf(twoShotAllReduce(numRanks));
  for (uint32_t j = 0; j < 4; ++j)
    jobs.emplace_back(j, j % 2 ? ring : twoShot, 100u << (3 * j));
  return jobs;
}

TEST(Process, ConflictingOrdersGiveTheRightResults) {
  constexpr uint32_t kRanks = 4;
  inProcesses(kRanks, "orders", [](occlComm_t comm, uint32_t rank) {
    std::vector<Job> jobs = makeJobs(kRanks);
    return iterate(comm, jobs, rank, 20);
  });
}

TEST(Process, AKilledRankIsAnErrorOnAllOthers) {
  constexpr uint32_t kRanks = 3, kVictim = 1;
  std::string name = jobName("killed");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    std::vector<Job> jobs = makeJobs(kRanks);
    std::string wrong = iterate(comm, jobs, rank, rank == kVictim ? 5 : 1000000);
    if (rank == kVictim)
      raise(SIGKILL);
    std::string text = occlCommGetLastError(comm);
    occlCommDestroy(comm);
    if (text.find("process of rank 1 is gone") == std::string::npos)
      return "wrong cause: " + text + "; " + wrong;
    return {};
  });
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(processes.join(0), 0);
  EXPECT_EQ(processes.join(2), 0);
  EXPECT_EQ(processes.join(kVictim), -1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s) << "long before the deadline of 30 s";
}

/// Long before the deadline, which is longer than a rank's process is given.
void expectCycleWithoutPreemption(uint32_t numRanks, const char *test) {
  occlConfig_t config = withTimeout(10 * 60 * 1000);
  config.preemption = 2;
  auto expectCycle = [numRanks](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<Job> jobs = makeJobs(numRanks);
    iterate(comm, jobs, rank, 20);
    std::string text = occlCommGetLastError(comm);
    bool names = text.find("deadlock: preemption is off") != std::string::npos &&
                 text.find(" waits for rank ") != std::string::npos;
    return names ? "" : "no cycle: " + text;
  };
  inProcesses(numRanks, test, expectCycle, config);
}

TEST(Process, WithoutPreemptionTheCycleIsReportedByAll) {
  expectCycleWithoutPreemption(2, "cycle");
}

TEST(Process, WithoutPreemptionTheCycleOfSixteenIsReportedByAll) {
  expectCycleWithoutPreemption(16, "cycle-of-16");
}

} // namespace
} // namespace occl::communicator::testing
