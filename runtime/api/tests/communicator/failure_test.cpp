// What goes wrong ends with the same error on every rank, soon, and with nothing left behind.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

/// Submits and waits; the first error, which may already be that of another rank.
occlResult_t submitAndWait(Job &job, occlComm_t comm, uint32_t rank) {
  occlRequest_t request = 0;
  occlResult_t result = job.submit(comm, rank, &request);
  return result == occlSuccess ? occlWait(comm, request) : result;
}

/// Counts the calls with each result.
struct Calls {
  std::atomic<uint32_t> byResult[16] = {};
  static void count(occlRequest_t, occlResult_t result, void *user) {
    static_cast<Calls *>(user)->byResult[result].fetch_add(1);
  }
};

TEST(Failure, MismatchedCountsAreAnErrorOnAllRanksSayingWhatEachHas) {
  constexpr uint32_t kRanks = 4;
  Ranks ranks(kRanks);
  PlanHandle handle = handleOf(ringAllReduce(kRanks));
  Job job(3, handle, 1000), other(3, handle, 1001);
  ranks.run([&](uint32_t r) {
    EXPECT_EQ(submitAndWait(r == 2 ? other : job, ranks[r], r), occlMismatch);
    std::string text = occlCommGetLastError(ranks[r]);
    EXPECT_NE(text.find("count 1000"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 2 has allreduce, count 1001"), std::string::npos) << text;
    EXPECT_NE(text.find("'ring_allreduce of"), std::string::npos) << text;
  });
}

TEST(Failure, MismatchedPlansTypesAndOperationsAreFound) {
  PlanHandle ring = handleOf(ringAllReduce(2)), oneShot = handleOf(oneShotAllReduce(2));
  Job expected(1, ring, 100);
  for (Job &wrong : std::vector<Job>{Job(1, oneShot, 100), Job(1, ring, 100, DataType::Int32),
                                     Job(1, ring, 100, DataType::Float32, ReduceOp::Max)}) {
    Ranks ranks(2);
    ranks.run([&](uint32_t r) {
      EXPECT_EQ(submitAndWait(r == 1 ? wrong : expected, ranks[r], r), occlMismatch)
          << occlGetLastError();
    });
  }
}

TEST(Failure, AMissingRankIsATimeoutThatNamesWhatIsWaitedFor) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks, withTimeout(200));
  Job job(7, handleOf(ringAllReduce(kRanks)), 1000);
  auto start = std::chrono::steady_clock::now();
  ranks.run([&](uint32_t r) {
    if (r == 1)
      return; // never submits
    EXPECT_EQ(submitAndWait(job, ranks[r], r), occlTimeout);
    std::string text = occlCommGetLastError(ranks[r]);
    EXPECT_NE(text.find("id 7"), std::string::npos) << text;
    EXPECT_NE(text.find("waits for"), std::string::npos) << text;
    EXPECT_NE(text.find(".coll:"), std::string::npos) << text;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  occlRequest_t request = 0;
  EXPECT_EQ(job.submit(ranks[1], 1, &request), occlTimeout) << "it has failed on all ranks";
}

TEST(Failure, AbortEndsEverythingAndRunsEveryCallbackOnce) {
  constexpr uint32_t kRanks = 3, kEach = 5;
  Calls calls;
  {
    PlanHandle handle = handleOf(ringAllReduce(kRanks));
    std::vector<Job> jobs;
    for (uint32_t j = 0; j < kEach; ++j)
      jobs.emplace_back(j, handle, 1000);
    Ranks ranks(kRanks);
    // Rank 2 submits nothing, so nothing can complete.
    for (uint32_t r = 0; r < 2; ++r)
      for (Job &job : jobs) {
        ASSERT_EQ(job.submit(ranks[r], r, nullptr, Calls::count, &calls), occlSuccess);
      }
    ASSERT_EQ(occlCommAbort(ranks[2]), occlSuccess);
    ASSERT_EQ(occlCommAbort(ranks[2]), occlSuccess) << "again does no harm";
    EXPECT_NE(std::string(occlCommGetLastError(ranks[0])).find("rank 2"), std::string::npos);
  }
  EXPECT_EQ(calls.byResult[occlAborted].load(), 2 * kEach);
}

TEST(Failure, AbortFromAnotherThreadEndsAWait) {
  Ranks ranks(2);
  Job job(1, handleOf(ringAllReduce(2)), 1000);
  ranks.run([&](uint32_t r) {
    if (r == 1) {
      std::this_thread::sleep_for(50ms);
      EXPECT_EQ(occlCommAbort(ranks[0]), occlSuccess);
      return;
    }
    occlRequest_t request = 0;
    ASSERT_EQ(job.submit(ranks[r], r, &request), occlSuccess);
    EXPECT_EQ(occlWait(ranks[r], request), occlAborted);
    EXPECT_EQ(occlWait(ranks[r], request), occlAborted) << "and again";
    EXPECT_EQ(job.submit(ranks[r], r, &request), occlAborted);
    EXPECT_EQ(job.run(ranks[r], r), occlAborted);
  });
}

TEST(Failure, AbortEndsADestructionThatWaits) {
  Ranks ranks(2, withTimeout(120000));
  Job job(1, handleOf(ringAllReduce(2)), 1000);
  occlRequest_t request = 0;
  ASSERT_EQ(job.submit(ranks[0], 0, &request), occlSuccess);
  occlComm_t waiting = ranks[0];
  auto start = std::chrono::steady_clock::now();
  std::thread destroyer([&] { ranks.destroy(0); });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(occlCommAbort(waiting), occlSuccess);
  destroyer.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
  EXPECT_EQ(occlCommAbort(waiting), occlInvalidArgument);
  EXPECT_STREQ(
      occlGetLastError(),
      "occlCommAbort: this communicator has been destroyed, or belongs to the process that "
      "forked this one");
}

TEST(Failure, AbortEndsADivisionThatWaits) {
  Ranks ranks(2, withTimeout(120000));
  std::thread aborter([&] {
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(occlCommAbort(ranks[1]), occlSuccess);
  });
  occlComm_t part = nullptr;
  EXPECT_EQ(occlCommSplit(ranks[0], 0, 0, nullptr, &part), occlAborted) << occlGetLastError();
  aborter.join();
}

TEST(Failure, AbortFromACallback) {
  for (CallbackKind kind : {CallbackKind::MayBlock, CallbackKind::NeverBlocks}) {
    PlanHandle handle = handleOf(ringAllReduce(2));
    Job first(1, handle, 1000), second(2, handle, 1000);
    first.setCallbackKind(kind);
    Ranks ranks(2); // goes before the buffers: rank 0 does not wait for what it submits
    ranks.run([&](uint32_t r) {
      occlCallback_t abort = [](occlRequest_t, occlResult_t, void *user) {
        EXPECT_EQ(occlCommAbort(static_cast<occlComm_t>(user)), occlSuccess);
      };
      occlRequest_t request = 0;
      if (r == 1) { // rank 0 never submits it
        ASSERT_EQ(second.submit(ranks[r], r, &request), occlSuccess);
      }
      occlResult_t submitted = first.submit(ranks[r], r, nullptr, abort, ranks[r]);
      EXPECT_TRUE(submitted == occlSuccess || submitted == occlAborted) << occlGetLastError();
      if (r == 1) {
        EXPECT_EQ(occlWait(ranks[r], request), occlAborted);
      }
    });
  }
}

TEST(Failure, AbortInTheMiddleOfTheStorm) {
  constexpr uint32_t kRanks = 4, kJobs = 6;
  PlanHandle handle = handleOf(twoShotAllReduce(kRanks));
  for (uint32_t trial = 0; trial < 10; ++trial) {
    std::vector<Job> jobs;
    for (uint32_t j = 0; j < kJobs; ++j)
      jobs.emplace_back(j, handle, 20000);
    Ranks ranks(kRanks);
    std::atomic<uint32_t> callbacks{0}, submitted{0};
    occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
      static_cast<std::atomic<uint32_t> *>(user)->fetch_add(1);
    };
    ranks.run([&](uint32_t r) {
      for (uint32_t i = 0;; ++i) {
        if (r == trial % kRanks && i == 10 + trial * 3) {
          EXPECT_EQ(occlCommAbort(ranks[r]), occlSuccess);
        }
        Job &job = jobs[(i + r) % kJobs];
        occlResult_t result = job.submit(ranks[r], r, nullptr, callback, &callbacks);
        if (result == occlAgain) {
          --i;
          std::this_thread::yield();
          continue;
        }
        if (result != occlSuccess) {
          EXPECT_EQ(result, occlAborted);
          return;
        }
        submitted.fetch_add(1);
      }
    });
    for (uint32_t r = 0; r < kRanks; ++r)
      ranks.destroy(r);
    EXPECT_EQ(callbacks.load(), submitted.load()) << "trial " << trial;
  }
}

TEST(Failure, ARankThatLeavesIsNamed) {
  Ranks ranks(2);
  Job job(1, handleOf(ringAllReduce(2)), 1000);
  occlRequest_t request = 0;
  ASSERT_EQ(job.submit(ranks[0], 0, &request), occlSuccess);
  ranks.destroy(1);
  EXPECT_EQ(occlWait(ranks[0], request), occlPeerFailed);
  std::string text = occlCommGetLastError(ranks[0]);
  EXPECT_NE(text.find("rank 1 has destroyed its communicator"), std::string::npos) << text;
}

TEST(Failure, LeavingAfterOnesPartIsDoneHarmsNobody) {
  Ranks ranks(2);
  Job job(1, handleOf(chainBroadcast(2, 1)), 1000); // rank 0 is done when it has sent
  occlRequest_t request = 0;
  ASSERT_EQ(job.submit(ranks[0], 0, &request), occlSuccess);
  ASSERT_EQ(occlWait(ranks[0], request), occlSuccess);
  ranks.destroy(0);
  ASSERT_EQ(job.submit(ranks[1], 1, &request), occlSuccess);
  EXPECT_EQ(occlWait(ranks[1], request), occlSuccess) << occlGetLastError();
  EXPECT_EQ(job.check(1), "");
}

/// The root of a broadcast waits for nobody's data; it runs ahead until it needs what a reader
/// holds that has left.
TEST(Failure, ARootWithoutRoomLearnsThatItsReaderHasLeft) {
  for (bool isLines : {false, true}) {
    plan::Plan plan = chainBroadcast(2, 1);
    if (isLines)
      plan.protocol = plan::Protocol::LL128;
    PlanHandle handle = handleOf(plan);
    for (bool isCall : {false, true}) {
      Ranks ranks(2);
      Job job(1, handle, 10);
      ranks.destroy(1);
      occlResult_t result = occlSuccess;
      occlRequest_t request = 0;
      for (int i = 0; i < 100 && result == occlSuccess; ++i)
        result = isCall ? job.run(ranks[0], 0) : job.submit(ranks[0], 0, &request);
      EXPECT_EQ(result, occlPeerFailed);
      std::string text = occlCommGetLastError(ranks[0]);
      EXPECT_NE(text.find("rank 1 has destroyed its communicator; it has not finished"),
                std::string::npos)
          << text;
      EXPECT_NE(
          text.find(
              isCall ? "which holds what call "
                     : "which holds what collective 'chain_broadcast of 10' (id 1), invocation "),
          std::string::npos)
          << text;
      EXPECT_NE(text.find(" needs on rank 0"), std::string::npos) << text;
    }
  }
}

/// The same where the arena is full of what it has not read.
TEST(Failure, ARootWithAFullArenaLearnsThatItsReaderHasLeft) {
  PlanHandle handle = handleOf(chainBroadcast(2, 1));
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 64 << 10;
  Ranks ranks(2, config);
  ranks.destroy(1);
  std::vector<Job> jobs;
  occlResult_t result = occlSuccess;
  for (uint64_t id = 0; id < 100 && result == occlSuccess; ++id) {
    occlRequest_t request = 0;
    result = jobs.emplace_back(id, handle, 1000).submit(ranks[0], 0, &request);
    if (result == occlSuccess)
      result = occlWait(ranks[0], request);
  }
  EXPECT_EQ(result, occlPeerFailed);
  std::string text = occlCommGetLastError(ranks[0]);
  EXPECT_NE(text.find("it has not finished earlier collectives"), std::string::npos) << text;
}

TEST(Failure, DestroyEndsWithWhatIsInFlight) {
  Calls calls;
  auto start = std::chrono::steady_clock::now();
  {
    Ranks ranks(2, withTimeout(300));
    Job job(1, handleOf(ringAllReduce(2)), 1000);
    ASSERT_EQ(job.submit(ranks[0], 0, nullptr, Calls::count, &calls), occlSuccess);
    ranks.destroy(0);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_EQ(calls.byResult[occlTimeout].load(), 1u);
}

} // namespace
} // namespace occl::communicator::testing
