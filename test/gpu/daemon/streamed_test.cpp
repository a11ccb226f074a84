// Collectives submitted to the resident daemons in the order of streams: what is before them in the
// stream, what is behind them, conflicting orders, and bad ends. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// occlConfig_t::strict.
class Streamed : public RanksOnDevices, public testing::WithParamInterface<uint32_t> {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    occlConfig_t config = smallConfig();
    config.strict = GetParam();
    if (!IsSkipped())
      start(numRanks(), config);
  }
  std::string submit(uint32_t rank, uint64_t id, const void *from, void *to, cudaStream_t stream,
                     occlRequest_t *request = nullptr) {
    return startInStream(comms[rank], id, from, to, stream, nullptr, nullptr, request) ==
                   occlSuccess
               ? ""
               : std::string("in the stream: ") + occlGetLastError();
  }
  std::string submit(uint32_t rank, uint64_t id, occlRequest_t *request = nullptr) {
    RankOnDevice &on = *onDevices[rank];
    return submit(rank, id, on.input(false), on.output(false), on.stream(), request);
  }
  /// Whether the rank's stream is empty within 8 seconds.
  bool goesOn(uint32_t rank) {
    for (auto end = Clock::now() + 8s; Clock::now() < end; std::this_thread::sleep_for(1ms))
      if (cudaStreamQuery(onDevices[rank]->stream()) != cudaErrorNotReady)
        return true;
    return false;
  }
};

TEST_P(Streamed, AllCollectivesTypesAndOperationsAreRight) {
  std::vector<Case> cases = submittedCasesFor(numRanks());
  for (Case &what : cases)
    what.way = Way::Streamed;
  runAll(cases);
}

/// What all bytes of rank r's input are in a round; the sum over the ranks has no carry.
uint8_t byteOf(uint32_t rank, uint32_t round) {
  return static_cast<uint8_t>(1 + (rank + 3 * round) % 20);
}

/// Each takes what is set before it, at once or after 30 ms in which the daemon's thread blocks but
/// one leave, and is overwritten by nothing that is set behind it.
TEST_P(Streamed, ItComesAfterWhatIsBeforeItAndBeforeWhatIsBehindIt) {
  constexpr uint32_t kRounds = 40, kWords = 900;
  Case what = one(plan::testing::twoShotAllReduce(numRanks()));
  what.type = DataType::Int32;
  what.count = kWords;
  rememberOnAll(what);
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &on = *onDevices[rank];
    constexpr size_t kBytes = kWords * sizeof(uint32_t);
    uint32_t *pinned = nullptr;
    cudaHostAlloc(reinterpret_cast<void **>(&pinned), kRounds * kBytes, cudaHostAllocDefault);
    std::string wrong;
    for (uint32_t round = 0; round < kRounds && wrong.empty(); ++round) {
      if (round % 10 == 5)
        cudaLaunchHostFunc(
            on.stream(), [](void *) { std::this_thread::sleep_for(30ms); }, nullptr);
      cudaMemsetAsync(on.input(false), byteOf(rank, round), kBytes, on.stream());
      wrong = submit(rank, 1);
      cudaMemcpyAsync(pinned + round * kWords, on.output(false), kBytes, cudaMemcpyDeviceToHost,
                      on.stream());
      cudaMemsetAsync(on.output(false), 0x77, kBytes, on.stream());
      cudaMemsetAsync(on.input(false), 0x77, kBytes, on.stream());
    }
    if (wrong.empty())
      wrong = on.synchronize();
    for (uint32_t round = 0; round < kRounds && wrong.empty(); ++round) {
      uint32_t expected = 0;
      for (uint32_t r = 0; r < numRanks(); ++r)
        expected += byteOf(r, round) * 0x01010101u;
      for (uint32_t i = 0; i < kWords && wrong.empty(); ++i)
        if (pinned[round * kWords + i] != expected)
          wrong = "round " + std::to_string(round) + ", element " + std::to_string(i);
    }
    cudaFreeHost(pinned);
    return wrong.empty() ? occlCommGetLastError(comms[rank]) : wrong;
  });
}

/// In streams of their own, no rank in the order of another one, and the host never waits.
TEST_P(Streamed, ConflictingOrdersInSeveralStreamsComplete) {
  constexpr uint32_t kStreams = 6, kIterations = 20;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (uint64_t id = 1; id <= kStreams; ++id) {
    Case what = one(id % 2 ? plan::testing::ringAllReduce(numRanks())
                           : plan::testing::twoShotAllReduce(numRanks()),
                    id);
    what.count = 100 * id * id;
    rememberOnAll(what);
  }
  std::vector<std::vector<cudaStream_t>> streams(comms.size());
  for (uint32_t r = 0; r < comms.size(); ++r)
    for (uint32_t s = 0; s < kStreams; ++s) {
      cudaSetDevice(static_cast<int>(r % devices));
      streams[r].emplace_back();
      ASSERT_EQ(cudaStreamCreateWithFlags(&streams[r].back(), cudaStreamNonBlocking), cudaSuccess);
    }
  inThreads([&](uint32_t rank) -> std::string {
    std::mt19937 random(seed + rank);
    std::vector<uint64_t> order(kStreams);
    for (uint32_t s = 0; s < kStreams; ++s)
      order[s] = s;
    std::string wrong;
    for (uint32_t i = 0; i < kIterations; ++i) {
      std::ranges::shuffle(order, random);
      for (uint64_t s : order)
        if (wrong.empty())
          wrong = submit(rank, s + 1, onDevices[rank]->input(false),
                         onDevices[rank]->output(false) + (s << 17), streams[rank][s]);
    }
    for (cudaStream_t stream : streams[rank])
      for (auto end = Clock::now() + 20s; cudaStreamQuery(stream) == cudaErrorNotReady;)
        if (Clock::now() > end)
          return wrong + "; a stream does not end";
    return wrong.empty() ? occlCommGetLastError(comms[rank]) : wrong;
  });
  for (auto &of : streams)
    for (cudaStream_t stream : of)
      cudaStreamDestroy(stream);
}

TEST_P(Streamed, ADeadlineNamesWhatIsWaitedForAndTheStreamGoesOn) {
  rememberOnAll(one(plan::testing::oneShotAllReduce(numRanks())), 300);
  inThreads([&](uint32_t rank) -> std::string {
    std::string wrong = submit(rank, 1);
    return wrong.empty() ? onDevices[rank]->synchronize() : wrong;
  });
  occlRequest_t request = 0;
  ASSERT_EQ(submit(0, 1, &request), "");
  cudaSetDevice(0);
  EXPECT_TRUE(goesOn(0));
  EXPECT_EQ(occlWait(comms[0], request), occlTimeout) << occlGetLastError();
  for (occlComm_t comm : comms) {
    std::string text = occlCommGetLastError(comm);
    EXPECT_NE(text.find("collective 'one_shot_allreduce' (id 1), invocation 1, did not end on rank "
                        "0 before its deadline: rank 0 waits for rank "),
              std::string::npos)
        << text;
  }
  EXPECT_NE(submit(1, 1), "");
}

/// The stream takes longer than the collective's timeout to come so far.
TEST_P(Streamed, TheTimeoutBeginsWhenTheStreamHasComeSoFar) {
  rememberOnAll(one(plan::testing::oneShotAllReduce(numRanks())), 300);
  cudaSetDevice(0);
  cudaEvent_t isReady = nullptr;
  cudaEventCreateWithFlags(&isReady, cudaEventDisableTiming);
  cudaLaunchHostFunc(
      onDevices[0]->stream(), [](void *) { std::this_thread::sleep_for(800ms); }, nullptr);
  cudaEventRecord(isReady, onDevices[0]->stream());
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &on = *onDevices[rank];
    cudaStreamWaitEvent(on.stream(), isReady, 0);
    occlRequest_t request = 0;
    std::string wrong = submit(rank, 1, &request);
    if (wrong.empty() && occlTest(comms[rank], request) != occlInProgress)
      wrong = "it is complete before its stream has reached it";
    if (wrong.empty() && occlWait(comms[rank], request) != occlSuccess)
      wrong = occlGetLastError();
    return wrong.empty() ? on.synchronize() : wrong;
  });
  cudaEventDestroy(isReady);
}

TEST_P(Streamed, AbortLetsStreamsGoOn) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks())));
  occlRequest_t request = 0;
  ASSERT_EQ(submit(0, 1, &request), "");
  std::this_thread::sleep_for(50ms);
  ASSERT_EQ(occlCommAbort(comms[1]), occlSuccess);
  cudaSetDevice(0);
  EXPECT_TRUE(goesOn(0));
  EXPECT_EQ(occlWait(comms[0], request), occlAborted);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "nothing is left on the device";
}

TEST_P(Streamed, ItsEndIsCalledBack) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks())));
  std::atomic<uint32_t> calls{0};
  auto count = [](occlRequest_t, occlResult_t result, void *user) {
    *static_cast<std::atomic<uint32_t> *>(user) += result == occlSuccess ? 1 : 1000;
  };
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &on = *onDevices[rank];
    for (uint32_t i = 0; i < 20; ++i)
      if (startInStream(comms[rank], 1, on.input(false), on.output(false), on.stream(), count,
                        &calls, nullptr) != occlSuccess)
        return occlGetLastError();
    return on.synchronize();
  });
  for (auto end = Clock::now() + 10s; calls != 20 * numRanks() && Clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(calls, 20 * numRanks());
}

TEST_P(Streamed, ACapturedStreamIsRefused) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks())));
  cudaSetDevice(0);
  cudaStream_t stream = onDevices[0]->stream();
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_NE(submit(0, 1).find("the stream is captured"), std::string::npos);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "the capture is not spoilt";
  cudaGraphDestroy(graph);
}

/// More than there is room for: with the window full the call says so, and what was refused
/// has left nothing behind.
TEST_P(Streamed, AFullWindowRefuses) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks())));
  std::atomic<uint32_t> refused{0};
  inThreads([&](uint32_t rank) -> std::string {
    RankOnDevice &on = *onDevices[rank];
    cudaLaunchHostFunc(
        on.stream(), [](void *) { std::this_thread::sleep_for(100ms); }, nullptr);
    for (uint32_t i = 0; i < 300; ++i) {
      occlResult_t result = occlAgain;
      for (auto end = Clock::now() + 10s; result == occlAgain && Clock::now() < end;) {
        result = startInStream(comms[rank], 1, on.input(false), on.output(false), on.stream(),
                               nullptr, nullptr, nullptr);
        refused += result == occlAgain;
      }
      if (result != occlSuccess)
        return occlGetLastError();
    }
    std::string wrong = on.synchronize();
    return wrong.empty() ? occlCommGetLastError(comms[rank]) : wrong;
  });
  EXPECT_GT(refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(Modes, Streamed, testing::Values(2u, 1u), [](const auto &info) {
  return std::string(info.param == 1 ? "strict" : "with_lookout");
});

} // namespace
} // namespace occl::gpu_test
