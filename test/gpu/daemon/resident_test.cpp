// Collectives submitted to the resident daemons of CUDA devices, ranks being threads: on as many
// devices as there are, several on one if need be. Skipped where there is no device.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_insight.h"
#include "test/gpu/harness/chaos_job.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Resident : public RanksOnDevices {
public:
  occlComm_t commOf(uint32_t rank) const { return comms[rank]; }
  /// Once: now all ranks have their connectors.
  void runOnAll(uint64_t id) {
    inThreads([&](uint32_t rank) -> std::string {
      RankOnDevice &on = *onDevices[rank];
      return runKnown(comms[rank], id, on.input(false), on.output(false)) == occlSuccess
                 ? ""
                 : occlGetLastError();
    });
  }
  occlResult_t submit(uint32_t rank, uint64_t id, occlRequest_t &request,
                      occlCallback_t callback = nullptr, void *user = nullptr) {
    RankOnDevice &on = *onDevices[rank];
    return startKnown(comms[rank], id, on.input(false), on.output(false), callback, user, &request);
  }
  std::string reportOf(uint32_t rank) {
    std::string text(8192, '\0');
    size_t length = 0;
    if (occlCommReport(comms[rank], text.data(), text.size(), &length) != occlSuccess)
      return occlGetLastError();
    text.resize(std::min(length, text.size() - 1));
    return text;
  }
};

TEST_F(Resident, AllCollectivesTypesAndOperationsAreRight) {
  runAll(submittedCasesFor(numRanks()));
}

TEST_F(Resident, ConflictingOrdersWithSynchronisationComplete) {
  inThreads([&](uint32_t rank) { return runChaos(comms[rank], {numRanks(), rank, 200, 20}); });
  occlStats_t stats{};
  stats.size = sizeof stats;
  ASSERT_EQ(occlCommGetStats(comms[0], &stats), occlSuccess) << occlGetLastError();
  EXPECT_EQ(stats.submitted, 1600u);
  EXPECT_EQ(stats.completed, 1600u);
  EXPECT_GT(stats.contextLoads, 1600u);
  EXPECT_GT(stats.bytesSent, 0u);
  EXPECT_GT(stats.restarts, 0u);
}

/// What enters a daemon all ranks have started, so that orders in which they start do not matter;
/// the order in which executors take it might.
TEST_F(Resident, WithoutPreemptionConflictingOrdersEnd) {
  occlConfig_t config = smallConfig();
  config.preemption = 2;
  config.workers = 1;
  start(numRanks(), config);
  auto begin = Clock::now();
  std::vector<occlResult_t> results(comms.size());
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 1));
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 2));
  inThreads([&](uint32_t rank) -> std::string {
    occlRequest_t first = 0, second = 0;
    if (submit(rank, 1 + rank % 2, first) != occlSuccess ||
        submit(rank, 2 - rank % 2, second) != occlSuccess)
      return std::string("occlStart: ") + occlGetLastError();
    results[rank] = occlWait(comms[rank], first);
    if (results[rank] == occlSuccess)
      results[rank] = occlWait(comms[rank], second);
    return "";
  });
  EXPECT_LT(Clock::now() - begin, 15s) << "earlier than the deadline";
  for (uint32_t r = 0; r < comms.size(); ++r) {
    EXPECT_TRUE(results[r] == occlSuccess || results[r] == occlDeadlock)
        << occlCommGetLastError(comms[r]);
    if (results[r] == occlDeadlock) {
      EXPECT_NE(std::string(occlCommGetLastError(comms[r])).find("wait for each other in a cycle"),
                std::string::npos);
    }
  }
}

TEST_F(Resident, CallbacksAreCalledOnceEach) {
  Case blocking = one(plan::testing::ringAllReduce(numRanks()), 1);
  rememberOnAll(blocking);
  std::atomic<uint32_t> calls{0};
  auto count = [](occlRequest_t, occlResult_t result, void *user) {
    *static_cast<std::atomic<uint32_t> *>(user) += result == occlSuccess ? 1 : 1000;
  };
  constexpr uint32_t kTimes = 100;
  inThreads([&](uint32_t rank) -> std::string {
    for (uint32_t i = 0; i < kTimes; ++i) {
      occlRequest_t request = 0;
      if (submit(rank, 1, request, count, &calls) != occlSuccess)
        return std::string("occlStart: ") + occlGetLastError();
    }
    return "";
  });
  for (auto end = Clock::now() + 10s; calls != kTimes * numRanks() && Clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(calls, kTimes * numRanks());
}

TEST_F(Resident, ACallbackMayWaitAndThrow) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 1));
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 2));
  struct Outer {
    Resident *test;
    uint32_t rank;
    std::atomic<int> result{-1};
  };
  std::vector<Outer> outers(numRanks());
  inThreads([&](uint32_t rank) -> std::string {
    outers[rank].test = this;
    outers[rank].rank = rank;
    auto inner = [](occlRequest_t, occlResult_t, void *user) {
      auto &outer = *static_cast<Outer *>(user);
      occlComm_t comm = outer.test->commOf(outer.rank);
      if (occlCommDestroy(comm) != occlInvalidArgument)
        std::abort(); // the communicator is gone
      occlRequest_t request = 0;
      occlResult_t submitted = outer.test->submit(outer.rank, 2, request);
      outer.result = submitted != occlSuccess ? submitted : occlWait(comm, request);
    };
    occlRequest_t request = 0;
    if (submit(rank, 1, request, inner, &outers[rank]) != occlSuccess)
      return occlGetLastError();
    return "";
  });
  for (auto &outer : outers) {
    for (auto end = Clock::now() + 10s; outer.result < 0 && Clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(outer.result, occlSuccess);
  }
  inThreads([&](uint32_t rank) -> std::string {
    occlCallback_t thrower = [](occlRequest_t, occlResult_t, void *) {
      throw std::runtime_error("not today");
    };
    occlRequest_t request = 0;
    return submit(rank, 1, request, rank == 0 ? thrower : nullptr) == occlSuccess
               ? ""
               : occlGetLastError();
  });
  for (auto end = Clock::now() + 10s; *occlCommGetLastError(comms[0]) == 0 && Clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  EXPECT_NE(std::string(occlCommGetLastError(comms[0])).find("not today"), std::string::npos)
      << occlCommGetLastError(comms[0]);
}

TEST_F(Resident, ADeadlineNamesWhatIsWaitedFor) {
  rememberOnAll(one(plan::testing::oneShotAllReduce(numRanks())), 300);
  runOnAll(1);
  occlRequest_t request = 0;
  auto begin = Clock::now();
  ASSERT_EQ(submit(0, 1, request), occlSuccess) << occlGetLastError();
  EXPECT_EQ(occlWait(comms[0], request), occlTimeout) << occlGetLastError();
  EXPECT_LT(Clock::now() - begin, 3s);
  for (occlComm_t comm : comms) {
    std::string text = occlCommGetLastError(comm);
    EXPECT_NE(text.find("collective 'one_shot_allreduce' (id 1) did not end on rank 0 before its "
                        "deadline: rank 0 waits for rank 1 (its submission) in collective "
                        "'one_shot_allreduce' (id 1), invocation 1,"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(submit(1, 1, request), occlTimeout);
}

TEST_F(Resident, ARankThatHasNeverSubmittedIsNamed) {
  rememberOnAll(one(plan::testing::oneShotAllReduce(numRanks())), 300);
  occlRequest_t request = 0;
  ASSERT_EQ(submit(0, 1, request), occlSuccess) << occlGetLastError();
  EXPECT_EQ(occlWait(comms[0], request), occlTimeout) << occlGetLastError();
  std::string text = occlCommGetLastError(comms[0]);
  EXPECT_NE(text.find("rank 0 waits for rank 1 (its submission) in collective "
                      "'one_shot_allreduce' (id 1), invocation 0, thread block 0, instruction 0"),
            std::string::npos)
      << text;
}

TEST_F(Resident, AbortEndsWhatWaitsOnAllRanks) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks())));
  occlRequest_t request = 0;
  ASSERT_EQ(submit(0, 1, request), occlSuccess) << occlGetLastError();
  std::thread aborting([&] {
    std::this_thread::sleep_for(50ms);
    occlCommAbort(comms[1]);
  });
  auto begin = Clock::now();
  EXPECT_EQ(occlWait(comms[0], request), occlAborted);
  EXPECT_LT(Clock::now() - begin, 3s);
  aborting.join();
  EXPECT_EQ(submit(0, 1, request), occlAborted);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "nothing is left on the device";
}

TEST_F(Resident, ARankThatLeavesIsNoticed) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks())));
  occlRequest_t request = 0;
  ASSERT_EQ(submit(0, 1, request), occlSuccess) << occlGetLastError();
  for (uint32_t r = 1; r < comms.size(); ++r) {
    occlCommDestroy(comms[r]);
    comms[r] = nullptr;
  }
  EXPECT_EQ(occlWait(comms[0], request), occlPeerFailed) << occlGetLastError();
  std::string text = occlCommGetLastError(comms[0]);
  EXPECT_NE(text.find("has destroyed its communicator; rank 0 waits for rank"), std::string::npos)
      << text;
}

/// One call was started, one is in a stream, and no other rank makes either: 30 seconds for both.
TEST_F(Resident, TheEndWaitsForAllThatNeverEndsAtATime) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  const Case what = one(plan::testing::ringAllReduce(n()));
  occlConfig_t config = smallConfig();
  config.timeoutMs = 0;
  std::vector<occlComm_t> parts(n());
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &on = *onDevices[rank];
    if (occlCommSplit(comms[rank], 0, 0, &config, &parts[rank]) != occlSuccess)
      return occlGetLastError();
    remember(parts[rank], what, 0);
    if (runKnown(parts[rank], what.id, on.input(false), on.output(false)) != occlSuccess)
      return occlGetLastError();
    std::string wrong =
        callInStream(parts[rank], what, on.input(false), on.output(false), on.stream());
    return wrong.empty() ? on.synchronize() : wrong;
  });
  cudaSetDevice(0);
  RankOnDevice &on = *onDevices[0];
  occlRequest_t request = 0;
  EXPECT_EQ(
      startKnown(parts[0], what.id, on.input(false), on.output(false), nullptr, nullptr, &request),
      occlSuccess);
  EXPECT_EQ(callInStream(parts[0], what, on.input(true), on.output(true), on.stream()), "");
  const auto begin = Clock::now();
  EXPECT_EQ(occlCommDestroy(parts[0]), occlSuccess);
  EXPECT_LT(Clock::now() - begin, 45s);
  EXPECT_EQ(on.synchronize(), "");
  for (uint32_t r = 1; r < n(); ++r)
    EXPECT_EQ(occlCommDestroy(parts[r]), occlSuccess);
}

TEST_F(Resident, TheReportSaysWhoWaitsAndWhoIsMissing) {
  rememberOnAll(one(plan::testing::oneShotAllReduce(numRanks()), 7));
  runOnAll(7);
  std::vector<occlRequest_t> requests(comms.size());
  for (uint32_t r = 0; r + 1 < comms.size(); ++r)
    ASSERT_EQ(submit(r, 7, requests[r]), occlSuccess) << occlGetLastError();
  std::this_thread::sleep_for(50ms);
  std::string text = reportOf(0), last = std::to_string(comms.size() - 1);
  EXPECT_NE(text.find("rank 0 waits for rank " + last +
                      " (its submission) in collective 'one_shot_allreduce' (id 7), invocation 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("invocation 1: not submitted by rank " + last), std::string::npos) << text;
  EXPECT_NE(text.find("rank " + last + " waits for nobody"), std::string::npos) << text;
  auto end = static_cast<uint32_t>(comms.size() - 1);
  ASSERT_EQ(submit(end, 7, requests[end]), occlSuccess);
  for (uint32_t r = 0; r < comms.size(); ++r)
    EXPECT_EQ(occlWait(comms[r], requests[r]), occlSuccess) << occlGetLastError();
  EXPECT_NE(reportOf(0).find("rank 0 waits for nobody"), std::string::npos) << reportOf(0);
}

TEST_F(Resident, CountsByCollectiveAndThreadBlock) {
  rememberOnAll(one(plan::testing::oneShotAllReduce(numRanks())));
  constexpr uint32_t kTimes = 10;
  inThreads([&](uint32_t rank) -> std::string {
    for (uint32_t i = 0; i < kTimes; ++i)
      if (runKnown(comms[rank], 1, onDevices[rank]->input(false), onDevices[rank]->output(false)) !=
          occlSuccess)
        return occlGetLastError();
    return "";
  });
  occlCollectiveStats_t stats{};
  stats.size = sizeof stats;
  ASSERT_EQ(occlCollectiveGetStats(comms[0], 1, &stats), occlSuccess) << occlGetLastError();
  EXPECT_EQ(stats.submitted, kTimes);
  EXPECT_EQ(stats.completed, kTimes);
  EXPECT_GT(stats.finishNs, 0u);
  EXPECT_GE(stats.finishNs, stats.longestFinishNs);
  occlBlockStats_t block{};
  block.size = sizeof block;
  ASSERT_EQ(occlCollectiveGetBlockStats(comms[0], 1, 0, &block), occlSuccess);
  EXPECT_GE(block.contextLoads, kTimes);
  EXPECT_GE(block.slices, kTimes);
  EXPECT_GT(block.runningNs, 0u);
  EXPECT_EQ(block.bytesSent, kTimes * 4000u * (numRanks() - 1));
  EXPECT_EQ(block.bytesReceived, kTimes * 4000u * (numRanks() - 1));
  EXPECT_EQ(occlCollectiveGetBlockStats(comms[0], 1, 1, &block), occlInvalidArgument);
  uint64_t id = 0;
  size_t count = 0;
  ASSERT_EQ(occlCommGetCollectives(comms[0], &id, 1, &count), occlSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(id, 1u);
}

/// In streams and by the daemon at the same time, each with connectors of its own.
TEST_F(Resident, SubmissionsAndCallsRunBesideEachOther) {
  const Case what = one(plan::testing::twoShotAllReduce(numRanks()));
  rememberOnAll(what);
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &on = *onDevices[rank];
    for (uint32_t i = 0; i < 20; ++i) {
      occlRequest_t request = 0;
      if (submit(rank, 1, request) != occlSuccess ||
          callCase(comms[rank], what, on.input(false), on.output(false) + (512 << 10),
                   on.stream()) != occlSuccess ||
          occlWait(comms[rank], request) != occlSuccess)
        return occlGetLastError();
      if (std::string wrong = on.synchronize(); !wrong.empty())
        return wrong;
    }
    return "";
  });
}

TEST_F(Resident, CollectivesComeAndGo) {
  std::barrier met(numRanks());
  inThreads([&](uint32_t rank) -> std::string {
    std::string wrong;
    for (uint64_t round = 0; round < 30; ++round) {
      Case what = one(plan::testing::ringAllReduce(numRanks()), 1 + round % 2);
      what.type = round % 3 == 0 ? DataType::Int32 : DataType::Float32;
      what.way = Way::Submitted;
      what.count = 100 + 50 * round;
      if (wrong.empty())
        wrong = onDevices[rank]->run(what, [] {});
      met.arrive_and_wait();
    }
    return wrong;
  });
}

/// Ranks are divided at random, several times over: a rank is in several communicators, which share
/// its daemon, and submits to them in an order of its own.
TEST_F(Resident, RandomGroupsInConflictingOrders) {
  constexpr uint32_t kGroups = 3, kTimes = 5, kCount = 1000;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::vector<uint32_t>> colours(kGroups, std::vector<uint32_t>(numRanks()));
  for (auto &colour : colours)
    for (uint32_t &of : colour)
      of = random() % 2;
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &on = *onDevices[rank];
    std::mt19937 own(seed + rank);
    std::vector<float> input(kCount, static_cast<float>(rank + 1));
    if (cudaMemcpy(on.input(false), input.data(), kCount * sizeof(float), cudaMemcpyHostToDevice) !=
        cudaSuccess)
      return "cudaMemcpy";
    std::vector<occlComm_t> groups(kGroups);
    for (uint32_t g = 0; g < kGroups; ++g) {
      uint32_t size = 0;
      if (occlCommSplit(comms[rank], static_cast<int32_t>(colours[g][rank]), 0, nullptr,
                        &groups[g]) != occlSuccess ||
          occlCommSize(groups[g], &size) != occlSuccess)
        return occlGetLastError();
      remember(groups[g], one(plan::testing::ringAllReduce(size)));
    }
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < kGroups * kTimes; ++i)
      order.push_back(i % kGroups);
    std::ranges::shuffle(order, own);
    std::vector<std::pair<uint32_t, occlRequest_t>> requests;
    for (uint32_t g : order) {
      occlRequest_t request = 0;
      if (startKnown(groups[g], 1, on.input(false), on.output(false) + g * 8192, nullptr, nullptr,
                     &request) != occlSuccess)
        return std::string("occlStart: ") + occlGetLastError();
      requests.emplace_back(g, request);
    }
    for (auto [g, request] : requests)
      if (occlWait(groups[g], request) != occlSuccess)
        return std::string("occlWait: ") + occlGetLastError();
    for (uint32_t g = 0; g < kGroups; ++g) {
      float expected = 0;
      for (uint32_t r = 0; r < numRanks(); ++r)
        expected += colours[g][r] == colours[g][rank] ? static_cast<float>(r + 1) : 0;
      std::vector<float> output(kCount);
      if (cudaMemcpy(output.data(), on.output(false) + g * 8192, kCount * sizeof(float),
                     cudaMemcpyDeviceToHost) != cudaSuccess)
        return "cudaMemcpy";
      if (std::ranges::count(output, expected) != kCount)
        return "group " + std::to_string(g) + " has the wrong sum";
      if (occlCommDestroy(groups[g]) != occlSuccess)
        return occlGetLastError();
    }
    return "";
  });
}

TEST_F(Resident, CallsThatCannotBeSubmittedAreRefused) {
  occlRequest_t request = 0;
  EXPECT_EQ(occlWait(comms[0], 12345), occlInvalidArgument);
  EXPECT_EQ(occlTest(comms[0], 0), occlInvalidArgument);
  rememberOnAll(one(plan::testing::directAllReduce(numRanks())));
  EXPECT_EQ(submit(0, 1, request), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError())
                .find(areBuffersShared() ? "occlMemAlloc" : "data goes through host memory"),
            std::string::npos)
      << occlGetLastError();
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 2));
  EXPECT_EQ(startKnown(comms[0], 2, nullptr, nullptr, nullptr, nullptr, &request),
            occlInvalidArgument);
  ASSERT_EQ(submit(0, 2, request), occlSuccess);
  EXPECT_EQ(occlTest(comms[0], request), occlInProgress);
  std::vector<occlRequest_t> requests(comms.size());
  for (uint32_t r = 1; r < comms.size(); ++r)
    ASSERT_EQ(submit(r, 2, requests[r]), occlSuccess);
  EXPECT_EQ(occlWait(comms[0], request), occlSuccess);
  for (uint32_t r = 1; r < comms.size(); ++r)
    EXPECT_EQ(occlWait(comms[r], requests[r]), occlSuccess);
}

} // namespace
} // namespace occl::gpu_test
