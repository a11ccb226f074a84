// Calls that nothing is registered for: any shape on a sequence, sequences in any order, what is
// said where ranks disagree.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <random>
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

uint64_t newSeed() {
  uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  return seed;
}

/// Calls the job, and says what is wrong with the result.
std::string callAndCheck(Job &job, occlComm_t comm, uint32_t rank) {
  job.clear(rank);
  occlCall_t call = job.call(rank);
  return occlCall(comm, &call, nullptr) == occlSuccess ? job.check(rank) : lastError("occlCall");
}

std::string startAndWait(Job &job, uint64_t id, occlComm_t comm, uint32_t rank) {
  job.clear(rank);
  occlCall_t call = job.call(rank);
  call.id = id;
  occlRequest_t request = 0;
  occlResult_t result;
  while ((result = occlStart(comm, &call, nullptr, nullptr, &request)) == occlAgain)
    std::this_thread::yield();
  if (result == occlSuccess)
    result = occlWait(comm, request);
  return result == occlSuccess ? job.check(rank) : lastError("occlStart");
}

/// Shapes of all kinds of plans, in lines and without, of all types.
std::vector<Job> shapesFor(uint32_t n) {
  std::vector<PlanHandle> plans;
  for (auto make : {ringAllReduce, oneShotAllReduce, twoShotAllReduce, ringAllGather,
                    ringReduceScatter, allToAll}) {
    plans.push_back(handleOf(make(n)));
    plans.push_back(inLines(make(n)));
  }
  for (uint32_t root : {0u, n - 1}) {
    plans.push_back(handleOf(chainBroadcast(n, 1, root)));
    plans.push_back(inLines(chainReduce(n, 1, root)));
  }
  std::vector<Job> jobs;
  for (const PlanHandle &plan : plans)
    for (uint64_t count : {0, 1, 17, 1009}) {
      const uint64_t index = jobs.size();
      jobs.emplace_back(index, plan, count, static_cast<DataType>(index % kNumDataTypes),
                        index % 4 == 0 ? ReduceOp::Max : ReduceOp::Sum);
    }
  return jobs;
}

/// The same calls on all ranks, most of them one of two shapes in turn.
std::string callAtRandom(std::vector<Job> &jobs, occlComm_t comm, uint32_t rank, uint64_t seed,
                         int calls) {
  std::mt19937_64 random(seed);
  std::string wrong;
  for (int i = 0; i < calls && wrong.empty(); ++i) {
    const uint64_t drawn = random();
    const uint64_t which = drawn % 4 == 0 ? drawn / 4 % jobs.size() : 8 * (i % 2) + 5;
    wrong = callAndCheck(jobs[which], comm, rank);
  }
  return wrong;
}

class CallOf : public ::testing::TestWithParam<uint32_t> {};

TEST_P(CallOf, AnyShapesInOneSequence) {
  const uint64_t seed = newSeed();
  Ranks ranks(GetParam());
  std::vector<Job> jobs = shapesFor(GetParam());
  ranks.run([&](uint32_t r) {
    for (Job &job : jobs)
      ASSERT_EQ(callAndCheck(job, ranks[r], r), "");
    EXPECT_EQ(callAtRandom(jobs, ranks[r], r, seed, 2000 / kSlowness), "");
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CallOf, ::testing::Values(1u, 2u, 3u, 5u));

TEST(Call, AnyShapesBetweenProcesses) {
  const uint64_t seed = newSeed();
  inProcesses(3, "call", [&](occlComm_t comm, uint32_t rank) {
    std::vector<Job> jobs = shapesFor(3);
    return callAtRandom(jobs, comm, rank, seed, 2000 / kSlowness);
  });
}

TEST(Call, ThreadsOfARankHaveSequencesOfTheirOwnWithTheSameShapes) {
  constexpr uint32_t kRanks = 2, kThreads = 3;
  Ranks ranks(kRanks);
  PlanHandle lines = inLines(oneShotAllReduce(kRanks)), ring = handleOf(ringAllReduce(kRanks));
  std::vector<Job> jobs;
  for (uint32_t t = 0; t < kThreads; ++t) {
    jobs.emplace_back(t, lines, 16);
    jobs.emplace_back(t, t % 2 ? lines : ring, 40);
  }
  ranks.run([&](uint32_t r) {
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (uint32_t i = 0; i < 600 / kSlowness; ++i)
          ASSERT_EQ(startAndWait(jobs[2 * t + i % 2], t, ranks[r], r), "");
      });
    for (std::thread &thread : threads)
      thread.join();
  });
}

/// Rank r's sequences in an order of its own; in each of them the same random shapes.
TEST(Call, SequencesInConflictingOrdersWithRandomShapes) {
  constexpr uint32_t kRanks = 3, kIds = 8;
  const uint64_t seed = newSeed();
  const uint32_t kRounds = 10000 / kIds / kSlowness;
  Ranks ranks(kRanks);
  std::vector<std::vector<Job>> shapes; // by id: calls of several ids are in flight at once
  for (uint32_t i = 0; i < kIds; ++i)
    shapes.push_back(shapesFor(kRanks));
  ranks.run([&](uint32_t r) {
    std::mt19937_64 random(seed), own(seed + r + 1);
    std::vector<uint32_t> order(kIds), chosen(kIds);
    for (uint32_t i = 0; i < kIds; ++i)
      order[i] = i;
    for (uint32_t round = 0; round < kRounds; ++round) {
      std::vector<occlRequest_t> requests;
      for (uint32_t &shape : chosen)
        shape = static_cast<uint32_t>(random() % shapes[0].size());
      std::shuffle(order.begin(), order.end(), own);
      for (uint32_t id : order) {
        Job &job = shapes[id][chosen[id]];
        job.clear(r);
        occlCall_t call = job.call(r);
        call.id = id;
        requests.push_back(0);
        ASSERT_EQ(occlStart(ranks[r], &call, nullptr, nullptr, &requests.back()), occlSuccess)
            << occlGetLastError();
      }
      ASSERT_EQ(waitForAll(ranks[r], requests), "");
      for (uint32_t id = 0; id < kIds; ++id)
        ASSERT_EQ(shapes[id][chosen[id]].check(r), "");
    }
  });
}

TEST(Call, MoreShapesThanAreKept) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  PlanHandle lines = inLines(oneShotAllReduce(kRanks));
  std::vector<Job> jobs;
  for (uint32_t count = 0; count < 600; ++count)
    jobs.emplace_back(count, lines, count);
  ranks.run([&](uint32_t r) {
    for (int round = 0; round < 2; ++round)
      for (Job &job : jobs)
        ASSERT_EQ(callAndCheck(job, ranks[r], r), "");
  });
}

/// The ring's lines are what another shape has left there for long.
TEST(Call, TheFirstShapeComesBackAfterALongTime) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  PlanHandle lines = inLines(oneShotAllReduce(kRanks));
  Job first(0, lines, 16), second(1, lines, 4);
  ranks.run([&](uint32_t r) {
    for (int round = 0; round < 2; ++round) {
      for (uint32_t i = 0; i < 20; ++i)
        ASSERT_EQ(callAndCheck(first, ranks[r], r), "");
      occlCall_t call = second.call(r);
      for (uint32_t i = 0; i < (1 << 16) + 100; ++i)
        ASSERT_EQ(occlCall(ranks[r], &call, nullptr), occlSuccess) << occlGetLastError();
    }
    for (uint32_t i = 0; i < 20; ++i)
      ASSERT_EQ(callAndCheck(first, ranks[r], r), "");
  });
}

TEST(Call, CallsAndAnIdAreTwoSequences) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  Job own(7, inLines(oneShotAllReduce(kRanks)), 16), other(7, handleOf(ringAllReduce(kRanks)), 100);
  ranks.run([&](uint32_t r) {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 50; ++i) {
        own.clear(r);
        ASSERT_EQ(own.run(ranks[r], r), occlSuccess);
        ASSERT_EQ(own.check(r), "");
        ASSERT_EQ(startAndWait(other, 7, ranks[r], r), "");
      }
    }
  });
}

/// A root that is not waited for runs ahead no further than there is room, and waits there.
TEST(Call, WaitsForRoom) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  Job job(0, inLines(chainBroadcast(kRanks, 1)), 8);
  ranks.run([&](uint32_t r) {
    if (r == 1)
      std::this_thread::sleep_for(100ms);
    for (int i = 0; i < 100; ++i)
      ASSERT_EQ(callAndCheck(job, ranks[r], r), "");
  });
}

/// Rank 0 makes `one`, the others `other`; all learn what each of the two has.
void expectMismatch(occlCall_t one, occlCall_t other, const std::string &saidOfOne,
                    const std::string &saidOfOther, uint32_t n = 2) {
  Ranks ranks(n);
  ranks.run([&](uint32_t r) {
    occlCall_t call = r == 0 ? one : other;
    std::vector<float> send(1000), receive(1000);
    call.sendBuffer = send.data();
    call.recvBuffer = receive.data();
    occlResult_t result = occlSuccess;
    // A rank may be ahead of its reader by eight calls, and that one of its own.
    for (int i = 0; i < 100 && result == occlSuccess; ++i)
      result = occlCall(ranks[r], &call, nullptr);
    EXPECT_EQ(result, occlMismatch) << occlGetLastError();
    std::string text = occlCommGetLastError(ranks[r]);
    EXPECT_NE(text.find("rank 0 has " + saidOfOne), std::string::npos) << text;
    EXPECT_NE(text.find(" has " + saidOfOther), std::string::npos) << text;
  });
}

occlCall_t callOf(const PlanHandle &plan, uint64_t count = 16, occlDataType_t type = occlFloat32,
                  occlRedOp_t op = occlSum) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plan.get();
  call.count = count;
  call.dataType = type;
  call.op = op;
  return call;
}

TEST(Call, AMismatchOfAnyFieldIsNamedOnAllRanks) {
  for (bool lines : {false, true}) {
    auto make = [&](plan::Plan plan) {
      return lines ? inLines(std::move(plan)) : handleOf(std::move(plan));
    };
    PlanHandle sum = make(oneShotAllReduce(2)), ring = make(ringAllReduce(2)),
               gather = make(ringAllGather(2)), first = make(chainBroadcast(2, 1, 0)),
               second = make(chainBroadcast(2, 1, 1)), reduceFirst = make(chainReduce(2, 1, 0)),
               reduceSecond = make(chainReduce(2, 1, 1));
    expectMismatch(callOf(sum), callOf(sum, 17), "allreduce, count 16", "allreduce, count 17");
    expectMismatch(callOf(sum), callOf(sum, 16, occlInt32), "allreduce, count 16, type float32",
                   "allreduce, count 16, type int32");
    expectMismatch(callOf(sum), callOf(sum, 16, occlFloat32, occlMax),
                   "allreduce, count 16, type float32, operation sum",
                   "allreduce, count 16, type float32, operation max");
    expectMismatch(callOf(sum), callOf(ring), "allreduce", "allreduce");
    expectMismatch(callOf(sum), callOf(gather), "allreduce", "allgather");
    expectMismatch(callOf(sum), callOf(first), "allreduce", "broadcast");
    // Nobody waits for anybody.
    expectMismatch(callOf(first), callOf(second), "broadcast, count 16, type float32",
                   "broadcast, count 16");
    expectMismatch(callOf(reduceSecond), callOf(reduceFirst), "reduce", "reduce");
  }
}

/// Ranks 1 and 2 agree, and nobody needs rank 0's data, nor it theirs.
TEST(Call, AMismatchBetweenRanksThatDoNotWaitForEachOtherIsFound) {
  PlanHandle first = inLines(chainBroadcast(3, 1, 0)), second = inLines(chainBroadcast(3, 1, 1));
  expectMismatch(callOf(first), callOf(second), "broadcast", "broadcast", 3);
}

TEST(Call, ARefusedCallHasNoNumber) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  PlanHandle sum = handleOf(oneShotAllReduce(kRanks)), forThree = handleOf(oneShotAllReduce(3));
  Job job(0, sum, 16);
  std::vector<float> buffer(64);
  auto refused = [&](occlCall_t call, occlResult_t as, const char *why) {
    EXPECT_EQ(occlCall(ranks[0], &call, nullptr), as);
    EXPECT_NE(std::string(occlGetLastError()).find(why), std::string::npos) << occlGetLastError();
  };
  occlCall_t good = callOf(sum);
  good.sendBuffer = good.recvBuffer = buffer.data();
  occlCall_t call = good;
  call.kind = static_cast<occlKind_t>(9);
  refused(call, occlInvalidArgument, "kind 9 is unknown");
  call.kind = occlKindAllReduce;
  refused(call, occlInvalidArgument, "kind must be occlKindPlan");
  call = good;
  call.plan = nullptr;
  refused(call, occlInvalidArgument, "needs a plan");
  call.plan = forThree.get();
  refused(call, occlInvalidPlan, "is for 3 ranks");
  call = good;
  call.dataType = static_cast<occlDataType_t>(77);
  refused(call, occlInvalidArgument, "dataType 77");
  call = good;
  call.op = static_cast<occlRedOp_t>(5);
  refused(call, occlInvalidArgument, "op 5");
  call = good;
  call.count = ~0ull;
  refused(call, occlInvalidArgument, "2^58");
  call = good;
  call.recvBuffer = buffer.data() + 1;
  refused(call, occlInvalidArgument, "overlap");
  call = good;
  call.size = 0;
  refused(call, occlInvalidArgument, "OCCL_CALL_INITIALIZER");
  EXPECT_EQ(occlCall(ranks[0], &good, reinterpret_cast<CUstream_st *>(1)), occlInvalidArgument);
  EXPECT_EQ(occlStart(ranks[0], &good, nullptr, nullptr, nullptr), occlInvalidArgument);
  occlRequest_t request;
  call = good;
  call.id = UINT64_MAX;
  EXPECT_EQ(occlStart(ranks[0], &call, nullptr, nullptr, &request), occlInvalidArgument);
  ranks.run([&](uint32_t r) { EXPECT_EQ(callAndCheck(job, ranks[r], r), ""); });
}

TEST(Call, AfterAnAbortCallsReturnWhy) {
  Ranks ranks(2);
  Job job(0, inLines(oneShotAllReduce(2)), 16);
  ranks.run([&](uint32_t r) {
    ASSERT_EQ(callAndCheck(job, ranks[r], r), "");
    occlCall_t call = job.call(r);
    if (r == 1) {
      std::this_thread::sleep_for(20ms);
      EXPECT_EQ(occlCommAbort(ranks[1]), occlSuccess);
    }
    EXPECT_EQ(occlCall(ranks[r], &call, nullptr), occlAborted);
    EXPECT_EQ(occlCall(ranks[r], &call, nullptr), occlAborted);
  });
}

TEST(Call, ADeadlineEndsTheWaitForRoom) {
  Ranks ranks(2);
  Job job(0, inLines(chainBroadcast(2, 1)), 8);
  occlCall_t call = job.call(0);
  call.timeoutMs = 50;
  occlResult_t result = occlSuccess;
  for (int i = 0; i < 20 && result == occlSuccess; ++i)
    result = occlCall(ranks[0], &call, nullptr);
  EXPECT_EQ(result, occlTimeout) << occlGetLastError();
}

TEST(Call, AKilledRankIsAnErrorOnAllOthers) {
  constexpr uint32_t kRanks = 3;
  std::string name = jobName("call_killed");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    std::vector<Job> jobs = shapesFor(kRanks);
    std::string wrong;
    for (int i = 0; wrong.empty(); ++i) {
      if (rank == 1 && i == 40)
        raise(SIGKILL);
      wrong = callAndCheck(jobs[i % jobs.size()], comm, rank);
    }
    std::string text = occlCommGetLastError(comm);
    occlCommDestroy(comm);
    return text.find("process of rank 1 is gone") == std::string::npos ? text + "; " + wrong : "";
  });
  EXPECT_EQ(processes.join(1), -1);
  for (uint32_t r : {0u, 2u})
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

} // namespace
} // namespace occl::communicator::testing
