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
#include <chrono>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
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

TEST(PrepostedRing, AnyOrderOfSubmissionBetweenThreads) {
  constexpr uint32_t kRanks = 4;
  std::vector<Job> jobs = makeJobs(kRanks);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) { ASSERT_EQ(iterate(ranks[r], jobs, r, 30 / kSlowness + 1), ""); });
}

TEST(PrepostedRing, AnyOrderOfSubmissionBetweenProcesses) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "preposted_ring", [](occlComm_t comm, uint32_t rank) {
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

TEST(PrepostedRing, CalledWithOtherCounts) {
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

/// Shapes that share the ring of the calls, or are too large for it, in lines or not, each at the
/// same place of the sequence on all ranks but with what is started beside.
std::string callInTurns(occlComm_t comm, std::vector<Job> &jobs, uint32_t rank,
                        uint32_t iterations) {
  constexpr uint32_t kSeed = 12;
  std::mt19937 common(kSeed), random(kSeed + rank + 1);
  for (uint32_t i = 0; i < iterations; ++i) {
    Job &job = jobs[common() % jobs.size()];
    job.clear(rank);
    const bool isShort = common() % 2 == 0;
    for (uint32_t k = 0; k < (isShort ? 1 : 3); ++k)
      if (job.run(comm, rank) != occlSuccess)
        return lastError("occlCall");
    std::string wrong = job.check(rank);
    if (!wrong.empty())
      return wrong + ", call " + std::to_string(i) + ", seed " + std::to_string(kSeed);
    if (random() % 50 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  }
  return "";
}

std::vector<Job> makeShapes(uint32_t numRanks) {
  std::vector<Job> shapes;
  for (uint64_t count : {1, 7, 60, 200, 1500, 40000})
    for (DataType type : {DataType::Int32, DataType::Float64})
      for (auto make : {oneShotAllReduce, ringAllGather, allToAll})
        shapes.emplace_back(0, inLines(make(numRanks)), count, type);
  for (uint32_t root = 0; root < numRanks; ++root) {
    shapes.emplace_back(0, inLines(chainBroadcast(numRanks, 2, root), plan::Protocol::LL), 24);
    shapes.emplace_back(0, inLines(chainReduce(numRanks, 1, root)), 30, DataType::Int32);
  }
  shapes.emplace_back(0, handleOf(twoShotAllReduce(numRanks)), 100);
  return shapes;
}

TEST(PrepostedRing, IsSharedByAllSmallShapesBetweenThreads) {
  for (uint32_t numRanks : {2u, 5u}) {
    std::vector<Job> shapes = makeShapes(numRanks);
    Ranks ranks(numRanks);
    ranks.run(
        [&](uint32_t r) { ASSERT_EQ(callInTurns(ranks[r], shapes, r, 1500 / kSlowness + 1), ""); });
  }
}

TEST(PrepostedRing, IsSharedByAllSmallShapesBetweenProcesses) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "preposted_ring_shapes", [](occlComm_t comm, uint32_t rank) {
    std::vector<Job> shapes = makeShapes(kRanks);
    return callInTurns(comm, shapes, rank, 1000);
  });
}

/// Whatever is called first: what comes later and fits waits for no announcement either. A second
/// call of each shape knows the peer's ring.
TEST(PrepostedRing, EveryShapeThatFitsUsesIt) {
  constexpr uint32_t kRanks = 2;
  std::vector<Job> jobs;
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::LL128})
    for (uint64_t count : {1, 300, 20})
      jobs.emplace_back(0, inLines(oneShotAllReduce(kRanks), protocol), count);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    for (uint32_t call = 0; call < 2 * jobs.size(); ++call) {
      ASSERT_EQ(jobs[call % jobs.size()].run(ranks[r], r), occlSuccess) << occlGetLastError();
      ranks[r]->daemon->inspect(daemon::kCallSequence, [&](const daemon::IdState &sequence) {
        const daemon::OpenInvocation *last = sequence.unreclaimed[call % 8];
        ASSERT_NE(last, nullptr);
        EXPECT_TRUE(last->usesRing) << "rank " << r << ", call " << call;
        if (call < jobs.size())
          return;
        const auto ring = transport::PrepostedRing::unpack(sequence.peerRings[1 - r].load());
        ASSERT_NE(ring.largest, 0u) << "rank " << r << ", call " << call;
        const char *block = last->view.places[interpreter::arenaPlace(1 - r)];
        const uint64_t needed = last->collective->binding->arenaBytes(1 - r);
        const char *arena = block - ring.offsetOf(call, needed);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(arena) % 4096, 0u)
            << "rank " << r << ", call " << call;
      });
    }
  });
}

/// Rank 1 forgets the id and comes back to it: then its blocks lie elsewhere, and the others
/// notice.
TEST(PrepostedRing, ForgottenByOneRankOnly) {
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
TEST(PrepostedRing, IsSoAgainWhenItComesBack) {
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
    uint64_t largest = 0;
    ranks[r]->daemon->inspect(
        5, [&](const daemon::IdState &sequence) { largest = sequence.ring.largest; });
    EXPECT_NE(largest, 0u) << "rank " << r;
  });
}

/// Two shapes whose blocks look alike and that have both been called before, or not.
TEST(PrepostedRing, ADisagreementIsFound) {
  constexpr uint32_t kRanks = 2;
  for (bool areKnown : {false, true}) {
    Job job(5, inLines(oneShotAllReduce(kRanks)), 10);
    Job other(5, inLines(oneShotAllReduce(kRanks)), 9);
    Ranks ranks(kRanks);
    ranks.run([&](uint32_t r) {
      ASSERT_NO_FATAL_FAILURE(runOnce(ranks, job, r));
      if (areKnown) {
        ASSERT_NO_FATAL_FAILURE(runOnce(ranks, other, r));
      }
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
}

/// Who waits for data where a rank's blocks lie says whether that rank has called it at all: by the
/// thread that calls, and by the executors of what is started.
TEST(PrepostedRing, RanksThatHaveNotCalledAreNamed) {
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

/// Each shape has readers of its own: the next one holds back who runs ahead of any of them. Rank 0
/// sends to rank 1, then to rank 2, which does not come.
TEST(PrepostedRing, ASenderIsHeldBackByTheReadersOfAllShapes) {
  constexpr uint32_t kRanks = 5;
  Job first(5, inLines(chainBroadcast(kRanks, 1)), 10);
  Job second(5, inLines(chainBroadcastAlong({0, 2, 4, 1, 3}, 1)), 10);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) { ASSERT_NO_FATAL_FAILURE(runOnce(ranks, first, r)); });
  occlRequest_t request = 0;
  uint32_t numAccepted = 0;
  while (numAccepted < 100 && second.submit(ranks[0], 0, &request) == occlSuccess) {
    ASSERT_EQ(occlWait(ranks[0], request), occlSuccess);
    ++numAccepted;
  }
  EXPECT_EQ(numAccepted, 8u);
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; r != 0 && i < numAccepted; ++i)
      ASSERT_NO_FATAL_FAILURE(runOnce(ranks, second, r));
  });
}

/// But not by those who read other shapes, for longer than these: rank 0 goes ahead with what only
/// rank 1 reads, while rank 3 waits for what rank 0 starts afterwards.
TEST(PrepostedRing, ASenderIsNotHeldBackByWhoReadsOtherShapes) {
  constexpr uint32_t kRanks = 4, kAhead = 18;
  Job forward(0, inLines(chainBroadcast(kRanks, 1)), 10);
  Job sum(0, inLines(oneShotAllReduce(kRanks)), 10);
  Job beside(7, handleOf(oneShotAllReduce(kRanks)), 10);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    occlRequest_t request = 0;
    const auto start = [&] {
      ASSERT_EQ(beside.submit(ranks[r], r, &request), occlSuccess) << occlGetLastError();
    };
    const auto wait = [&] {
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlCommGetLastError(ranks[r]);
    };
    const auto callAll = [&] {
      for (uint32_t i = 0; i < kAhead; ++i)
        ASSERT_EQ(forward.run(ranks[r], r), occlSuccess) << occlCommGetLastError(ranks[r]);
    };
    for (int round = 0; round < 5; ++round) {
      ASSERT_EQ(sum.run(ranks[r], r), occlSuccess) << occlCommGetLastError(ranks[r]);
      if (r == 0)
        callAll();
      start();
      if (r == 3)
        wait();
      if (r != 0)
        callAll();
      if (r != 3)
        wait();
    }
    ASSERT_EQ(forward.check(r) + sum.check(r) + beside.check(r), "");
  });
}

/// More ids than there is memory for rings, in any order: some ranks have one for an id and others
/// have not, or get it later, when another id has given its own back.
TEST(PrepostedRing, SomeRanksHaveNoneOrLate) {
  constexpr uint32_t kRanks = 3, kIds = 40, kSeed = 3;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 256 << 10;
  Ranks ranks(kRanks, config);
  std::vector<Job> jobs;
  for (uint32_t id = 0; id < kIds; ++id)
    jobs.emplace_back(id, inLines(oneShotAllReduce(kRanks)), 20 + id, DataType::Int32);
  ranks[1]->daemon->setMostActiveSequences(kIds / 4);
  std::atomic<uint32_t> numWith{0}, numWithout{0};
  ranks.run([&](uint32_t r) {
    std::mt19937 random(kSeed + r);
    std::vector<uint32_t> order(kIds);
    std::iota(order.begin(), order.end(), 0);
    for (uint32_t iteration = 0; iteration < 60 / kSlowness + 1; ++iteration) {
      std::shuffle(order.begin(), order.end(), random);
      ASSERT_EQ(runInOrder(ranks[r], jobs, r, order), "") << "seed " << kSeed;
    }
    for (uint32_t id = 0; id < kIds; ++id)
      ranks[r]->daemon->inspect(id, [&](const daemon::IdState &sequence) {
        ++(sequence.ring.largest != 0 ? numWith : numWithout);
      });
  });
  EXPECT_GT(numWith.load(), 0u);
  EXPECT_GT(numWithout.load(), 0u);
}

/// Rank 0 of a broadcast waits for nobody: it may run ahead of the others as far as the blocks
/// reach.
TEST(PrepostedRing, ASenderThatRunsAheadIsHeldBack) {
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
