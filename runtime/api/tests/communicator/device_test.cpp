// Several communicators on one device: the ranks are processes, each with its communicators.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
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
    for (uint32_t i = 0; i < iterations; ++i) {
      std::vector<uint32_t> order = latinOrder(static_cast<uint32_t>(comms.size()), rank, i);
      std::vector<occlRequest_t> requests(comms.size());
      for (uint32_t c : order)
        if (jobs[c].submit(comms[c], rank, &requests[c]) != occlSuccess)
          return lastError("occlStart");
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
    if (rank == 0 && jobs[1].submit(ranks.comms[1], rank, &stuck) != occlSuccess)
      return lastError("occlStart");
    std::string wrong = iterate({ranks.comms[0]}, jobs, rank, 20);
    if (rank == 1)
      occlCommAbort(ranks.comms[1]);
    else if (wrong.empty() && occlWait(ranks.comms[1], stuck) != occlAborted)
      return "the aborted collective did not end so: " + lastError("occlWait");
    if (!wrong.empty())
      return wrong;
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
    // Rank 1 waits for `second` only, and rank 0 submits that only when `first` is complete.
    if (jobs[0].submit(ranks.comms[0], rank, &first) != occlSuccess)
      return lastError("occlStart");
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

occlConfig_t withoutPreemption(uint32_t milliseconds) {
  occlConfig_t config = withTimeout(milliseconds);
  config.preemption = 2;
  config.orderPolicy = occlOrderFifo;
  return config;
}

/// Two ranks' communicator, and what they do in it.
struct Pair {
  occlComm_t comm = nullptr;
  uint32_t rank = 0; // in it
  Job job;
  occlRequest_t request = 0;

  /// Puts it into the task queue: from there on it is first in, first out. With preemption it may
  /// be complete by then.
  std::string submit() {
    if (job.submit(comm, rank, &request) != occlSuccess)
      return lastError("occlStart");
    occlResult_t result = occlTest(comm, request);
    return result == occlInProgress || result == occlSuccess ? "" : lastError("occlTest");
  }
};

/// Each rank is in a communicator with the next one, `next`, and in one with the one before. It
/// submits to `next` first, so that all wait for each other in a ring, through as many
/// communicators as ranks, of which each sees two. Returns what the deadlock's text is, if one of
/// them has failed by it, and "" if none has.
std::string waitInARing(Pair &next, Pair &before) {
  for (Pair *pair : {&next, &before})
    if (std::string wrong = pair->submit(); !wrong.empty())
      return wrong;
  std::string deadlock;
  for (Pair *pair : {&next, &before}) {
    occlResult_t result = occlWait(pair->comm, pair->request);
    std::string text = result == occlSuccess ? pair->job.check(pair->rank) : lastError("occlWait");
    if (result == occlDeadlock && reportOf(pair->comm).find("has failed: deadlock") == text.npos)
      return "the report does not say why: " + reportOf(pair->comm);
    if (result != occlSuccess && result != occlDeadlock)
      return text;
    deadlock += text;
  }
  return deadlock;
}

/// The communicator that has failed has two ranks, and both have the whole ring; all others worked.
void expectOneFailed(const std::vector<std::string> &texts) {
  uint32_t failed = 0;
  for (const std::string &text : texts) {
    if (text.empty())
      continue;
    ++failed;
    EXPECT_NE(text.find("deadlock: preemption is off"), text.npos) << text;
    size_t lines = 0;
    for (size_t at = text.find("\n  rank "); at != text.npos; at = text.find("\n  rank ", at + 1))
      ++lines;
    EXPECT_EQ(lines, texts.size()) << text;
    for (size_t c = 0; c < texts.size(); ++c)
      EXPECT_NE(text.find("'ring_allreduce of " + std::to_string(50 + c) + "'"), text.npos) << text;
  }
  EXPECT_EQ(failed, 2u);
}

Job ringJob(uint32_t number) { return Job(1, handleOf(ringAllReduce(2)), 50 + number); }

/// Communicator c is of ranks c and c + 1.
std::string processInARing(uint32_t numRanks, uint32_t rank, const std::string &name) {
  const uint32_t former = (rank + numRanks - 1) % numRanks;
  Pair next{nullptr, 0, ringJob(rank)}, before{nullptr, 1, ringJob(former)};
  occlConfig_t config = withoutPreemption(60'000);
  auto join = [&](Pair &pair, uint32_t c) {
    return occlCommInitRank(&pair.comm, 2, pair.rank, (name + "-" + std::to_string(c)).c_str(),
                            &config) == occlSuccess;
  };
  // All in the same order: joining waits.
  bool joined = rank == 0 ? join(next, rank) && join(before, former)
                          : join(before, former) && join(next, rank);
  std::string text = joined ? waitInARing(next, before) : lastError("occlCommInitRank");
  for (Pair *pair : {&next, &before})
    if (pair->comm)
      occlCommDestroy(pair->comm);
  return text;
}

TEST(Device, WithoutPreemptionACycleThroughSeveralCommunicatorsIsDrawnWhole) {
  for (uint32_t numRanks : {2u, 3u, 5u}) {
    std::string name = jobName("device-ring") + std::to_string(numRanks);
    Processes processes(numRanks,
                        [&](uint32_t rank) { return processInARing(numRanks, rank, name); });
    std::vector<std::string> texts;
    for (uint32_t r = 0; r < numRanks; ++r) {
      processes.join(r);
      texts.push_back(processes.wrong(r));
    }
    expectOneFailed(texts);
  }
}

TEST(Device, ThreadsThatWaitForEachOtherThroughThreeCommunicatorsHearOfIt) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks, withoutPreemption(60'000));
  std::vector<Job> jobs;
  for (uint32_t c = 0; c < kRanks; ++c)
    jobs.push_back(ringJob(c));
  std::vector<std::string> texts(kRanks);
  ranks.run([&](uint32_t r) {
    std::array<occlComm_t, kRanks> comms{};
    for (uint32_t c = 0; c < kRanks; ++c) {
      const bool isIn = r == c || r == (c + 1) % kRanks;
      ASSERT_EQ(occlCommSplit(ranks[r], isIn ? 0 : -1, r == c ? 0 : 1, nullptr, &comms[c]),
                occlSuccess);
    }
    const uint32_t former = (r + kRanks - 1) % kRanks;
    Pair next{comms[r], 0, ringJob(r)}, before{comms[former], 1, ringJob(former)};
    texts[r] = waitInARing(next, before);
    for (occlComm_t comm : {next.comm, before.comm})
      occlCommDestroy(comm);
  });
  expectOneFailed(texts);
}

/// With preemption the same order is nothing special.
TEST(Device, WithPreemptionARingOfCommunicatorsJustWorks) {
  constexpr uint32_t kRanks = 4;
  std::string name = jobName("device-ring-works");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    std::array<Pair, 2> pairs{Pair{nullptr, 0, ringJob(rank)},
                              Pair{nullptr, 1, ringJob((rank + kRanks - 1) % kRanks)}};
    for (uint32_t c = 0; c < kRanks; ++c)
      for (Pair &pair : pairs)
        if ((rank + kRanks - pair.rank) % kRanks == c &&
            occlCommInitRank(&pair.comm, 2, pair.rank, (name + "-" + std::to_string(c)).c_str(),
                             nullptr) != occlSuccess)
          return lastError("occlCommInitRank");
    std::string text = waitInARing(pairs[0], pairs[1]);
    for (Pair &pair : pairs)
      occlCommDestroy(pair.comm);
    return text;
  });
  expectAllRight(processes, kRanks);
}

/// Rank 1 keeps to what rank 2 never submits, and so never runs what rank 0 waits for. Rank 2 may
/// yet submit it: nobody can know that this is a deadlock.
TEST(Device, WithoutPreemptionTheDeadlineNamesTheOtherCommunicator) {
  std::string name = jobName("device-holder");
  Processes processes(3, [&](uint32_t rank) -> std::string {
    std::array<Pair, 2> pairs{Pair{nullptr, rank, ringJob(0)}, Pair{nullptr, rank - 1, ringJob(1)}};
    for (uint32_t c = 0; c < 2; ++c) {
      occlConfig_t config = withoutPreemption(rank == 1 && c == 0 ? 1'000 : 60'000);
      if (pairs[c].rank < 2 &&
          occlCommInitRank(&pairs[c].comm, 2, pairs[c].rank,
                           (name + "-" + std::to_string(c)).c_str(), &config) != occlSuccess)
        return lastError("occlCommInitRank");
    }
    std::string wrong;
    if (rank == 1)
      wrong = pairs[1].submit();
    if (rank < 2 && wrong.empty())
      wrong = pairs[0].submit();
    std::string text;
    if (rank < 2 && wrong.empty()) {
      bool isLate = occlWait(pairs[0].comm, pairs[0].request) == occlTimeout;
      text = occlCommGetLastError(pairs[0].comm);
      if (!isLate)
        wrong = "no time out: " + text;
    }
    for (const char *part :
         {"collective 'ring_allreduce of 50'", "did not end on rank 1 before its deadline",
          "without preemption the executor keeps to collective 'ring_allreduce of 51'",
          "of another communicator: thread block 0, instruction"})
      if (rank < 2 && wrong.empty() && text.find(part) == std::string::npos)
        wrong = text;
    // Rank 2 stays until rank 1 gives up.
    if (rank == 1)
      occlCommAbort(pairs[1].comm);
    while (rank == 2 && reportOf(pairs[1].comm).find("has failed") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (Pair &pair : pairs)
      if (pair.comm)
        occlCommDestroy(pair.comm);
    return wrong;
  });
  expectAllRight(processes, 3);
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
