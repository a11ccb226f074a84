// Calls in place by plans that are valid out of place only: they read a copy of their input.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

/// Of an all-to-all: the input comes to lie in the output.
void putInPlace(Job &job, uint32_t rank, uint64_t bytes) {
  std::memcpy(job.output(rank), job.input(rank), bytes);
}

/// Small ones, one after the other: in the lane, too.
TEST(InPlace, AllToAllsInTheLane) {
  constexpr uint32_t kTimes = 200;
  constexpr uint64_t kCount = 16;
  for (uint32_t n : {2u, 3u}) {
    plan::Plan plan = allToAllInTurn(n);
    plan.protocol = plan::Protocol::LL128;
    Ranks ranks(n);
    Job job(7, handleOf(plan), kCount, DataType::Int32);
    ranks.run([&](uint32_t r) {
      for (uint32_t i = 0; i < kTimes; ++i) {
        putInPlace(job, r, kCount * n * sizeof(int32_t));
        ASSERT_EQ(job.runOn(ranks[r], job.output(r), job.output(r)), occlSuccess)
            << occlGetLastError();
        ASSERT_EQ(job.check(r), "") << "call " << i;
      }
      EXPECT_GT(ranks[r]->daemon->stats().completedInLane.load(), 0u);
    });
  }
}

TEST(InPlace, AllToAllsThatAreStartedInConflictingOrders) {
  for (uint32_t n : {1u, 2u, 4u}) {
    std::vector<Job> jobs;
    for (uint32_t type = 0; type < kNumDataTypes; ++type)
      for (uint64_t count : {0, 1, 37, 20'011})
        jobs.emplace_back(jobs.size(), handleOf(allToAllInTurn(n)), count,
                          static_cast<DataType>(type));
    Ranks ranks(n);
    ranks.run([&](uint32_t r) {
      std::vector<occlRequest_t> requests;
      for (uint32_t i : latinOrder(static_cast<uint32_t>(jobs.size()), r, 0)) {
        Job &job = jobs[i];
        const occlCall_t call = job.call(r);
        putInPlace(job, r, call.count * n * sizeOf(static_cast<DataType>(call.dataType)));
        occlResult_t result = occlAgain;
        while (result == occlAgain)
          result = job.submitOn(ranks[r], job.output(r), job.output(r), &requests.emplace_back());
        ASSERT_EQ(result, occlSuccess) << occlGetLastError();
      }
      EXPECT_EQ(waitForAll(ranks[r], requests), "");
      EXPECT_EQ(checkAll(jobs, r), "");
    });
  }
}

/// The others have two buffers.
TEST(InPlace, OnOneRankAlone) {
  constexpr uint32_t kRanks = 3;
  constexpr uint64_t kCount = 5000;
  Job job(1, handleOf(allToAllInTurn(kRanks)), kCount);
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    if (r == 1)
      putInPlace(job, r, kCount * kRanks * sizeof(float));
    ASSERT_EQ(job.runOn(ranks[r], r == 1 ? job.output(r) : job.input(r), job.output(r)),
              occlSuccess)
        << occlGetLastError();
    EXPECT_EQ(job.check(r), "");
  });
}

/// All-reduces in memory that peers can access.
std::string reduceShared(occlComm_t comm, uint32_t rank, const plan::Plan &plan) {
  const PlanHandle handle = handleOf(plan);
  const auto n = static_cast<int32_t>(plan.numRanks);
  for (uint64_t count : {1, 3000, 300'000}) {
    void *memory = nullptr;
    if (occlMemAlloc(comm, count * sizeof(int32_t), &memory) != occlSuccess)
      return lastError("occlMemAlloc");
    const std::span values(static_cast<int32_t *>(memory), count);
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.plan = handle.get();
    call.sendBuffer = call.recvBuffer = memory;
    call.count = count;
    call.dataType = occlInt32;
    for (int32_t round = 0; round < 10; ++round) {
      for (uint64_t i = 0; i < count; ++i)
        values[i] = static_cast<int32_t>(i % 1000) + round * static_cast<int32_t>(rank + 1);
      if (occlCall(comm, &call, nullptr) != occlSuccess)
        return lastError("occlCall");
      for (uint64_t i = 0; i < count; ++i)
        if (values[i] != n * static_cast<int32_t>(i % 1000) + round * n * (n + 1) / 2)
          return plan.name + ", round " + std::to_string(round) + ": element " + std::to_string(i) +
                 " is " + std::to_string(values[i]);
    }
    if (occlMemFree(comm, memory) != occlSuccess)
      return lastError("occlMemFree");
  }
  return "";
}

/// Peers load the input where it lies.
TEST(InPlace, BetweenProcessesInSharedBuffers) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "in-place", [](occlComm_t comm, uint32_t rank) {
    return reduceShared(comm, rank, directInTurn(kRanks));
  });
}

TEST(InPlace, AllToAllsWithoutSharedBuffers) {
  constexpr uint32_t kRanks = 2;
  inProcesses(kRanks, "in-place-own", [](occlComm_t comm, uint32_t rank) -> std::string {
    for (uint64_t count : {1, 1000, 300'000}) {
      Job job(1, handleOf(allToAllInTurn(kRanks)), count);
      for (uint32_t i = 0; i < 5; ++i) {
        putInPlace(job, rank, count * kRanks * sizeof(float));
        if (job.runOn(comm, job.output(rank), job.output(rank)) != occlSuccess)
          return lastError("occlCall");
        if (std::string wrong = job.check(rank); !wrong.empty())
          return wrong;
      }
    }
    return "";
  });
}

/// One copy serves both.
TEST(InPlace, WithAScalar) {
  constexpr uint32_t kRanks = 2;
  const PlanHandle handle = handleOf(directInTurn(kRanks));
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    for (int32_t by : {0, 3}) {
      std::vector<int32_t> values(1000, static_cast<int32_t>(r) + 1);
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.plan = handle.get();
      call.sendBuffer = call.recvBuffer = values.data();
      call.count = values.size();
      call.dataType = occlInt32;
      call.scalar = by != 0 ? &by : nullptr;
      ASSERT_EQ(occlCall(ranks[r], &call, nullptr), occlSuccess) << occlGetLastError();
      EXPECT_EQ(values, std::vector<int32_t>(1000, 3 * (by != 0 ? by : 1)));
    }
  });
}

TEST(InPlace, OtherBuffersThatOverlapAreRefused) {
  constexpr uint64_t kCount = 100;
  Ranks ranks(2);
  std::vector<float> memory(4 * kCount);
  float *middle = memory.data() + kCount;
  for (int64_t apart : {-199, -1, 1, 100, 199})
    for (bool isStarted : {false, true}) {
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = occlKindAllToAll;
      call.sendBuffer = apart < 0 ? middle - apart : middle;
      call.recvBuffer = apart < 0 ? middle : middle + apart;
      call.count = kCount;
      occlRequest_t request = 0;
      EXPECT_EQ(isStarted ? occlStart(ranks[0], &call, nullptr, nullptr, &request)
                          : occlCall(ranks[0], &call, nullptr),
                occlInvalidArgument);
      EXPECT_NE(std::string(occlGetLastError())
                    .find("the buffers overlap, but not as in place demands (send buffer = receive "
                          "buffer)"),
                std::string::npos)
          << occlGetLastError();
    }
  // None of them had a number.
  ranks.run([&](uint32_t r) {
    float mine[2] = {static_cast<float>(r), static_cast<float>(r) + 10};
    ASSERT_EQ(occlAllToAll(mine, mine, 1, occlFloat32, ranks[r], nullptr), occlSuccess)
        << occlGetLastError();
    EXPECT_EQ(mine[0], r == 0 ? 0.0f : 10.0f);
    EXPECT_EQ(mine[1], r == 0 ? 1.0f : 11.0f);
  });
}

} // namespace
} // namespace occl::communicator::testing
