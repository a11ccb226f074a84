// After a failure, or without one, the ranks that are left form a smaller communicator that works.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

/// One all-reduce among all; "" or what is wrong.
std::string works(occlComm_t comm) {
  uint32_t rank = 0, numRanks = 0;
  occlCommRank(comm, &rank);
  occlCommSize(comm, &numRanks);
  Job job(5, handleOf(ringAllReduce(numRanks)), 1000);
  occlRequest_t request = 0;
  if (job.submit(comm, rank, &request) != occlSuccess)
    return lastError("occlStart");
  if (occlWait(comm, request) != occlSuccess)
    return lastError("occlWait");
  return job.check(rank);
}

/// Shrinks, expects so many ranks and this place among them, and that they work.
std::string shrinksTo(uint32_t numRanks, uint32_t rank, occlComm_t comm, occlComm_t *smaller,
                      const std::vector<uint32_t> &exclude = {}) {
  if (occlCommShrink(comm, exclude.data(), static_cast<uint32_t>(exclude.size()), nullptr,
                     smaller) != occlSuccess)
    return lastError("occlCommShrink");
  uint32_t gotRank = 0, gotSize = 0;
  occlCommRank(*smaller, &gotRank);
  occlCommSize(*smaller, &gotSize);
  if (gotRank != rank || gotSize != numRanks)
    return "got rank " + std::to_string(gotRank) + " of " + std::to_string(gotSize) +
           ", expected " + std::to_string(rank) + " of " + std::to_string(numRanks);
  return works(*smaller);
}

TEST(Shrink, ThreadsWithoutAFailureAndAgain) {
  constexpr uint32_t kRanks = 4;
  Ranks ranks(kRanks, withTimeout(60000));
  ranks.run([&](uint32_t r) {
    occlComm_t smaller = nullptr, smallest = nullptr;
    if (r == 1) {
      EXPECT_EQ(occlCommShrink(ranks[r], nullptr, 0, nullptr, &smaller), occlPeerFailed);
      EXPECT_NE(std::string(occlGetLastError()).find("rank 1 is not a member"), std::string::npos)
          << occlGetLastError();
      EXPECT_EQ(smaller, nullptr);
      return;
    }
    EXPECT_EQ(shrinksTo(3, r == 0 ? 0 : r - 1, ranks[r], &smaller, {1}), "");
    ASSERT_NE(smaller, nullptr);
    if (r != 3) {
      EXPECT_EQ(shrinksTo(2, r == 0 ? 0 : 1, smaller, &smallest, {2}), "");
      EXPECT_EQ(occlCommDestroy(smaller), occlSuccess);
      EXPECT_EQ(occlCommDestroy(smallest), occlSuccess);
    } else {
      EXPECT_EQ(occlCommDestroy(smaller), occlSuccess);
    }
  });
}

TEST(Shrink, ThreadsAfterAnAbortWithoutWhoDoesNotCome) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks, withTimeout(300));
  ASSERT_EQ(occlCommAbort(ranks[2]), occlSuccess);
  ranks.run([&](uint32_t r) {
    occlComm_t smaller = nullptr;
    if (r == 2)
      return; // does not come
    EXPECT_EQ(shrinksTo(2, r, ranks[r], &smaller), "");
    occlCommDestroy(smaller);
  });
}

TEST(Shrink, PlansMustBeForTheNewSize) {
  Ranks ranks(2, withTimeout(60000));
  PlanHandle old = handleOf(ringAllReduce(2));
  ranks.destroy(1);
  occlComm_t alone = nullptr;
  ASSERT_EQ(occlCommShrink(ranks[0], nullptr, 0, nullptr, &alone), occlSuccess)
      << occlGetLastError();
  EXPECT_EQ(Job(1, old, 10).run(alone, 0), occlInvalidPlan);
  EXPECT_NE(std::string(occlGetLastError()).find("is for 2 ranks, the communicator has 1"),
            std::string::npos)
      << occlGetLastError();
  EXPECT_EQ(occlCommDestroy(alone), occlSuccess);
}

TEST(Shrink, WrongArgumentsAreRefused) {
  Ranks ranks(2);
  occlComm_t smaller = nullptr;
  uint32_t self = 0, nobody = 2;
  EXPECT_EQ(occlCommShrink(nullptr, nullptr, 0, nullptr, &smaller), occlInvalidArgument);
  EXPECT_EQ(occlCommShrink(ranks[0], nullptr, 1, nullptr, &smaller), occlInvalidArgument);
  EXPECT_EQ(occlCommShrink(ranks[0], nullptr, 0, nullptr, nullptr), occlInvalidArgument);
  EXPECT_EQ(occlCommShrink(ranks[0], &self, 1, nullptr, &smaller), occlInvalidArgument);
  EXPECT_EQ(occlCommShrink(ranks[0], &nobody, 1, nullptr, &smaller), occlInvalidArgument);
}

/// All ranks iterate until rank `victim` stops by `signal`; then the others shrink, and again after
/// rank 0 of the smaller one is gone in the same way.
std::string loseTwo(uint32_t numRanks, uint32_t rank, uint32_t victim, int signal,
                    const std::string &name) {
  occlComm_t comm = nullptr, smaller = nullptr, smallest = nullptr;
  occlConfig_t config = withTimeout(signal == SIGSTOP ? 1500 : 20000);
  if (occlCommInitRank(&comm, numRanks, rank, name.c_str(), &config) != occlSuccess)
    return lastError("occlCommInitRank");
  Job job(0, handleOf(ringAllReduce(numRanks)), 3000);
  for (uint32_t i = 0;; ++i) {
    if (i == 5 && rank == victim)
      raise(signal);
    occlRequest_t request = 0;
    if (job.submit(comm, rank, &request) != occlSuccess || occlWait(comm, request) != occlSuccess)
      break;
  }
  uint32_t place = rank < victim ? rank : rank - 1;
  std::string wrong = shrinksTo(numRanks - 1, place, comm, &smaller);
  if (!wrong.empty())
    return wrong;
  if (place == 0)
    raise(signal);
  wrong = shrinksTo(numRanks - 2, place - 1, smaller, &smallest);
  occlCommDestroy(comm);
  occlCommDestroy(smaller);
  occlCommDestroy(smallest);
  return wrong;
}

void survivorsGoOn(uint32_t victim, int signal) {
  constexpr uint32_t kRanks = 4;
  std::string name = jobName("shrink");
  Processes processes(kRanks,
                      [&](uint32_t rank) { return loseTwo(kRanks, rank, victim, signal, name); });
  uint32_t second = victim == 0 ? 1 : 0;
  for (uint32_t r = 0; r < kRanks; ++r)
    if (r != victim && r != second) {
      EXPECT_EQ(processes.join(r), 0) << r;
    }
  for (uint32_t r : {victim, second}) {
    processes.kill(r);
    EXPECT_EQ(processes.join(r), -1);
  }
}

TEST(Shrink, ProcessesAfterKills) { survivorsGoOn(2, SIGKILL); }
TEST(Shrink, ProcessesAfterRankZeroIsKilled) { survivorsGoOn(0, SIGKILL); }
TEST(Shrink, ProcessesWithoutThoseThatAreStopped) { survivorsGoOn(1, SIGSTOP); }

} // namespace
} // namespace occl::communicator::testing
