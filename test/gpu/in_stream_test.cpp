// Collectives in CUDA streams, ranks being threads: on as many devices as there are, several on one
// if need be. Skipped where there is no device.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "test/gpu/device_job.h"

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

uint32_t numRanks() {
  const char *given = std::getenv("OCCL_TEST_RANKS");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 3;
}

class InStream : public testing::Test {
protected:
  /// Streams that share a connection to the device wait for each other. Before CUDA starts.
  static void SetUpTestSuite() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }
  void SetUp() override {
    int number = 0;
    if (cudaGetDeviceCount(&number) != cudaSuccess || number == 0)
      GTEST_SKIP() << "no CUDA device";
    devices = static_cast<uint32_t>(number);
    start(numRanks());
  }
  void TearDown() override {
    onDevices.clear();
    for (occlComm_t comm : comms)
      EXPECT_EQ(occlCommDestroy(comm), occlSuccess) << occlGetLastError();
  }
  void start(uint32_t n) {
    comms.resize(n);
    occlConfig_t config = smallConfig();
    occlResult_t made = occlCommInitAll(comms.data(), n, &config);
    if (made != occlSuccess)
      comms.clear();
    ASSERT_EQ(made, occlSuccess) << occlGetLastError();
    for (uint32_t r = 0; r < n; ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      onDevices.push_back(std::make_unique<RankOnDevice>(comms[r], r));
    }
  }
  /// body(rank) on a thread each; what they say is wrong.
  void inThreads(const std::function<std::string(uint32_t)> &body) {
    std::vector<std::thread> threads;
    std::vector<std::string> wrong(comms.size());
    for (uint32_t r = 0; r < comms.size(); ++r)
      threads.emplace_back([&, r] {
        cudaSetDevice(static_cast<int>(r % devices));
        wrong[r] = body(r);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &text : wrong)
      EXPECT_EQ(text, "");
  }
  Case one(plan::Plan plan, uint64_t id = 1) const {
    Case what;
    what.id = id;
    what.plan = std::move(plan);
    what.count = 1000;
    return what;
  }
  std::string enqueue(uint32_t rank, uint64_t id, bool isRegistered = false) {
    RankOnDevice &on = *onDevices[rank];
    return occlEnqueue(comms[rank], id, on.input(isRegistered), on.output(isRegistered),
                       on.stream()) == occlSuccess
               ? ""
               : occlGetLastError();
  }
  /// The communicator's failure, once it has one.
  std::string failureOf(uint32_t rank) {
    for (auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(1ms))
      if (*occlCommGetLastError(comms[rank]) != 0)
        break;
    return occlCommGetLastError(comms[rank]);
  }

  uint32_t devices = 0;
  std::vector<occlComm_t> comms;
  std::vector<std::unique_ptr<RankOnDevice>> onDevices;
};

TEST_F(InStream, AllCollectivesTypesAndOperationsAreRight) {
  auto n = static_cast<uint32_t>(comms.size());
  std::vector<Case> cases = casesFor(n);
  std::barrier met(n);
  std::atomic<bool> isWrong{false};
  inThreads([&](uint32_t rank) -> std::string {
    for (const Case &what : cases) {
      std::string wrong = onDevices[rank]->run(what, [&] { met.arrive_and_wait(); });
      isWrong = isWrong || !wrong.empty();
      met.arrive_and_wait();
      if (isWrong)
        return wrong;
    }
    return "";
  });
}

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
