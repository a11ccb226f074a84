// Several communicators on one device: the ranks are processes, each with its communicators.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/testing/harness.h"
#include "runtime/communicator/testing/processes.h"
#include "runtime/communicator/testing/steps.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

/// A rank's communicators, all of the same ranks.
class Communicators {
public:
  Communicators(uint32_t number, uint32_t numRanks, uint32_t rank, const std::string &name) {
    for (uint32_t c = 0; c < number; ++c) {
      comms.emplace_back();
      std::string own = name + "-" + std::to_string(c);
      if (occlCommInitRank(&comms.back(), numRanks, rank, own.c_str(), nullptr) != occlSuccess)
        wrong = lastError("occlCommInitRank");
    }
  }
  ~Communicators() {
    for (occlComm_t comm : comms)
      occlCommDestroy(comm);
  }

  std::vector<occlComm_t> comms;
  std::string wrong;
};

std::vector<Job> jobsFor(uint32_t number, uint32_t numRanks) {
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < number; ++j)
    jobs.emplace_back(1, handleOf(j % 2 ? ringAllReduce(numRanks) : twoShotAllReduce(numRanks)),
                      50u << (2 * j));
  return jobs;
}

/// One job on each communicator, in another order on each rank; waits in the order of submission.
std::string iterate(const std::vector<occlComm_t> &comms, std::vector<Job> &jobs, uint32_t rank,
                    uint32_t iterations) {
  for (size_t c = 0; c < comms.size(); ++c)
    if (jobs[c].registerOn(comms[c]) != occlSuccess)
      return lastError("occlRegister");
  for (uint32_t i = 0; i < iterations; ++i) {
    std::vector<uint32_t> order = latinOrder(static_cast<uint32_t>(comms.size()), rank, i);
    std::vector<occlRequest_t> requests(comms.size());
    for (uint32_t c : order)
      if (jobs[c].submit(comms[c], rank, &requests[c]) != occlSuccess)
        return lastError("occlSubmit");
    for (uint32_t c : order) {
      if (occlWait(comms[c], requests[c]) != occlSuccess)
        return lastError("occlWait");
      if (std::string text = jobs[c].check(rank); !text.empty())
        return text;
    }
  }
  return {};
}

void expectAllRight(Processes &processes, uint32_t numRanks) {
  for (uint32_t r = 0; r < numRanks; ++r)
    EXPECT_EQ(processes.join(r), 0);
}

TEST(Device, CommunicatorsAreSubmittedToInConflictingOrders) {
  constexpr uint32_t kRanks = 3;
  std::string name = jobName("device-orders");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    Communicators ranks(4, kRanks, rank, name);
    if (!ranks.wrong.empty())
      return ranks.wrong;
    std::vector<Job> jobs = jobsFor(4, kRanks);
    return iterate(ranks.comms, jobs, rank, 30);
  });
  expectAllRight(processes, kRanks);
}

TEST(Device, AFailedCommunicatorLeavesTheOthersAlone) {
  constexpr uint32_t kRanks = 2;
  std::string name = jobName("device-failure");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    Communicators ranks(2, kRanks, rank, name);
    if (!ranks.wrong.empty())
      return ranks.wrong;
    std::vector<Job> jobs = jobsFor(2, kRanks);
    // In flight on the communicator that fails: what rank 1 never submits.
    occlRequest_t stuck = 0;
    if (jobs[1].registerOn(ranks.comms[1]) != occlSuccess ||
        (rank == 0 && jobs[1].submit(ranks.comms[1], rank, &stuck) != occlSuccess))
      return lastError("occlSubmit");
    std::string wrong = iterate({ranks.comms[0]}, jobs, rank, 20);
    if (rank == 1)
      occlCommAbort(ranks.comms[1]);
    else if (wrong.empty() && occlWait(ranks.comms[1], stuck) != occlAborted)
      return "the aborted collective did not end so: " + lastError("occlWait");
    if (!wrong.empty() || occlDeregister(ranks.comms[0], 1) != occlSuccess)
      return wrong + lastError("occlDeregister");
    return iterate({ranks.comms[0]}, jobs, rank, 20);
  });
  expectAllRight(processes, kRanks);
}

TEST(Device, WaitingForOneCommunicatorRunsTheOthers) {
  constexpr uint32_t kRanks = 2;
  std::string name = jobName("device-wait");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    Communicators ranks(2, kRanks, rank, name);
    if (!ranks.wrong.empty())
      return ranks.wrong;
    std::vector<Job> jobs = jobsFor(2, kRanks);
    occlRequest_t first = 0, second = 0;
    for (uint32_t c = 0; c < 2; ++c)
      if (jobs[c].registerOn(ranks.comms[c]) != occlSuccess)
        return lastError("occlRegister");
    // Rank 1 waits for `second` only, and rank 0 submits that only when `first` is complete.
    if (jobs[0].submit(ranks.comms[0], rank, &first) != occlSuccess)
      return lastError("occlSubmit");
    if (rank == 0 && occlWait(ranks.comms[0], first) != occlSuccess)
      return lastError("occlWait");
    if (jobs[1].submit(ranks.comms[1], rank, &second) != occlSuccess ||
        occlWait(ranks.comms[1], second) != occlSuccess)
      return lastError("occlWait");
    if (occlWait(ranks.comms[0], first) != occlSuccess)
      return lastError("occlWait");
    return jobs[0].check(rank) + jobs[1].check(rank);
  });
  expectAllRight(processes, kRanks);
}

/// More than a rank's worker and the thread that waits can keep to at a time.
constexpr uint32_t kOfEach = 3;

/// Submits all of one communicator, then all of the other, on rank 1 the other way round; the last
/// error of the first communicator, whose deadline on rank 1 comes before all others.
std::string deadlockAcross(const std::string &name, uint32_t rank) {
  occlConfig_t config = withTimeout(rank == 1 ? 2'000 : 60'000);
  config.preemption = 2;
  config.orderPolicy = occlOrderFifo;
  std::array<occlComm_t, 2> comms{};
  std::array<std::vector<Job>, 2> jobs;
  for (uint32_t c = 0; c < 2; ++c) {
    std::string own = name + "-" + std::to_string(c);
    if (occlCommInitRank(&comms[c], 2, rank, own.c_str(), &config) != occlSuccess)
      return lastError("occlCommInitRank");
    for (uint32_t j = 0; j < kOfEach; ++j)
      jobs[c].emplace_back(j, handleOf(ringAllReduce(2)), 50 + c);
    if (std::string wrong = registerAll(comms[c], jobs[c]); !wrong.empty())
      return wrong;
  }
  std::array<occlRequest_t, 2> last{};
  for (uint32_t c : {rank, 1 - rank}) {
    for (Job &job : jobs[c])
      if (job.submit(comms[c], rank, &last[c]) != occlSuccess)
        return lastError("occlSubmit");
    // Puts them into the task queue: from there on it is first in, first out.
    if (occlTest(comms[c], last[c]) != occlInProgress)
      return lastError("occlTest");
  }
  std::string text = occlWait(comms[0], last[0]) == occlTimeout ? occlCommGetLastError(comms[0])
                                                                : lastError("no time out");
  for (occlComm_t comm : comms)
    occlCommAbort(comm);
  for (occlComm_t comm : comms)
    occlCommDestroy(comm);
  return text;
}

TEST(Device, WithoutPreemptionTheDeadlineNamesTheOtherCommunicatorInTheCycle) {
  std::string name = jobName("device-cycle");
  Processes processes(2, [&](uint32_t rank) -> std::string {
    std::string text = deadlockAcross(name, rank);
    for (const char *part :
         {"collective 'ring_allreduce of 50'", "did not end on rank 1 before its deadline",
          "without preemption the executor keeps to collective 'ring_allreduce of 51'",
          "of another communicator: thread block 0, instruction"})
      if (text.find(part) == std::string::npos)
        return text;
    return {};
  });
  expectAllRight(processes, 2);
}

TEST(Device, SettingsOfItsExecutorsAreTheSameForAll) {
  std::string name = jobName("device-settings");
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.workers = 2;
  occlComm_t first = nullptr, second = nullptr;
  ASSERT_EQ(occlCommInitRank(&first, 1, 0, (name + "a").c_str(), &config), occlSuccess);
  ASSERT_EQ(occlCommInitRank(&second, 1, 0, (name + "b").c_str(), nullptr), occlSuccess)
      << "the defaults are what the device has";
  occlCommDestroy(second);
  config.workers = 3;
  EXPECT_EQ(occlCommInitRank(&second, 1, 0, (name + "c").c_str(), &config), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("config->workers"), std::string::npos);
  occlCommDestroy(first);
  ASSERT_EQ(occlCommInitRank(&second, 1, 0, (name + "d").c_str(), &config), occlSuccess)
      << "the device went with its last communicator";
  occlCommDestroy(second);
}

TEST(Device, EveryPolicyAndSeveralWorkersGiveTheRightResults) {
  constexpr uint32_t kRanks = 3, kJobs = 5;
  for (uint32_t order : {occlOrderPriority, occlOrderFifo, occlOrderNewest})
    for (uint32_t budget : {occlBudgetFrontHeavy, occlBudgetFlat, occlBudgetNoPolling}) {
      occlConfig_t config = OCCL_CONFIG_INITIALIZER;
      config.orderPolicy = order;
      config.budgetPolicy = budget;
      config.workers = budget; // 1 to 3 beside the threads that wait
      Ranks ranks(kRanks, config);
      std::vector<Job> jobs = jobsFor(kJobs, kRanks);
      ranks.run([&](uint32_t r) {
        std::vector<occlComm_t> divided(kJobs);
        for (occlComm_t &comm : divided)
          ASSERT_EQ(occlCommSplit(ranks[r], 0, 0, nullptr, &comm), occlSuccess);
        EXPECT_EQ(iterate(divided, jobs, r, 10), "") << "policies " << order << ", " << budget;
        for (occlComm_t comm : divided)
          occlCommDestroy(comm);
      });
    }
}

TEST(Device, RanksMustAgreeOnTheOrderPolicy) {
  std::string name = jobName("device-policy");
  Processes processes(2, [&](uint32_t rank) -> std::string {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.orderPolicy = rank == 0 ? occlOrderFifo : occlOrderNewest;
    occlComm_t comm = nullptr;
    occlResult_t result = occlCommInitRank(&comm, 2, rank, name.c_str(), &config);
    std::string text = occlGetLastError();
    bool isRight = result == occlMismatch &&
                   text.find("use the same config->orderPolicy") != std::string::npos;
    return isRight ? "" : "not refused: " + text;
  });
  expectAllRight(processes, 2);
}

TEST(Device, RanksOfOneCommunicatorInOneProcessHaveDevicesOfTheirOwn) {
  constexpr uint32_t kRanks = 3;
  std::string name = jobName("device-threads");
  std::vector<Job> jobs = jobsFor(2, kRanks);
  std::vector<std::string> wrong(kRanks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      occlConfig_t config = OCCL_CONFIG_INITIALIZER;
      config.preemption = 2; // on one device together they would hold each other up
      occlComm_t comm = nullptr;
      if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), &config) != occlSuccess) {
        wrong[rank] = lastError("occlCommInitRank");
        return;
      }
      wrong[rank] = iterate({comm}, jobs, rank, 10);
      occlCommDestroy(comm);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &text : wrong)
    EXPECT_EQ(text, "");
}

} // namespace
} // namespace occl::communicator::testing
