// Collectives in CUDA streams, ranks being threads: on as many devices as there are, several on one
// if need be. Skipped where there is no device.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "test/gpu/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

class InStream : public RanksOnDevices {};

class AllRight : public RanksOnDevices {};

TEST_F(AllRight, CollectivesProtocolsAndShapes) { runAll(casesFor(numRanks())); }
TEST_F(AllRight, TypesAndOperationsInAndOutOfPlace) { runAll(typeCasesFor(numRanks())); }

TEST_F(InStream, RanksRegisterAndRunInDifferentOrdersInStreamsOfTheirOwn) {
  constexpr uint64_t kIds = 4;
  auto n = static_cast<uint32_t>(comms.size());
  std::vector<cudaStream_t> streams(n * kIds);
  for (uint32_t i = 0; i < streams.size(); ++i) {
    cudaSetDevice(static_cast<int>(i / kIds % devices));
    cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
  }
  inThreads([&](uint32_t rank) -> std::string {
    for (uint64_t i = 0; i < kIds; ++i) {
      uint64_t id = (i + rank) % kIds;
      if (registerCase(comms[rank], one(plan::testing::twoShotAllReduce(n), id)) != occlSuccess)
        return occlGetLastError();
    }
    for (uint32_t round = 0; round < 20; ++round)
      for (uint64_t i = 0; i < kIds; ++i) {
        uint64_t id = (i + rank + round) % kIds;
        char *output = onDevices[rank]->output(false) + id * 8192;
        if (occlEnqueue(comms[rank], id, onDevices[rank]->input(false), output,
                        streams[rank * kIds + id]) != occlSuccess)
          return occlGetLastError();
      }
    for (uint64_t id = 0; id < kIds; ++id)
      while (cudaStreamQuery(streams[rank * kIds + id]) == cudaErrorNotReady)
        std::this_thread::yield();
    return occlCommGetLastError(comms[rank]);
  });
  for (cudaStream_t stream : streams)
    cudaStreamDestroy(stream);
}

TEST_F(InStream, AMissingRankIsNamedInBoundedTime) {
  for (uint32_t r = 0; r < comms.size(); ++r)
    ASSERT_EQ(registerCase(comms[r], one(plan::testing::oneShotAllReduce(numRanks())), 300),
              occlSuccess)
        << occlGetLastError();
  EXPECT_EQ(enqueue(0, 1), "");
  EXPECT_EQ(onDevices[0]->synchronize(), "");
  for (uint32_t r = 0; r < comms.size(); ++r) {
    EXPECT_NE(failureOf(r).find("rank 0 gave up in 'one_shot_allreduce' (id 1), invocation 0: "
                                "thread block 0, instruction 1 (recvReduceCopy) at "),
              std::string::npos)
        << failureOf(r);
    EXPECT_NE(failureOf(r).find("waits for data from rank"), std::string::npos) << failureOf(r);
    EXPECT_NE(enqueue(r, 1), "");
  }
}

TEST_F(InStream, ARankThatHasNotRegisteredIsNamed) {
  ASSERT_EQ(registerCase(comms[0], one(plan::testing::directAllReduce(numRanks())), 300),
            occlSuccess);
  EXPECT_EQ(enqueue(0, 1, true), "");
  EXPECT_EQ(onDevices[0]->synchronize(), "");
  EXPECT_NE(failureOf(1).find("to register it"), std::string::npos) << failureOf(1);
}

TEST_F(InStream, AbortEndsWhatWaits) {
  ASSERT_EQ(registerCase(comms[0], one(plan::testing::ringAllReduce(numRanks()))), occlSuccess);
  EXPECT_EQ(enqueue(0, 1), "");
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(cudaStreamQuery(onDevices[0]->stream()), cudaErrorNotReady);
  EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
  EXPECT_EQ(onDevices[0]->synchronize(), "");
  EXPECT_NE(failureOf(0).find("occlCommAbort was called on rank 1"), std::string::npos);
}

TEST_F(InStream, ARankThatLeavesIsNoticed) {
  ASSERT_EQ(registerCase(comms[0], one(plan::testing::ringAllReduce(numRanks()))), occlSuccess);
  EXPECT_EQ(enqueue(0, 1), "");
  for (uint32_t r = 1; r < comms.size(); ++r) {
    occlCommDestroy(comms[r]);
    comms[r] = nullptr;
  }
  EXPECT_EQ(onDevices[0]->synchronize(), "");
  EXPECT_NE(failureOf(0).find("has destroyed its communicator"), std::string::npos) << failureOf(0);
}

TEST_F(InStream, WhatDoesNotFitIsRefused) {
  Case what = one(plan::testing::ringAllReduce(numRanks()));
  ASSERT_EQ(registerCase(comms[0], what), occlSuccess);
  EXPECT_EQ(registerCase(comms[0], what), occlInvalidArgument);
  ++what.count;
  EXPECT_EQ(registerCase(comms[1], what), occlMismatch);
  EXPECT_EQ(registerCase(comms[1], one(plan::testing::ringAllReduce(numRanks() + 1), 2)),
            occlInvalidArgument);
  what.count = 1'000'000;
  occlResult_t result = occlSuccess;
  for (what.id = 3; what.id < 1000 && result == occlSuccess; ++what.id)
    result = registerCase(comms[1], what);
  EXPECT_EQ(result, occlAgain) << "device memory has no end";
  occlRequest_t request = 0;
  EXPECT_EQ(occlSubmit(comms[0], 9, nullptr, nullptr, nullptr, nullptr, &request),
            occlInvalidArgument);
  void *memory = nullptr;
  EXPECT_EQ(occlMemAlloc(comms[0], 1ull << 40, &memory), occlAgain);
  EXPECT_EQ(occlMemFree(comms[0], onDevices[0]->input(true) + 1), occlInvalidArgument);
}

} // namespace
} // namespace occl::gpu_test
