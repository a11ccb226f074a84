// Collectives in streams whose thread blocks do not fit on the device together: those that wait
// make way, so that any order ends. Ranks are threads; skipped where there is no device.
#include "test/gpu/block_plans.h"
#include "test/gpu/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Three collectives are more than 132 multiprocessors have room for.
constexpr uint32_t kBlocks = 48;
constexpr uint64_t kCount = 48 * 64, kBytes = kCount * sizeof(uint32_t);
constexpr uint64_t kIds = 5;
constexpr uint32_t kRounds = 3;

plan::Plan crowded(plan::Protocol protocol) {
  return oneShotInBlocks(2, kBlocks, protocol, Adding::AfterNext);
}

struct Shape {
  const char *name;
  plan::Plan (*make)();
};

class Crowded : public RanksOnDevices, public testing::WithParamInterface<Shape> {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (!IsSkipped())
      start(2);
  }
  void TearDown() override {
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    streams.clear();
    RanksOnDevices::TearDown();
  }

  void registerIds(uint64_t number, uint32_t timeoutMs = 20000) {
    for (uint64_t id = 0; id < number; ++id) {
      Case what = one(GetParam().make(), id);
      what.count = kCount;
      what.type = DataType::Int32;
      registerOnAll(what, timeoutMs);
    }
    for (uint32_t r = 0; r < 2; ++r) {
      use(r);
      ASSERT_EQ(cudaMemset(onDevices[r]->input(true), static_cast<int>(1 + r), kBytes),
                cudaSuccess);
      for (uint64_t s = 0; s < kStreams; ++s) {
        streams.emplace_back();
        cudaStreamCreateWithFlags(&streams.back(), cudaStreamNonBlocking);
      }
    }
  }
  void use(uint32_t rank) const { cudaSetDevice(static_cast<int>(rank % devices)); }
  cudaStream_t stream(uint32_t rank, uint64_t number) const {
    return streams[rank * kStreams + number];
  }
  char *output(uint32_t rank, uint64_t number) const {
    return onDevices[rank]->output(true) + number * kBytes;
  }
  std::string enqueue(uint32_t rank, uint64_t id, cudaStream_t stream, char *output) {
    cudaMemsetAsync(output, 0x7f, kBytes, stream);
    return occlEnqueue(comms[rank], id, onDevices[rank]->input(true), output, stream) == occlSuccess
               ? ""
               : std::string("occlEnqueue: ") + occlGetLastError();
  }
  /// All streams of a rank are empty within a bound, and the first outputs are sums.
  std::string finish(uint32_t rank, uint64_t numOutputs) {
    for (auto late = Clock::now() + 30s; uint64_t s : {0, 1, 2, 3, 4, 5})
      while (cudaStreamQuery(stream(rank, s)) == cudaErrorNotReady) {
        if (Clock::now() > late)
          return "a stream does not end";
        std::this_thread::yield();
      }
    if (*occlCommGetLastError(comms[rank]) != 0)
      return occlCommGetLastError(comms[rank]);
    std::vector<uint32_t> host(numOutputs * kCount);
    cudaMemcpyAsync(host.data(), output(rank, 0), host.size() * sizeof(uint32_t), cudaMemcpyDefault,
                    onDevices[rank]->stream());
    if (std::string wrong = onDevices[rank]->synchronize(); !wrong.empty())
      return wrong;
    for (size_t i = 0; i < host.size(); ++i)
      if (host[i] != 0x03030303)
        return "element " + std::to_string(i) + " of " + std::to_string(kCount) + " each is " +
               std::to_string(host[i]);
    return "";
  }

  static constexpr uint64_t kStreams = 6;
  std::vector<cudaStream_t> streams;
};

/// Rank 0 has all of them in streams of their own before rank 1 comes to them the other way round.
TEST_P(Crowded, OppositeOrdersEnd) {
  registerIds(kIds);
  for (uint32_t round = 0; round < kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == 1)
        std::this_thread::sleep_for(50ms);
      auto begin = Clock::now();
      for (uint64_t i = 0; i < kIds; ++i) {
        uint64_t id = rank == 0 ? i : kIds - 1 - i;
        if (std::string wrong = enqueue(rank, id, stream(rank, id), output(rank, id));
            !wrong.empty())
          return wrong;
      }
      std::string wrong = finish(rank, kIds);
      auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
      std::fprintf(stderr, "rank %u: %lld ms\n", rank, static_cast<long long>(took.count()));
      return wrong;
    });
}

TEST_P(Crowded, OppositeOrdersOfGraphsEnd) {
  registerIds(kIds);
  std::vector<cudaGraphExec_t> graphs(2 * kIds, nullptr);
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint64_t id = 0; id < kIds; ++id) {
      use(rank);
      cudaStream_t work = stream(rank, id);
      cudaGraph_t graph = nullptr;
      ASSERT_EQ(cudaStreamBeginCapture(work, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      ASSERT_EQ(enqueue(rank, id, work, output(rank, id)), "");
      ASSERT_EQ(enqueue(rank, id, work, output(rank, id)), "");
      ASSERT_EQ(cudaStreamEndCapture(work, &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&graphs[rank * kIds + id], graph, 0), cudaSuccess);
      ASSERT_EQ(cudaGraphUpload(graphs[rank * kIds + id], work), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(work), cudaSuccess);
      cudaGraphDestroy(graph);
    }
  for (uint32_t round = 0; round < kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == 1)
        std::this_thread::sleep_for(50ms);
      for (uint64_t i = 0; i < kIds; ++i) {
        uint64_t id = rank == 0 ? i : kIds - 1 - i;
        if (cudaGraphLaunch(graphs[rank * kIds + id], stream(rank, id)) != cudaSuccess)
          return "cudaGraphLaunch";
      }
      return finish(rank, kIds);
    });
  for (cudaGraphExec_t graph : graphs)
    cudaGraphExecDestroy(graph);
}

/// The k-th belongs to the k-th: those that came too early wait for their number, and make way too,
/// also where more of them wait than have adopters.
TEST_P(Crowded, CallsOfOneCollectiveInManyStreamsEnd) {
  registerIds(1);
  for (uint32_t round = 0; round < kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == 1)
        std::this_thread::sleep_for(50ms);
      for (uint64_t i = 0; i < kStreams; ++i)
        if (std::string wrong = enqueue(rank, 0, stream(rank, i), output(rank, i)); !wrong.empty())
          return wrong;
      return finish(rank, kStreams);
    });
}

/// What waited for long is executed by one thread block, and the next one by all again.
TEST_P(Crowded, ALateRankIsWaitedFor) {
  registerIds(2);
  for (uint32_t round = 0; round < 2 * kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == round % 2)
        std::this_thread::sleep_for(100ms);
      for (uint64_t i = 0; i < kStreams; ++i)
        if (std::string wrong = enqueue(rank, i % 2, stream(rank, 0), output(rank, i));
            !wrong.empty())
          return wrong;
      return finish(rank, kStreams);
    });
}

TEST_P(Crowded, AMissingRankIsNamedInBoundedTime) {
  registerIds(1, 1000);
  use(0);
  ASSERT_EQ(enqueue(0, 0, stream(0, 0), output(0, 0)), "");
  auto begin = Clock::now();
  std::string failure = failureOf(1);
  EXPECT_NE(failure.find("rank 0 gave up in '"), std::string::npos) << failure;
  EXPECT_NE(failure.find("_in_blocks' (id "), std::string::npos) << failure;
  EXPECT_NE(failure.find("waits for "), std::string::npos) << failure;
  EXPECT_NE(failure.find("rank 1"), std::string::npos) << failure;
  EXPECT_LT(Clock::now() - begin, 4s);
  EXPECT_EQ(cudaStreamSynchronize(stream(0, 0)), cudaSuccess);
}

TEST_P(Crowded, AbortEndsWhatHasMadeWay) {
  registerIds(kIds);
  use(0);
  for (uint64_t id = 0; id < kIds; ++id)
    ASSERT_EQ(enqueue(0, id, stream(0, id), output(0, id)), "");
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(cudaStreamQuery(stream(0, kIds - 1)), cudaErrorNotReady);
  EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
  for (uint64_t id = 0; id < kIds; ++id)
    EXPECT_EQ(cudaStreamSynchronize(stream(0, id)), cudaSuccess);
  EXPECT_NE(failureOf(0).find("occlCommAbort was called on rank 1"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Crowded,
    testing::Values(Shape{"simple", [] { return crowded(plan::Protocol::Simple); }},
                    Shape{"lines", [] { return crowded(plan::Protocol::LL); }},
                    Shape{"direct", [] { return directInBlocks(2, kBlocks); }}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace occl::gpu_test
