// Collectives in streams whose thread blocks do not fit on the device together: those that wait
// make way, so that any order ends. Ranks are threads; skipped where there is no device.
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/captured_graph.h"
#include "test/gpu/harness/ranks_on_devices.h"

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
constexpr uint32_t kComms = 5, kStreams = 6;
constexpr uint32_t kRounds = 3;

plan::Plan crowded(plan::Protocol protocol) {
  return oneShotInBlocks(2, kBlocks, protocol, Adding::AfterNext);
}

/// Thread blocks that are straight, and so large that a multiprocessor has room for one.
plan::Plan straight(plan::Protocol protocol) { return oneShotInBlocks(2, kBlocks, protocol); }

struct Shape {
  const char *name;
  plan::Plan (*make)();
  uint64_t each; // elements of a thread block
  bool inPlace = false;
};

class Crowded : public RanksOnDevices, public testing::WithParamInterface<Shape> {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    what = one(GetParam().make());
    what.count = kBlocks * GetParam().each;
    what.type = DataType::Int32;
    bytes = what.count * sizeof(uint32_t);
  }
  void TearDown() override {
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    streams.clear();
    buffers.clear();
    RanksOnDevices::TearDown();
  }

  /// So many communicators of two ranks, each with its buffers, and the ranks with their streams.
  void startComms(uint32_t number) {
    startMany(number, 2, smallConfig(), {what});
    for (uint32_t r = 0; r < 2; ++r) {
      use(r);
      for (uint32_t c = 0; c < number; ++c) {
        void *memory = nullptr;
        ASSERT_EQ(occlMemAlloc(commOf(r, c), (1 + kStreams) * bytes, &memory), occlSuccess)
            << occlGetLastError();
        ASSERT_EQ(cudaMemset(memory, static_cast<int>(1 + r), bytes), cudaSuccess);
        buffers.push_back(static_cast<char *>(memory));
      }
      for (uint32_t s = 0; s < kStreams; ++s) {
        streams.emplace_back();
        cudaStreamCreateWithFlags(&streams.back(), cudaStreamNonBlocking);
      }
    }
  }
  void use(uint32_t rank) const { cudaSetDevice(static_cast<int>(rank % devices)); }
  cudaStream_t stream(uint32_t rank, uint32_t number) const {
    return streams[rank * kStreams + number];
  }
  char *input(uint32_t rank, uint32_t comm) const {
    return buffers[rank * (buffers.size() / 2) + comm];
  }
  char *output(uint32_t rank, uint32_t comm, uint32_t number = 0) const {
    return input(rank, comm) + (1 + number) * bytes;
  }
  std::string call(uint32_t rank, uint32_t comm, cudaStream_t stream, uint32_t number = 0,
                   uint32_t timeoutMs = 0) {
    const bool inPlace = GetParam().inPlace;
    char *sum = output(rank, comm, number);
    cudaMemsetAsync(sum, inPlace ? static_cast<int>(1 + rank) : 0x7f, bytes, stream);
    return callInStream(commOf(rank, comm), what, inPlace ? sum : input(rank, comm), sum, stream,
                        timeoutMs);
  }
  /// All streams of a rank are empty within a bound, and the communicators' first outputs are sums.
  std::string finish(uint32_t rank, uint32_t numComms, uint32_t numOutputs = 1) {
    for (auto late = Clock::now() + 30s; uint32_t s : {0, 1, 2, 3, 4, 5})
      while (cudaStreamQuery(stream(rank, s)) == cudaErrorNotReady) {
        if (Clock::now() > late)
          return "a stream does not end";
        std::this_thread::yield();
      }
    std::string wrong;
    for (uint32_t c = 0; c < numComms && wrong.empty(); ++c)
      for (uint32_t o = 0; o < numOutputs && wrong.empty(); ++o)
        wrong = check(rank, c, o);
    return wrong;
  }

  Case what;
  uint64_t bytes = 0;

private:
  std::string check(uint32_t rank, uint32_t comm, uint32_t number) const {
    if (*occlCommGetLastError(commOf(rank, comm)) != 0)
      return occlCommGetLastError(commOf(rank, comm));
    std::vector<uint32_t> host(what.count);
    cudaMemcpyAsync(host.data(), output(rank, comm, number), bytes, cudaMemcpyDefault,
                    onDevices[rank]->stream());
    if (std::string wrong = onDevices[rank]->synchronize(); !wrong.empty())
      return wrong;
    for (size_t i = 0; i < host.size(); ++i)
      if (host[i] != 0x03030303)
        return "element " + std::to_string(i) + " of communicator " + std::to_string(comm) +
               " is " + std::to_string(host[i]);
    return "";
  }

  std::vector<char *> buffers; // by rank and communicator: the input, and outputs behind it
  std::vector<cudaStream_t> streams;
};

/// Rank 0 has calls in all of them, each in a stream of its own, before rank 1 comes to them the
/// other way round.
TEST_P(Crowded, OppositeOrdersEnd) {
  startComms(kComms);
  for (uint32_t round = 0; round < kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == 1)
        std::this_thread::sleep_for(50ms);
      auto begin = Clock::now();
      for (uint32_t i = 0; i < kComms; ++i) {
        uint32_t comm = rank == 0 ? i : kComms - 1 - i;
        if (std::string wrong = call(rank, comm, stream(rank, comm)); !wrong.empty())
          return wrong;
      }
      std::string wrong = finish(rank, kComms);
      auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
      std::fprintf(stderr, "rank %u: %lld ms\n", rank, static_cast<long long>(took.count()));
      return wrong;
    });
}

TEST_P(Crowded, OppositeOrdersOfGraphsEnd) {
  startComms(kComms);
  std::vector<CapturedGraph> graphs(2 * kComms);
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t comm = 0; comm < kComms; ++comm) {
      use(rank);
      cudaStream_t work = stream(rank, comm);
      const auto twice = [&] { return call(rank, comm, work) + call(rank, comm, work); };
      ASSERT_EQ(graphs[rank * kComms + comm].capture(work, twice), "");
    }
  for (uint32_t round = 0; round < kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == 1)
        std::this_thread::sleep_for(50ms);
      for (uint32_t i = 0; i < kComms; ++i) {
        uint32_t comm = rank == 0 ? i : kComms - 1 - i;
        if (std::string wrong = graphs[rank * kComms + comm].replay(stream(rank, comm));
            !wrong.empty())
          return wrong;
      }
      return finish(rank, kComms);
    });
}

/// Of one communicator: those behind the first wait for it in their streams, or, in the second
/// stream that the communicator sees, on the device.
TEST_P(Crowded, CallsInManyStreamsEnd) {
  startComms(1);
  for (uint32_t round = 0; round < kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == 1)
        std::this_thread::sleep_for(50ms);
      for (uint32_t i = 0; i < kStreams; ++i)
        if (std::string wrong = call(rank, 0, stream(rank, i), i); !wrong.empty())
          return wrong;
      return finish(rank, 1, kStreams);
    });
}

/// What waited for long is executed by one thread block, and the next one by all again.
TEST_P(Crowded, ALateRankIsWaitedFor) {
  startComms(2);
  for (uint32_t round = 0; round < 2 * kRounds; ++round)
    inThreads([&](uint32_t rank) -> std::string {
      if (rank == round % 2)
        std::this_thread::sleep_for(100ms);
      for (uint32_t i = 0; i < kStreams; ++i)
        if (std::string wrong = call(rank, i % 2, stream(rank, 0), i / 2); !wrong.empty())
          return wrong;
      return finish(rank, 2, kStreams / 2);
    });
}

TEST_P(Crowded, AMissingRankIsNamedInBoundedTime) {
  startComms(1);
  use(0);
  ASSERT_EQ(call(0, 0, stream(0, 0), 0, 1000), "");
  auto begin = Clock::now();
  std::string failure = failureOf(1);
  EXPECT_NE(failure.find("rank 0 gave up in call 1, '"), std::string::npos) << failure;
  EXPECT_NE(failure.find("_in_blocks' of " + std::to_string(what.count) + " elements"),
            std::string::npos)
      << failure;
  EXPECT_NE(failure.find("waits for "), std::string::npos) << failure;
  EXPECT_NE(failure.find("rank 1"), std::string::npos) << failure;
  EXPECT_LT(Clock::now() - begin, 4s);
  EXPECT_EQ(cudaStreamSynchronize(stream(0, 0)), cudaSuccess);
}

TEST_P(Crowded, AbortEndsWhatHasMadeWay) {
  startComms(kComms);
  use(0);
  for (uint32_t comm = 0; comm < kComms; ++comm)
    ASSERT_EQ(call(0, comm, stream(0, comm)), "");
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(cudaStreamQuery(stream(0, kComms - 1)), cudaErrorNotReady);
  for (uint32_t comm = 0; comm < kComms; ++comm)
    EXPECT_EQ(occlCommAbort(commOf(1, comm)), occlSuccess);
  for (uint32_t comm = 0; comm < kComms; ++comm) {
    EXPECT_EQ(cudaStreamSynchronize(stream(0, comm)), cudaSuccess);
    EXPECT_NE(failureOf(0, comm).find("occlCommAbort was called on rank 1"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Crowded,
    testing::Values(Shape{"simple", [] { return crowded(plan::Protocol::Simple); }, 64},
                    Shape{"lines", [] { return crowded(plan::Protocol::LL); }, 64},
                    Shape{"direct", [] { return directInBlocks(2, kBlocks); }, 64},
                    Shape{"straight", [] { return straight(plan::Protocol::LL); }, 640},
                    Shape{"straight_in_place", [] { return straight(plan::Protocol::LL); }, 640,
                          true},
                    Shape{"straight_wide", [] { return straight(plan::Protocol::LL128); }, 4096},
                    Shape{"straight_wide_in_place", [] { return straight(plan::Protocol::LL128); },
                          4096, true}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace occl::gpu_test
