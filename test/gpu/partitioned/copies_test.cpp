// Marks of streams that a copy engine carries out, as the host knows that the receiver has started.
// Ranks are threads. Skipped where there is no device.
#include "test/gpu/harness/user_kernels.h"
#include "test/gpu/partitioned/ranks_in_rings.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMiB = 1 << 20;

class PartCopies : public RanksInRings {
protected:
  /// Afterwards the host has seen that the receiver has started.
  static void prepare(Ring &ring, cudaStream_t stream) {
    ring.expect(occlPprepareOn(ring.send, stream), "occlPprepareOn");
    ring.expect(cudaStreamSynchronize(stream), "the stream");
  }
  static void mark(Ring &ring, cudaStream_t stream, uint64_t first, uint64_t last) {
    ring.expect(
        occlPreadyOn(ring.send, static_cast<int64_t>(first), static_cast<int64_t>(last), stream),
        "occlPreadyOn");
  }
};

/// Epochs of copies, of kernels, and of both; what is sent is changed at once when they end.
TEST_F(PartCopies, AnyPartitionsAreRight) {
  for (const RingShape &shape :
       {RingShape{1, 1, 8 * kMiB}, RingShape{8, 3, 24 * kMiB}, RingShape{7, 5, 35 * kMiB, 3},
        RingShape{64, 16, 16 * kMiB}, RingShape{3, 3, 3 * (kMiB + 24)}})
    onRing(shape, [&](uint32_t rank, Ring &ring) -> std::string {
      const cudaStream_t stream = streamOf(rank);
      const uint64_t last = shape.sent - 1;
      const uint64_t cut = shape.perMessage > 1 ? shape.perMessage : (shape.sent + 1) / 2;
      for (uint64_t epoch = 1; epoch <= 8; ++epoch) {
        ring.start(stream);
        if (epoch % 4 != 0)
          prepare(ring, stream);
        ring.expect(launchFill(stream, ring.out(), ring.ownKey(epoch)), "filling");
        if (cut <= last)
          mark(ring, stream, cut, last);
        mark(ring, stream, 0, std::min(cut - 1, last));
        ring.waitAndCheck(stream, epoch);
      }
      std::string wrong = ring.finish(stream);
      ring.free();
      return wrong.empty() ? ring.wrong() : wrong;
    });
}

/// Each partition is made in one stream and marked in another, as bands of a product are.
TEST_F(PartCopies, BandsInASideStream) {
  onRing({4, 4, 16 * kMiB}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    cudaStream_t side = nullptr;
    cudaEvent_t made = nullptr;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
    const auto order = [&](cudaStream_t before, cudaStream_t after) {
      ring.expect(cudaEventRecord(made, before), "recording");
      ring.expect(cudaStreamWaitEvent(after, made, 0), "waiting");
    };
    for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
      ring.start(stream);
      order(stream, side);
      prepare(ring, side);
      for (uint64_t p = 0; p < 4; ++p) {
        ring.expect(launchFillOne(stream, ring.out(), p, ring.ownKey(epoch)), "filling");
        order(stream, side);
        mark(ring, side, p, p);
      }
      order(side, stream);
      ring.waitAndCheck(stream, epoch);
    }
    const std::string wrong = ring.finish(stream);
    cudaStreamDestroy(side);
    cudaEventDestroy(made);
    ring.free();
    return wrong;
  });
}

/// Rank 0's device has room for a few warps: what is copied arrives, and what a kernel is to
/// store does not, until there is more.
class PartCopiesInACrowd : public PartCopies, public testing::WithParamInterface<bool> {};

TEST_P(PartCopiesInACrowd, ACopyTakesNoMultiprocessor) {
  const bool isCopied = GetParam();
  if (n() < 2 || devices < 2)
    GTEST_SKIP() << "needs two devices";
  uint32_t *words = nullptr; // of the crowd: how many have begun, and whether they may end
  ASSERT_EQ(cudaMallocHost(&words, 2 * sizeof *words), cudaSuccess);
  words[0] = words[1] = 0;
  std::barrier met(static_cast<ptrdiff_t>(n()));
  bool hasArrived = false;
  onRing({1, 1, 4 * kMiB}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    if (rank == 1)
      ring.expect(occlPstartOn(ring.receive, stream), "occlPstartOn");
    if (rank == 0) {
      if (!isCopied) // kernels may mark
        (void)ring.handle(ring.send);
      ring.expect(occlPstartOn(ring.send, stream), "occlPstartOn");
      prepare(ring, stream);
      ring.expect(launchFill(stream, ring.out(), ring.ownKey(1)), "filling");
      ring.expect(cudaStreamSynchronize(stream), "the stream");
      uint32_t blocks = 0;
      ring.expect(launchCrowd(other, &words[0], &words[1], &blocks), "launching");
      while (*static_cast<volatile uint32_t *>(&words[0]) != blocks)
        std::this_thread::sleep_for(1ms);
      mark(ring, stream, 0, 0);
    }
    met.arrive_and_wait();
    if (rank == 1) {
      ring.expect(occlPwaitOn(ring.receive, stream), "occlPwaitOn");
      for (auto end = std::chrono::steady_clock::now() + (isCopied ? 5s : 300ms);
           !hasArrived && std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(1ms))
        hasArrived = cudaStreamQuery(stream) == cudaSuccess;
    }
    met.arrive_and_wait();
    *static_cast<volatile uint32_t *>(&words[1]) = 1;
    if (rank == 0)
      ring.expect(occlPwaitOn(ring.send, stream), "occlPwaitOn");
    if (rank == 1)
      ring.expect(launchCheck(stream, ring.in(), ring.theirKey(1), ring.different), "launching");
    const std::string wrong = ring.finish(stream);
    cudaStreamDestroy(other);
    ring.free();
    return wrong;
  });
  EXPECT_EQ(hasArrived, isCopied);
  cudaFreeHost(words);
}
INSTANTIATE_TEST_SUITE_P(Each, PartCopiesInACrowd, testing::Bool());

// --- misuse and failures ---

enum class Again { SameStream, AheadOfTheCopy, AfterTheEpoch };
class PartCopiesMisused : public PartCopies, public testing::WithParamInterface<Again> {};

TEST_P(PartCopiesMisused, ASecondMarkEndsTheCommunicator) {
  const Again how = GetParam();
  onRing({4, 4, 8 * kMiB}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    ring.start(stream);
    prepare(ring, stream);
    if (rank == 0 && how == Again::AheadOfTheCopy)
      ring.expect(launchDelay(stream, 50), "waiting");
    mark(ring, stream, 0, 3);
    if (rank == 0 && how != Again::AfterTheEpoch)
      mark(ring, how == Again::SameStream ? stream : other, 2, 2);
    ring.waitAndCheck(stream, 1);
    if (rank == 0 && how == Again::AfterTheEpoch) {
      mark(ring, stream, 2, 2);
      ring.expect(occlPwaitOn(ring.send, stream), "occlPwaitOn");
    }
    const std::string why = failureAfter(rank);
    cudaStreamDestroy(other);
    const char *const want =
        how == Again::AfterTheEpoch ? "without an epoch: 2" : "marks a partition twice: 2";
    return why.find(want) != std::string::npos ? "" : "rank " + std::to_string(rank) + ": " + why;
  });
}
INSTANTIATE_TEST_SUITE_P(Each, PartCopiesMisused,
                         testing::Values(Again::SameStream, Again::AheadOfTheCopy,
                                         Again::AfterTheEpoch));

/// Prepared, and marked before the host has seen the receiver start, which it never does: what it
/// has of the epoch before stays as it is, whatever the stream carries out after the failure.
TEST_F(PartCopies, NothingIsStoredToAReceiverThatHasNotStarted) {
  if (n() < 2)
    GTEST_SKIP() << "needs two ranks";
  startWithTimeout(500);
  std::barrier met(static_cast<ptrdiff_t>(n()));
  onRing({2, 2, 8 * kMiB}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    ring.start(stream);
    prepare(ring, stream);
    ring.expect(launchFill(stream, ring.out(), ring.ownKey(1)), "filling");
    mark(ring, stream, 0, 1);
    ring.waitAndCheck(stream, 1);
    std::string wrong = ring.finish(stream);
    met.arrive_and_wait();
    if (rank == 0) {
      ring.expect(occlPstartOn(ring.send, stream), "occlPstartOn");
      ring.expect(launchFill(stream, ring.out(), ring.ownKey(2)), "filling");
      ring.expect(occlPprepareOn(ring.send, stream), "occlPprepareOn");
      mark(ring, stream, 0, 1);
      const std::string why = failureAfter(rank);
      if (why.find("to start it") == std::string::npos)
        wrong += "not: " + why;
    }
    met.arrive_and_wait();
    ring.expect(launchCheck(stream, ring.in(), ring.theirKey(1), ring.different), "launching");
    return wrong + ring.finish(stream);
  });
}

/// Replays take epochs that the host does not count: a mark of a stream must not take what the host
/// has seen of an earlier one for this one's.
TEST_F(PartCopies, ReplaysTakeEpochsUnseen) {
  onRing({4, 4, 8 * kMiB}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    cudaGraph_t whole = nullptr, starts = nullptr;
    cudaGraphExec_t all = nullptr, begin = nullptr;
    const auto capture = [&](cudaGraph_t &graph, cudaGraphExec_t &exec, auto body) {
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      body();
      ring.expect(cudaStreamEndCapture(stream, &graph), "ending the capture");
      ring.expect(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
    };
    const auto epochs = [&](uint64_t key) {
      ring.expect(launchFill(stream, ring.out(), ring.ownKey(key)), "filling");
      mark(ring, stream, 0, 3);
      ring.waitAndCheck(stream, key);
    };
    ring.start(stream);
    prepare(ring, stream);
    epochs(1);
    capture(whole, all, [&] {
      ring.start(stream);
      ring.expect(occlPprepareOn(ring.send, stream), "occlPprepareOn");
      epochs(2);
    });
    for (int replay = 0; replay < 20; ++replay)
      ring.expect(cudaGraphLaunch(all, stream), "replaying");
    // The receivers are late: what they have of the last epoch stays there until they start.
    capture(starts, begin, [&] { ring.expect(occlPstartOn(ring.send, stream), "occlPstartOn"); });
    for (uint64_t epoch = 3; epoch <= 5; ++epoch) {
      const std::string wrong = ring.finish(stream);
      if (!wrong.empty())
        return wrong;
      ring.expect(cudaGraphLaunch(begin, stream), "replaying");
      ring.expect(launchFill(stream, ring.out(), ring.ownKey(epoch)), "filling");
      mark(ring, stream, 0, 3);
      ring.expect(launchDelay(stream, 20), "waiting");
      ring.expect(launchCheck(stream, ring.in(), ring.theirKey(epoch - 1), ring.different),
                  "launching");
      ring.expect(occlPstartOn(ring.receive, stream), "occlPstartOn");
      ring.waitAndCheck(stream, epoch);
    }
    const std::string wrong = ring.finish(stream);
    for (cudaGraphExec_t exec : {all, begin})
      cudaGraphExecDestroy(exec);
    for (cudaGraph_t graph : {whole, starts})
      cudaGraphDestroy(graph);
    ring.free();
    return wrong;
  });
}

} // namespace
} // namespace occl::gpu_test
