// Buffers between processes: shared ones, ones that peers read, plans that access them directly;
// and peers that die in the middle.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

/// A heap that holds the buffers of a test.
occlConfig_t withHeap() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.heapBytes = 64 << 20;
  return config;
}

/// One all-reduce of int32 between buffers of occlMemAlloc, `rounds` times.
std::string reduceShared(occlComm_t comm, uint32_t rank, uint32_t numRanks, const PlanHandle &plan,
                         uint64_t count, int32_t rounds) {
  occlPlan_t handle = plan.get();
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.id = count;
  call.plan = handle;
  call.count = count;
  call.dataType = occlInt32;
  void *memory[2] = {};
  for (void *&buffer : memory)
    if (occlMemAlloc(comm, count * sizeof(int32_t), &buffer) != occlSuccess)
      return lastError("occlMemAlloc");
  auto *input = static_cast<int32_t *>(memory[0]), *output = static_cast<int32_t *>(memory[1]);
  for (int32_t round = 0; round < rounds; ++round) {
    for (uint64_t i = 0; i < count; ++i)
      input[i] = static_cast<int32_t>(i) + round * static_cast<int32_t>(rank + 1);
    occlRequest_t request = 0;
    call.sendBuffer = input;
    call.recvBuffer = output;
    if (occlStart(comm, &call, nullptr, nullptr, &request) != occlSuccess)
      return lastError("occlStart");
    if (occlWait(comm, request) != occlSuccess)
      return lastError("occlWait");
    auto n = static_cast<int32_t>(numRanks);
    for (uint64_t i = 0; i < count; ++i)
      if (output[i] != n * static_cast<int32_t>(i) + round * n * (n + 1) / 2)
        return "round " + std::to_string(round) + ": element " + std::to_string(i) + " is " +
               std::to_string(output[i]);
  }
  for (void *buffer : memory)
    if (occlMemFree(comm, buffer) != occlSuccess)
      return lastError("occlMemFree");
  return {};
}

TEST(Memory, DirectAccessToSharedBuffers) {
  constexpr uint32_t kRanks = 3;
  inProcesses(
      kRanks, "shared-direct",
      [](occlComm_t comm, uint32_t rank) {
        std::string wrong;
        for (uint64_t count : {1, 1000, 300000})
          wrong += reduceShared(comm, rank, kRanks, handleOf(directAllReduce(kRanks)), count, 20);
        return wrong;
      },
      withHeap());
}

TEST(Memory, MessagesBetweenSharedBuffers) {
  constexpr uint32_t kRanks = 3;
  inProcesses(
      kRanks, "shared-messages",
      [](occlComm_t comm, uint32_t rank) {
        std::string wrong;
        for (uint64_t count : {1, 20000, 300000})
          for (auto make : {twoShotAllReduce, ringAllReduce})
            wrong += reduceShared(comm, rank, kRanks, handleOf(make(kRanks)),
                                  count + (make == ringAllReduce), 10);
        return wrong;
      },
      withHeap());
}

TEST(Memory, MessagesBetweenAnyBuffers) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "any", [](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<Job> jobs;
    uint64_t id = 0;
    for (uint64_t count : {100, 30000, 500000})
      for (auto make : {allToAll, ringAllGather, twoShotAllReduce})
        jobs.emplace_back(id++, handleOf(make(kRanks)), count);
    std::string wrong;
    for (uint64_t round = 0; round < 2 && wrong.empty(); ++round) {
      for (Job &job : jobs)
        job.fill(round);
      std::vector<uint32_t> order(jobs.size());
      for (uint32_t j = 0; j < order.size(); ++j)
        order[j] = (j + rank * 2) % static_cast<uint32_t>(order.size());
      wrong = runInOrder(comm, jobs, rank, order);
    }
    return wrong;
  });
}

TEST(Memory, DirectAccessToOtherBuffersIsRefused) {
  constexpr uint32_t kRanks = 2;
  inProcesses(kRanks, "refused", [](occlComm_t comm, uint32_t rank) {
    Job job(0, handleOf(directAllReduce(kRanks)), 100);
    occlRequest_t request = 0;
    occlResult_t result = job.submit(comm, rank, &request);
    std::string text = occlGetLastError();
    bool isRefused =
        result == occlInvalidArgument && text.find("buffers of occlMemAlloc") != std::string::npos;
    return isRefused ? std::string() : "not refused: " + text;
  });
}

/// Large messages all the time: the victim dies in the middle of one, its memory with it.
TEST(Memory, APeerThatIsKilledWhileItIsReadIsReported) {
  constexpr uint32_t kRanks = 3, kVictim = 1;
  std::string name = jobName("killed");
  // The victim says when it is in the middle of it: until then a machine may take its time.
  int running[2];
  ASSERT_EQ(pipe(running), 0);
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    Job job(0, handleOf(allToAll(kRanks)), 1 << 20);
    occlResult_t result = occlSuccess;
    for (int round = 0; result == occlSuccess; ++round) {
      if (rank == kVictim && round == 3 && write(running[1], "x", 1) != 1)
        return "cannot write to the pipe";
      occlRequest_t request = 0;
      result = job.submit(comm, rank, &request);
      if (result == occlSuccess)
        result = occlWait(comm, request);
    }
    std::string text = occlCommGetLastError(comm);
    occlCommDestroy(comm);
    return result == occlPeerFailed && text.find("rank 1") != std::string::npos
               ? std::string()
               : "wrong result " + std::to_string(result) + ": " + text;
  });
  pollfd told = {running[0], POLLIN, 0};
  EXPECT_EQ(poll(&told, 1, 60000), 1);
  close(running[0]);
  close(running[1]);
  processes.kill(kVictim);
  auto killed = std::chrono::steady_clock::now();
  EXPECT_EQ(processes.join(0), 0);
  EXPECT_EQ(processes.join(2), 0);
  EXPECT_EQ(processes.join(kVictim), -1);
  EXPECT_LT(std::chrono::steady_clock::now() - killed, 20s) << "long before the deadline of 30 s";
}

TEST(Memory, SaysWhatIsWrong) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.heapBytes = 1 << 20;
  Ranks ranks(1, config);
  void *memory = nullptr;
  EXPECT_EQ(occlMemAlloc(ranks[0], 2 << 20, &memory), occlAgain);
  EXPECT_NE(std::string(occlGetLastError()).find("set heapBytes higher"), std::string::npos);
  ASSERT_EQ(occlMemAlloc(ranks[0], 1 << 20, &memory), occlSuccess);
  std::memset(memory, 1, 1 << 20);
  int other = 0;
  EXPECT_EQ(occlMemFree(ranks[0], &other), occlInvalidArgument);
  EXPECT_EQ(occlMemFree(ranks[0], memory), occlSuccess);
  EXPECT_EQ(occlMemFree(ranks[0], memory), occlInvalidArgument);
  EXPECT_EQ(occlMemFree(ranks[0], nullptr), occlSuccess);
  EXPECT_EQ(occlMemAlloc(ranks[0], 1, nullptr), occlInvalidArgument);
}

} // namespace
} // namespace occl::communicator::testing
