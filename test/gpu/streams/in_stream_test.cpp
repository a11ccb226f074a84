// Collectives in CUDA streams, ranks being threads: on as many devices as there are, several on one
// if need be. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>
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

/// One shot: a rank has data of the others to wait for. Straight blocks begin without the others,
/// those that are interpreted meet them first.
plan::Plan oneShot(plan::Protocol protocol) {
  plan::Plan plan = plan::testing::oneShotAllReduce(numRanks());
  plan.protocol = protocol;
  return plan;
}

TEST_F(InStream, CommunicatorsRunInDifferentOrdersInStreamsOfTheirOwn) {
  constexpr uint32_t kComms = 4;
  const Case what = one(plan::testing::twoShotAllReduce(numRanks()));
  startMany(kComms, numRanks(), smallConfig(), {what});
  auto n = static_cast<uint32_t>(comms.size());
  std::vector<cudaStream_t> streams(n * kComms);
  for (uint32_t i = 0; i < streams.size(); ++i) {
    cudaSetDevice(static_cast<int>(i / kComms % devices));
    cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
  }
  inThreads([&](uint32_t rank) -> std::string {
    for (uint32_t round = 0; round < 20; ++round)
      for (uint32_t i = 0; i < kComms; ++i) {
        uint32_t c = (i + rank + round) % kComms;
        char *output = onDevices[rank]->output(false) + c * 8192;
        if (std::string wrong = callInStream(commOf(rank, c), what, onDevices[rank]->input(false),
                                             output, streams[rank * kComms + c]);
            !wrong.empty())
          return wrong;
      }
    std::string wrong;
    for (uint32_t c = 0; c < kComms; ++c) {
      while (cudaStreamQuery(streams[rank * kComms + c]) == cudaErrorNotReady)
        std::this_thread::yield();
      wrong += occlCommGetLastError(commOf(rank, c));
    }
    return wrong;
  });
  for (cudaStream_t stream : streams)
    cudaStreamDestroy(stream);
}

/// Its deadline is the call's own, though its like had another one.
TEST_F(InStream, AMissingRankIsNamedInBoundedTime) {
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::Simple}) {
    occlConfig_t config = smallConfig();
    config.timeoutMs = 3'600'000;
    start(numRanks(), config);
    const Case what = one(oneShot(protocol));
    callOnAll(what);
    EXPECT_EQ(call(0, what, 300), "");
    EXPECT_EQ(onDevices[0]->synchronize(), "");
    const std::string waits = protocol == plan::Protocol::LL
                                  ? "thread block 0, instruction 1 (recvReduceCopy) at "
                                  : " to begin it, or to finish an earlier one";
    for (uint32_t r = 0; r < comms.size(); ++r) {
      const std::string failure = failureOf(r);
      EXPECT_NE(failure.find("rank 0 gave up in call 1, 'one_shot_allreduce' of 1000 elements of "
                             "type float32, sum: "),
                std::string::npos)
          << failure;
      EXPECT_NE(failure.find("waits for "), std::string::npos) << failure;
      EXPECT_NE(failure.find(waits), std::string::npos) << failure;
      EXPECT_NE(call(r, what), "");
    }
  }
}

TEST_F(InStream, ARankThatHasNeverCalledIsNamed) {
  EXPECT_EQ(call(0, one(oneShot(plan::Protocol::Simple)), 300), "");
  EXPECT_EQ(onDevices[0]->synchronize(), "");
  EXPECT_NE(failureOf(1).find("to make its first call"), std::string::npos) << failureOf(1);
}

TEST_F(InStream, AbortEndsWhatWaits) {
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::Simple}) {
    start(numRanks());
    EXPECT_EQ(call(0, one(oneShot(protocol))), "");
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(cudaStreamQuery(onDevices[0]->stream()), cudaErrorNotReady);
    EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
    EXPECT_EQ(onDevices[0]->synchronize(), "");
    EXPECT_NE(failureOf(0).find("occlCommAbort was called on rank 1"), std::string::npos);
  }
}

/// Not one after the other with a look at the host each, which takes 1 to 2 ms.
TEST_F(InStream, AbortEndsAllThatIsQueuedAtOnce) {
  constexpr uint32_t kCalls = 900;
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::Simple}) {
    start(numRanks());
    const Case what = one(oneShot(protocol));
    for (uint32_t i = 0; i < kCalls; ++i)
      ASSERT_EQ(call(0, what), "") << i;
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(cudaStreamQuery(onDevices[0]->stream()), cudaErrorNotReady);
    EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(onDevices[0]->synchronize(), "");
    // Where data goes through host memory every look is at the host.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, areBuffersShared() ? 600ms : 3000ms);
    EXPECT_NE(failureOf(0).find("occlCommAbort was called on rank 1"), std::string::npos);
  }
}

TEST_F(InStream, ARankThatLeavesIsNoticed) {
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::Simple}) {
    start(numRanks());
    EXPECT_EQ(call(0, one(oneShot(protocol))), "");
    for (uint32_t r = 1; r < comms.size(); ++r) {
      occlCommDestroy(comms[r]);
      comms[r] = nullptr;
    }
    EXPECT_EQ(onDevices[0]->synchronize(), "");
    EXPECT_NE(failureOf(0).find("has destroyed its communicator"), std::string::npos)
        << failureOf(0);
  }
}

/// Threads of a rank, a communicator and a stream each, at once; the ranks begin them in different
/// orders, and pause at random. Each waits for its call before it makes the next one.
TEST_F(InStream, ManyThreadsAtOnce) {
  constexpr uint32_t kThreads = 4, kRounds = 50, kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const Case straight = one(oneShot(plan::Protocol::LL)),
             interpreted = one(plan::testing::twoShotAllReduce(numRanks()));
  startMany(kThreads, numRanks(), smallConfig(), {straight, interpreted});
  inThreads([&](uint32_t rank) -> std::string {
    std::vector<cudaStream_t> streams(kThreads);
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::vector<std::string> wrong(kThreads);
    auto callAll = [&](uint32_t c) {
      cudaSetDevice(static_cast<int>(rank % devices));
      std::mt19937 random(kSeed + rank * kThreads + c);
      const RankOnDevice &on = *onDevices[rank];
      for (uint32_t round = 0; round < kRounds && wrong[c].empty(); ++round) {
        if (random() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        wrong[c] = callInStream(commOf(rank, c), c % 2 == 0 ? straight : interpreted,
                                on.input(false), on.output(false) + c * 8192, streams[c]);
        while (cudaStreamQuery(streams[c]) == cudaErrorNotReady)
          std::this_thread::yield();
        wrong[c] += occlCommGetLastError(commOf(rank, c));
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t)
      threads.emplace_back(callAll, (t + rank) % kThreads);
    for (std::thread &thread : threads)
      thread.join();
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    return wrong[0] + wrong[1] + wrong[2] + wrong[3];
  });
}

TEST_F(InStream, CallsThatDoNotFitAreRefused) {
  const Case what = one(plan::testing::ringAllReduce(numRanks()));
  const RankOnDevice &on = *onDevices[0];
  const auto refused = [&](const Case &given) {
    return callCase(comms[0], given, on.input(true), on.output(true), on.stream());
  };
  EXPECT_EQ(refused(one(plan::testing::ringAllReduce(numRanks() + 1))), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("ranks, not"), std::string::npos);
  void *memory = nullptr;
  EXPECT_EQ(occlMemAlloc(comms[0], 1ull << 40, &memory), occlAgain);
  EXPECT_EQ(occlMemFree(comms[0], onDevices[0]->input(true) + 1), occlInvalidArgument);
  // Tables take more of the device there than what is left to users.
  if (std::getenv("OCCL_TEST_AS_NEEDED"))
    return;
  takeAllMemory(comms[0]);
  EXPECT_EQ(refused(what), occlAgain) << "device memory has no end";
  EXPECT_NE(std::string(occlGetLastError()).find("set arenaBytes higher"), std::string::npos)
      << occlGetLastError();
}

} // namespace
} // namespace occl::gpu_test
