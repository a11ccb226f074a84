// occlEnqueueAndWait, ranks being threads: on as many devices as there are, several on one if need
// be. Skipped where there is no device.
#include "plan/testing/direct_plans.h"
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

constexpr uint64_t kApart = 8192; // of outputs of 1000 elements

plan::Plan oneShot(uint32_t n, plan::Protocol protocol) {
  plan::Plan plan = plan::testing::oneShotAllReduce(n);
  plan.protocol = protocol;
  return plan;
}

class Awaited : public RanksOnDevices {
protected:
  occlResult_t await(uint32_t rank, uint64_t id, cudaStream_t stream = nullptr) {
    RankOnDevice &on = *onDevices[rank];
    return occlEnqueueAndWait(comms[rank], id, on.input(false), on.output(false) + id * kApart,
                              stream ? stream : on.stream());
  }
  /// await() on all ranks, each on a thread.
  void awaitOnAll(uint64_t id) {
    inThreads([&](uint32_t rank) -> std::string {
      return await(rank, id) == occlSuccess ? "" : occlGetLastError();
    });
  }
};

/// Streams of one rank.
class Streams {
public:
  explicit Streams(size_t number) : all(number) {
    for (cudaStream_t &stream : all)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  ~Streams() {
    for (cudaStream_t stream : all)
      cudaStreamDestroy(stream);
  }
  Streams(const Streams &) = delete;
  Streams &operator=(const Streams &) = delete;
  cudaStream_t operator[](size_t i) const { return all[i]; }

private:
  std::vector<cudaStream_t> all;
};

TEST_F(Awaited, AllCollectivesTypesAndOperationsAreThere) { runAll(awaitedCasesFor(numRanks())); }

/// Calls of both kinds in a random mix, another one on each rank, of other numbers in each round;
/// what a rank has waited for it can read.
TEST_F(Awaited, PairsWithWhatIsEnqueued) {
  constexpr uint32_t kRounds = 200, kSeed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  auto byteOf = [](uint32_t rank, uint32_t round) { return (rank + 3 * round) % 30; };
  for (plan::Protocol protocol :
       {plan::Protocol::Simple, plan::Protocol::LL, plan::Protocol::LL128}) {
    Case what = one(oneShot(numRanks(), protocol), 1 + static_cast<uint64_t>(protocol));
    what.type = DataType::Int32;
    registerOnAll(what);
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937 random(kSeed + rank);
      RankOnDevice &on = *onDevices[rank];
      std::vector<uint32_t> seen(what.count);
      for (uint32_t round = 0; round < kRounds; ++round) {
        cudaMemsetAsync(on.input(false), static_cast<int>(byteOf(rank, round)), what.count * 4,
                        on.stream());
        bool waits = random() % 2 == 0;
        auto call = waits ? occlEnqueueAndWait : occlEnqueue;
        if (call(comms[rank], what.id, on.input(false), on.output(false), on.stream()) !=
            occlSuccess)
          return occlGetLastError();
        if (!waits)
          continue;
        cudaMemcpy(seen.data(), on.output(false), what.count * 4, cudaMemcpyDeviceToHost);
        uint32_t sum = 0;
        for (uint32_t r = 0; r < numRanks(); ++r)
          sum += byteOf(r, round) * 0x01010101;
        if (std::ranges::any_of(seen, [&](uint32_t value) { return value != sum; }))
          return "round " + std::to_string(round) + " is wrong on rank " + std::to_string(rank);
      }
      return on.synchronize();
    });
  }
}

/// Threads of a rank, a collective and a stream each, at once; the ranks begin them in different
/// orders, and pause at random. Beside them others are enqueued, and submitted to the daemon.
TEST_F(Awaited, ManyThreadsAtOnceBesideTheDaemon) {
  constexpr uint32_t kThreads = 4, kRounds = 50, kSeed = 7;
  constexpr uint64_t kEnqueued = 5, kSubmitted = 6;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (uint64_t id = 0; id < kThreads; ++id)
    registerOnAll(one(id % 2 == 0 ? oneShot(numRanks(), plan::Protocol::LL)
                                  : plan::testing::twoShotAllReduce(numRanks()),
                      id));
  registerOnAll(one(plan::testing::ringAllReduce(numRanks()), kEnqueued));
  registerOnAll(one(plan::testing::twoShotAllReduce(numRanks()), kSubmitted));
  inThreads([&](uint32_t rank) -> std::string {
    Streams streams(kThreads);
    std::vector<std::string> wrong(kThreads + 1);
    auto awaitAll = [&](uint64_t id) {
      cudaSetDevice(static_cast<int>(rank % devices));
      std::mt19937 random(static_cast<uint32_t>(kSeed + rank * kThreads + id));
      for (uint32_t round = 0; round < kRounds && wrong[id].empty(); ++round) {
        if (random() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        if (await(rank, id, streams[id]) != occlSuccess)
          wrong[id] = occlGetLastError();
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t)
      threads.emplace_back(awaitAll, (t + rank) % kThreads);
    RankOnDevice &on = *onDevices[rank];
    for (uint32_t round = 0; round < kRounds && wrong[kThreads].empty(); ++round)
      if (!enqueue(rank, kEnqueued).empty() ||
          occlRun(comms[rank], kSubmitted, on.input(false),
                  on.output(false) + kSubmitted * kApart) != occlSuccess)
        wrong[kThreads] = occlGetLastError();
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &text : wrong)
      if (!text.empty())
        return text;
    return on.synchronize();
  });
}

TEST_F(Awaited, DeregisteringAtOnceIsAllowed) {
  inThreads([&](uint32_t rank) -> std::string {
    for (uint64_t round = 0; round < 40; ++round) {
      Case what = one(round % 2 == 0 ? oneShot(numRanks(), plan::Protocol::LL)
                                     : plan::testing::ringAllReduce(numRanks()),
                      round % 4);
      if (registerCase(comms[rank], what) != occlSuccess || await(rank, what.id) != occlSuccess ||
          occlDeregister(comms[rank], what.id) != occlSuccess)
        return "round " + std::to_string(round) + ": " + occlGetLastError();
    }
    return "";
  });
}

TEST_F(Awaited, WaitsForALatePeer) {
  registerOnAll(one(oneShot(numRanks(), plan::Protocol::LL)));
  inThreads([&](uint32_t rank) -> std::string {
    if (rank != 0)
      std::this_thread::sleep_for(200ms);
    auto begin = Clock::now();
    if (await(rank, 1) != occlSuccess)
      return occlGetLastError();
    return rank == 0 && Clock::now() - begin < 150ms ? "it did not wait" : "";
  });
}

class AwaitedInVain : public Awaited, public testing::WithParamInterface<plan::Protocol> {};

TEST_P(AwaitedInVain, AMissingRankEndsItAtItsTimeout) {
  registerOnAll(one(oneShot(numRanks(), GetParam())), 300);
  auto begin = Clock::now();
  EXPECT_EQ(await(0, 1), occlTimeout);
  std::string why = occlGetLastError();
  EXPECT_NE(why.find("rank 0 gave up in"), std::string::npos) << why;
  EXPECT_NE(why.find("waits for"), std::string::npos) << why;
  EXPECT_GT(Clock::now() - begin, 250ms);
  EXPECT_LT(Clock::now() - begin, 1200ms) << "earlier than the host's own deadline";
  EXPECT_EQ(await(1, 1), occlTimeout);
}

TEST_P(AwaitedInVain, AbortFromAnotherThreadEndsIt) {
  registerOnAll(one(oneShot(numRanks(), GetParam())));
  std::thread other([&] {
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
  });
  EXPECT_EQ(await(0, 1), occlAborted);
  other.join();
}

/// The others leave at once: who shares rank 0's device can only with its kernel.
TEST_P(AwaitedInVain, RanksThatLeaveAreNoticed) {
  registerOnAll(one(oneShot(numRanks(), GetParam())));
  std::vector<std::thread> others;
  for (uint32_t r = 1; r < comms.size(); ++r)
    others.emplace_back([&, r] {
      std::this_thread::sleep_for(100ms);
      occlCommDestroy(comms[r]);
      comms[r] = nullptr;
    });
  EXPECT_EQ(await(0, 1), occlPeerFailed);
  EXPECT_NE(std::string(occlGetLastError()).find("has destroyed its communicator"),
            std::string::npos)
      << occlGetLastError();
  for (std::thread &other : others)
    other.join();
}

INSTANTIATE_TEST_SUITE_P(Protocols, AwaitedInVain,
                         testing::Values(plan::Protocol::Simple, plan::Protocol::LL),
                         [](const auto &info) {
                           return std::string(info.param == plan::Protocol::LL ? "LL" : "Simple");
                         });

/// Also with buffers that are copied, whose copy goes on after the kernel has given up.
TEST_F(Awaited, CopiedBuffersHideNoTimeout) {
  registerOnAll(one(plan::testing::directAllReduce(numRanks())), 300);
  EXPECT_EQ(await(0, 1), occlTimeout);
  EXPECT_NE(std::string(occlGetLastError()).find("rank 0 gave up in"), std::string::npos)
      << occlGetLastError();
}

TEST_F(Awaited, WhatIsBeforeItInTheStreamCounts) {
  registerOnAll(one(oneShot(numRanks(), plan::Protocol::LL)), 300);
  cudaSetDevice(0);
  ASSERT_EQ(cudaLaunchHostFunc(
                onDevices[0]->stream(), [](void *) { std::this_thread::sleep_for(2s); }, nullptr),
            cudaSuccess);
  auto begin = Clock::now();
  EXPECT_EQ(await(0, 1), occlTimeout);
  EXPECT_LT(Clock::now() - begin, 1900ms);
  EXPECT_NE(std::string(occlGetLastError()).find("has not ended in its stream on rank 0"),
            std::string::npos)
      << occlGetLastError();
  EXPECT_EQ(onDevices[0]->synchronize(), "");
}

/// All in one stream, where one after the other waits for the peers.
TEST_F(Awaited, MoreThanSixtyFourThreadsAreRefused) {
  constexpr uint32_t kMost = 64;
  registerOnAll(one(oneShot(numRanks(), plan::Protocol::LL)));
  std::atomic<uint32_t> ended{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kMost; ++t)
    threads.emplace_back([&] { ended += await(0, 1) == occlSuccess ? 1 : 1000; });
  // Whether all have begun only the last one's refusal shows; before, it would wait itself.
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(await(0, 1), occlAgain);
  EXPECT_NE(std::string(occlGetLastError()).find("64 threads wait"), std::string::npos);
  EXPECT_EQ(ended, 0u);
  for (uint32_t r = 1; r < comms.size(); ++r)
    for (uint32_t t = 0; t < kMost; ++t)
      EXPECT_EQ(enqueue(r, 1), "");
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(ended, kMost);
  awaitOnAll(1);
}

TEST_F(Awaited, ACapturedStreamIsRefused) {
  registerOnAll(one(plan::testing::ringAllReduce(numRanks())));
  cudaSetDevice(0);
  cudaStream_t stream = onDevices[0]->stream();
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(await(0, 1), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("the stream is captured"), std::string::npos);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "the capture is not spoilt";
  cudaGraphDestroy(graph);
  awaitOnAll(1);
}

TEST_F(Awaited, WrongArgumentsAreRefused) {
  registerOnAll(one(plan::testing::ringAllReduce(numRanks())));
  RankOnDevice &on = *onDevices[0];
  EXPECT_EQ(await(0, 99), occlInvalidArgument);
  EXPECT_EQ(occlEnqueueAndWait(comms[0], 1, nullptr, on.output(false), on.stream()),
            occlInvalidArgument);
  EXPECT_EQ(occlEnqueueAndWait(comms[0], 1, on.input(false), nullptr, on.stream()),
            occlInvalidArgument);
  awaitOnAll(1);
}

} // namespace
} // namespace occl::gpu_test
