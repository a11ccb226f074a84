// occlEnqueueAndWait with OCCL_NO_STREAM, whose kernels stay for the next call; ranks being
// threads: on as many devices as there are, several on one if need be. Skipped where there is no
// device.
#include "plan/testing/example_plans.h"
#include "test/gpu/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kStay = 200; // microseconds

class Staying : public RanksOnDevices {
protected:
  Case oneShot(plan::Protocol protocol, uint64_t id = 1) const {
    Case what = one(plan::testing::oneShotAllReduce(numRanks()), id);
    what.plan.protocol = protocol;
    what.type = DataType::Int32;
    return what;
  }
  void registerToStay(const Case &what, uint32_t timeoutMs = 20000, uint32_t stay = kStay) {
    for (occlComm_t comm : comms)
      ASSERT_EQ(registerCase(comm, what, timeoutMs, stay), occlSuccess) << occlGetLastError();
  }
  occlResult_t call(uint32_t rank, uint64_t id) {
    RankOnDevice &on = *onDevices[rank];
    return occlEnqueueAndWait(comms[rank], id, on.input(false), on.output(false), OCCL_NO_STREAM);
  }
  void callOnAll(uint64_t id, uint32_t times) {
    inThreads([&](uint32_t rank) -> std::string {
      for (uint32_t i = 0; i < times; ++i)
        if (call(rank, id) != occlSuccess)
          return occlGetLastError();
      return "";
    });
  }
};

TEST_F(Staying, AllCollectivesTypesAndOperationsAreThere) { runAll(calledCasesFor(numRanks())); }

/// Other numbers in each round, in one of several buffers: what a kernel that stays has read before
/// is no longer there. Between the calls, pauses about as long as a kernel stays; and calls in a
/// stream, in a random mix, the same on all ranks, since they pair in their order.
TEST_F(Staying, EachCallTakesItsOwnInput) {
  constexpr uint32_t kRounds = 600, kSeed = 20261122;
  constexpr uint64_t kBytes = 4000, kBuffers = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  auto byteOf = [](uint32_t rank, uint32_t round) { return (rank + 3 * round) % 30; };
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::LL128}) {
    const Case what = oneShot(protocol, static_cast<uint64_t>(protocol));
    registerToStay(what);
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937 random(kSeed), pauses(kSeed + 1 + rank);
      RankOnDevice &on = *onDevices[rank];
      std::vector<uint32_t> seen(kBytes / 4);
      for (uint32_t round = 0; round < kRounds; ++round) {
        const uint64_t at = random() % kBuffers * kBytes;
        const bool inStream = random() % 8 == 0;
        if (pauses() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(pauses() % (2 * kStay)));
        cudaMemsetAsync(on.input(false) + at, static_cast<int>(byteOf(rank, round)), kBytes,
                        on.stream());
        if (std::string wrong = on.synchronize(); !wrong.empty())
          return wrong;
        if (occlEnqueueAndWait(comms[rank], what.id, on.input(false) + at, on.output(false) + at,
                               inStream ? on.stream() : OCCL_NO_STREAM) != occlSuccess)
          return occlGetLastError();
        cudaMemcpyAsync(seen.data(), on.output(false) + at, kBytes, cudaMemcpyDeviceToHost,
                        on.stream());
        if (std::string wrong = on.synchronize(); !wrong.empty())
          return wrong;
        uint32_t sum = 0;
        for (uint32_t r = 0; r < numRanks(); ++r)
          sum += byteOf(r, round) * 0x01010101;
        if (std::ranges::any_of(seen, [&](uint32_t value) { return value != sum; }))
          return "round " + std::to_string(round) + " is wrong on rank " + std::to_string(rank);
      }
      return "";
    });
  }
}

/// Kernels of several collectives stay at once, called by a thread each, as quickly as they can,
/// and beside them one is called by several threads.
TEST_F(Staying, ManyCallsInARowByManyThreads) {
  constexpr uint32_t kIds = 3, kTimes = 2000, kSharing = 3;
  for (uint64_t id = 0; id < kIds; ++id)
    registerToStay(oneShot(id % 2 == 0 ? plan::Protocol::LL : plan::Protocol::LL128, id));
  registerToStay(oneShot(plan::Protocol::LL, kIds));
  inThreads([&](uint32_t rank) -> std::string {
    std::vector<std::string> wrong(kIds + kSharing);
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kIds + kSharing; ++t)
      threads.emplace_back([&, t] {
        const uint64_t id = std::min(t, kIds);
        for (uint32_t i = 0; i < kTimes / (id == kIds ? 10 : 1) && wrong[t].empty(); ++i)
          if (call(rank, id) != occlSuccess)
            wrong[t] = occlGetLastError();
      });
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &text : wrong)
      if (!text.empty())
        return text;
    return "";
  });
}

/// The device becomes free although somebody calls all the time.
TEST_F(Staying, WhoSynchronisesTheDeviceIsNotHeldUpForEver) {
  registerToStay(oneShot(plan::Protocol::LL), 20000, 10000);
  std::atomic<bool> isOver{false};
  std::thread other([&] {
    std::this_thread::sleep_for(50ms);
    for (uint32_t i = 0; i < 5; ++i)
      for (uint32_t d = 0; d < std::min(devices, numRanks()); ++d) {
        cudaSetDevice(static_cast<int>(d));
        auto begin = Clock::now();
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_LT(Clock::now() - begin, 5s);
      }
    isOver = true;
  });
  // All ranks call equally often: rank 0 says when it is enough.
  std::atomic<uint32_t> last{~0u};
  inThreads([&](uint32_t rank) -> std::string {
    auto end = Clock::now() + 20s;
    for (uint32_t i = 0; i <= last; ++i) {
      if (rank == 0 && last == ~0u && (isOver || Clock::now() > end))
        last = i + 1000;
      if (call(rank, 1) != occlSuccess)
        return occlGetLastError();
    }
    return "";
  });
  other.join();
  EXPECT_TRUE(isOver);
}

TEST_F(Staying, DeregisteringWaitsUntilItHasLeft) {
  inThreads([&](uint32_t rank) -> std::string {
    for (uint64_t round = 0; round < 30; ++round) {
      Case what = oneShot(round % 2 == 0 ? plan::Protocol::LL : plan::Protocol::LL128, round % 3);
      if (registerCase(comms[rank], what, 20000, 5000) != occlSuccess)
        return occlGetLastError();
      for (uint32_t i = 0; i < 3; ++i)
        if (call(rank, what.id) != occlSuccess)
          return occlGetLastError();
      if (occlDeregister(comms[rank], what.id) != occlSuccess)
        return "round " + std::to_string(round) + ": " + occlGetLastError();
    }
    return "";
  });
}

TEST_F(Staying, WhatCannotBeDeregisteredStaysOnAfterwards) {
  registerToStay(oneShot(plan::Protocol::LL));
  callOnAll(1, 2);
  RankOnDevice &on = *onDevices[0];
  occlRequest_t request = 0;
  ASSERT_EQ(occlSubmit(comms[0], 1, on.input(false), on.output(false), nullptr, nullptr, &request),
            occlSuccess)
      << occlGetLastError();
  EXPECT_EQ(occlDeregister(comms[0], 1), occlInvalidArgument);
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &other = *onDevices[rank];
    occlResult_t result = rank == 0
                              ? occlWait(comms[0], request)
                              : occlRun(comms[rank], 1, other.input(false), other.output(false));
    return result == occlSuccess ? "" : occlGetLastError();
  });
  callOnAll(1, 2);
}

TEST_F(Staying, AMissingRankEndsACallAtItsTimeout) {
  registerToStay(oneShot(plan::Protocol::LL), 300, 10000);
  callOnAll(1, 3);
  auto begin = Clock::now();
  EXPECT_EQ(call(0, 1), occlTimeout);
  std::string why = occlGetLastError();
  EXPECT_NE(why.find("rank 0 gave up in"), std::string::npos) << why;
  EXPECT_LT(Clock::now() - begin, 1200ms);
  EXPECT_EQ(call(0, 1), occlTimeout);
}

TEST_F(Staying, AbortEndsACallAndWhatStays) {
  registerToStay(oneShot(plan::Protocol::LL), 20000, 10000);
  callOnAll(1, 3);
  std::thread other([&] {
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
  });
  EXPECT_EQ(call(0, 1), occlAborted);
  other.join();
}

TEST_F(Staying, WhatDoesNotStayIsRefused) {
  Case what = oneShot(plan::Protocol::LL);
  registerOnAll(what);
  EXPECT_EQ(call(0, 1), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("stayMicroseconds"), std::string::npos);
  RankOnDevice &on = *onDevices[0];
  EXPECT_EQ(occlEnqueue(comms[0], 1, on.input(false), on.output(false), OCCL_NO_STREAM),
            occlInvalidArgument);
  EXPECT_EQ(occlSubmitOnStream(comms[0], 1, on.input(false), on.output(false), OCCL_NO_STREAM,
                               nullptr, nullptr, nullptr),
            occlInvalidArgument);
  registerToStay(oneShot(plan::Protocol::LL, 2));
  EXPECT_EQ(occlEnqueueAndWait(comms[0], 2, nullptr, on.output(false), OCCL_NO_STREAM),
            occlInvalidArgument);
}

} // namespace
} // namespace occl::gpu_test
