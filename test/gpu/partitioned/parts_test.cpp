// Partitioned sends and receives on devices: marks in kernels and in streams, waits in both,
// replays, misuse. Ranks are threads. Skipped where there is no device.
#include "test/gpu/harness/user_kernels.h"
#include "test/gpu/partitioned/ranks_in_rings.h"

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class Parts : public RanksInRings {};

/// Numbers of partitions that do not divide each other, messages of several, all groups.
TEST_F(Parts, AnyPartitionsByAnyGroup) {
  const std::vector<RingShape> shapes = {
      {1, 1, 64},           {3, 3, 48},           {33, 17, 33 * 17 * 8, 0}, {17, 33, 17 * 33, 0},
      {64, 16, 1 << 20, 0}, {64, 16, 1 << 16, 5}, {5, 1, 5000, 2},          {1, 7, 7 * 300'000}};
  onRings(shapes, [&](uint32_t rank, auto &rings) -> std::string {
    for (const auto &ring : rings)
      for (const Marker marker : {Marker::Thread, Marker::Warp, Marker::Block}) {
        for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
          ring->start(streamOf(rank));
          ring->produce(streamOf(rank), epoch, marker);
          ring->waitAndCheck(streamOf(rank), epoch);
        }
        if (std::string wrong = ring->finish(streamOf(rank)); !wrong.empty())
          return wrong;
      }
    return "";
  });
}

/// Marks as work of the stream: small ones, and a partition that many thread blocks store.
TEST_F(Parts, MarksOfStreams) {
  const std::vector<RingShape> shapes = {{8, 3, 24 * 100}, {1, 1, 32 << 20}, {6, 4, 12 << 20, 4}};
  onRings(shapes, [&](uint32_t rank, auto &rings) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    for (size_t i = 0; i < shapes.size(); ++i) {
      Ring &ring = *rings[i];
      for (uint64_t epoch = 1; epoch <= 4; ++epoch) {
        ring.start(stream);
        if (epoch % 2 == 0)
          ring.expect(occlPprepareOn(ring.send, stream), "occlPprepareOn");
        ring.expect(launchFill(stream, ring.out(), ring.ownKey(epoch)), "filling");
        const auto last = static_cast<int64_t>(shapes[i].sent) - 1;
        ring.expect(occlPreadyOn(ring.send, last / 2, last, stream), "occlPreadyOn");
        if (last > 0)
          ring.expect(occlPreadyOn(ring.send, 0, last / 2 - 1, stream), "occlPreadyOn");
        ring.waitAndCheck(stream, epoch);
      }
      if (std::string wrong = ring.finish(stream); !wrong.empty())
        return wrong;
    }
    return "";
  });
}

/// Rank 0 is late with everything: what the others have marked goes when it has started.
TEST_F(Parts, ALateReceiver) {
  onRing({4, 4, 8 << 20}, [&](uint32_t rank, Ring &ring) -> std::string {
    for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
      if (rank == 0)
        ring.expect(launchDelay(streamOf(rank), 30), "waiting");
      ring.start(streamOf(rank));
      ring.produce(streamOf(rank), epoch, Marker::Block);
      ring.waitAndCheck(streamOf(rank), epoch);
    }
    const std::string wrong = ring.finish(streamOf(rank));
    ring.free();
    return wrong;
  });
}

/// A kernel in a second stream uses each partition as it comes.
TEST_F(Parts, AConsumerBesideTheProducer) {
  onRing({24, 16, 48 * 5000}, [&](uint32_t rank, Ring &ring) -> std::string {
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEvent_t begun = nullptr, used = nullptr;
    cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&used, cudaEventDisableTiming);
    for (uint64_t epoch = 1; epoch <= 20; ++epoch) {
      ring.start(streamOf(rank));
      cudaEventRecord(begun, streamOf(rank));
      cudaStreamWaitEvent(other, begun, 0);
      ring.expect(launchConsume(other, ring.handle(ring.receive), ring.in(), ring.theirKey(epoch),
                                10 * kSecond, ring.different),
                  "launching");
      cudaEventRecord(used, other);
      ring.produce(streamOf(rank), epoch, Marker::Warp);
      ring.waitAndCheck(streamOf(rank), epoch);
      cudaStreamWaitEvent(streamOf(rank), used, 0);
    }
    const std::string wrong = ring.finish(streamOf(rank));
    cudaStreamDestroy(other);
    cudaEventDestroy(begun);
    cudaEventDestroy(used);
    ring.free();
    return wrong;
  });
}

/// Inside one kernel a rank marks, waits for what the other has marked, and for its send.
TEST_F(Parts, KernelsExchange) {
  onRing({3, 5, 15 * 1024}, [&](uint32_t rank, Ring &ring) -> std::string {
    for (uint64_t epoch = 1; epoch <= 50; ++epoch) {
      ring.start(streamOf(rank));
      ring.expect(launchExchange(streamOf(rank), ring.handle(ring.send), ring.out(),
                                 ring.ownKey(epoch), ring.handle(ring.receive), ring.in(),
                                 ring.theirKey(epoch), 10 * kSecond, ring.different),
                  "launching");
      ring.waitAndCheck(streamOf(rank), epoch);
    }
    const std::string wrong = ring.finish(streamOf(rank));
    ring.free();
    return wrong;
  });
}

/// A kernel that waits for a send sends what its marks have left of another one: the receiver
/// starts the second one when the first has arrived.
TEST_F(Parts, AFlushSendsWhatMarksHaveLeftOfOthers) {
  if (n() < 2)
    GTEST_SKIP() << "needs two ranks";
  const auto body = [&](uint32_t rank, std::vector<std::unique_ptr<Ring>> &rings) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    Ring &first = *rings[0], &second = *rings[1];
    if (rank == 0) {
      for (Ring *ring : {&first, &second})
        ring->expect(occlPstartOn(ring->send, stream), "occlPstartOn");
      first.expect(launchSendBoth(stream, first.handle(first.send), first.out(),
                                  second.handle(second.send), second.out(), first.ownKey(1),
                                  10 * kSecond, first.different),
                   "launching");
    } else if (rank == 1) {
      first.expect(launchDelay(stream, 30), "waiting");
    }
    for (Ring *ring : {&first, &second}) {
      if (rank == 0)
        ring->expect(occlPwaitOn(ring->send, stream), "occlPwaitOn");
      if (rank != 1)
        continue;
      ring->expect(occlPstartOn(ring->receive, stream), "occlPstartOn");
      ring->expect(occlPwaitOn(ring->receive, stream), "occlPwaitOn");
      ring->expect(launchCheck(stream, ring->in(), ring->theirKey(1), ring->different),
                   "launching");
    }
    const std::string wrong = first.finish(stream);
    return wrong.empty() ? second.finish(stream) : wrong;
  };
  onRings({{3, 2, 6 * 1000}, {2, 2, 4096}}, body, [](size_t i) { return static_cast<int64_t>(i); });
}

/// Epochs count on the device.
TEST_F(Parts, GraphsAreReplayed) {
  onRing({12, 7, 84 * 64, 3}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    ring.start(stream);
    ring.produce(stream, 1, Marker::Block);
    ring.waitAndCheck(stream, 1);
    ring.expect(cudaStreamEndCapture(stream, &graph), "ending the capture");
    ring.expect(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
    for (int replay = 0; replay < 200 && ring.wrong().empty(); ++replay)
      ring.expect(cudaGraphLaunch(exec, stream), "replaying");
    const std::string wrong = ring.finish(stream);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    ring.free();
    return wrong;
  });
}

/// Rank 0 destroys its communicator while a replay of it waits for the others, which are late.
TEST_F(Parts, TheEndWaitsForReplays) {
  if (n() < 2)
    GTEST_SKIP() << "needs two ranks";
  occlConfig_t config = smallConfig();
  std::vector<occlComm_t> own(n());
  ASSERT_EQ(occlCommInitAll(own.data(), n(), &config), occlSuccess) << occlGetLastError();
  std::vector<std::unique_ptr<Ring>> rings;
  for (uint32_t rank = 0; rank < n(); ++rank) {
    cudaSetDevice(static_cast<int>(rank % devices));
    EXPECT_EQ(loadUserKernels(), cudaSuccess);
    rings.push_back(std::make_unique<Ring>(own[rank], rank, n(), RingShape{4, 4, 1 << 16}));
  }
  std::barrier met(static_cast<ptrdiff_t>(n()));
  inThreads([&](uint32_t rank) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    Ring &ring = *rings[rank];
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    ring.start(stream);
    ring.produce(stream, 1, Marker::Block);
    ring.expect(occlPwaitOn(ring.receive, stream), "occlPwaitOn");
    ring.expect(occlPwaitOn(ring.send, stream), "occlPwaitOn");
    ring.expect(cudaStreamEndCapture(stream, &graph), "ending the capture");
    ring.expect(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
    for (int replay = 0; replay < 2; ++replay)
      ring.expect(cudaGraphLaunch(exec, stream), "replaying");
    std::string wrong = ring.finish(stream);
    met.arrive_and_wait();
    if (rank != 0)
      ring.expect(launchDelay(stream, 300), "waiting");
    ring.expect(cudaGraphLaunch(exec, stream), "replaying");
    met.arrive_and_wait();
    if (rank == 0) {
      ring.expect(occlCommDestroy(own[0]), "occlCommDestroy");
      ring.forget();
      cudaStreamSynchronize(stream);
    } else if (wrong.empty()) {
      wrong = ring.finish(stream) + occlCommGetLastError(own[rank]);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    return wrong.empty() ? ring.wrong() : wrong;
  });
  for (uint32_t rank = 1; rank < n(); ++rank) {
    rings[rank]->free();
    EXPECT_EQ(rings[rank]->wrong(), "");
  }
  rings.clear();
  for (uint32_t rank = 1; rank < n(); ++rank)
    EXPECT_EQ(occlCommDestroy(own[rank]), occlSuccess) << occlGetLastError();
}

/// Several requests of a rank with the same tag and others, started and awaited in other orders.
TEST_F(Parts, RequestsDoNotWaitForEachOther) {
  const std::vector<RingShape> shapes(6, {2, 3, 6 * 1000});
  const auto body = [&](uint32_t rank, std::vector<std::unique_ptr<Ring>> &rings) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    for (uint64_t epoch = 1; epoch <= 10; ++epoch) {
      const auto inOrder = [&](auto call) {
        for (uint64_t i = 0; i < rings.size(); ++i)
          call(*rings[(i * 5 + rank + epoch) % rings.size()]);
      };
      inOrder([&](Ring &ring) { ring.start(stream); });
      inOrder([&](Ring &ring) { ring.produce(stream, epoch, Marker::Thread); });
      inOrder([&](Ring &ring) { ring.waitAndCheck(stream, epoch); });
    }
    for (const auto &ring : rings)
      if (std::string wrong = ring->finish(stream); !wrong.empty())
        return wrong;
    return "";
  };
  onRings(shapes, body, [](size_t i) { return static_cast<int64_t>(i % 2); });
}

/// Memory of freed requests is used again, and is as new.
TEST_F(Parts, RequestsAreMadeAndFreed) {
  onRing({1, 1, 60 * 100}, [&](uint32_t rank, Ring &ring) -> std::string {
    for (uint64_t round = 1; round <= 60; ++round) {
      ring.free();
      ring.make({1 + round % 5, 1, 60 * 100});
      for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
        ring.start(streamOf(rank));
        ring.produce(streamOf(rank), epoch, Marker::Block);
        ring.waitAndCheck(streamOf(rank), epoch);
      }
      if (std::string wrong = ring.finish(streamOf(rank)); !wrong.empty())
        return "round " + std::to_string(round) + ": " + wrong;
    }
    return "";
  });
}

// --- errors ---

TEST_F(Parts, ArgumentsAreChecked) {
  occlPart_t part = nullptr;
  cudaSetDevice(0);
  DeviceBuffer ordinary(1024);
  std::vector<char> host(1024);
  EXPECT_EQ(occlPrecvInit(comms[0], ordinary.get(), 4, 256, occlUint8, 0, 0, nullptr, &part),
            occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("occlMemAlloc"), std::string::npos);
  EXPECT_EQ(occlPsendInit(comms[0], host.data(), 4, 256, occlUint8, 0, 0, nullptr, &part),
            occlInvalidArgument);
  EXPECT_EQ(occlPsendInit(comms[0], ordinary.get(), 4, 256, occlUint8, n(), 0, nullptr, &part),
            occlInvalidArgument);
  ASSERT_EQ(occlPsendInit(comms[0], ordinary.get(), 4, 256, occlUint8, 0, 0, nullptr, &part),
            occlSuccess)
      << occlGetLastError();
  EXPECT_EQ(occlPstart(part), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("occlPstartOn"), std::string::npos);
  EXPECT_EQ(occlPreadyOn(part, 2, 4, streamOf(0)), occlInvalidArgument);
  EXPECT_EQ(occlPreadyOn(part, 2, 1, streamOf(0)), occlInvalidArgument);
  EXPECT_EQ(occlPdevice(part, nullptr), occlInvalidArgument);
  EXPECT_EQ(occlPdevicePointer(part, nullptr), occlInvalidArgument);
  occlPartDevice_t handle{};
  void *pointer = nullptr;
  EXPECT_EQ(occlPdevice(part, &handle), occlSuccess);
  EXPECT_EQ(occlPdevicePointer(part, &pointer), occlSuccess);
  EXPECT_EQ(pointer, handle.state);
  EXPECT_EQ(occlPstartOn(part, streamOf(0)), occlSuccess) << occlGetLastError();
  cudaStreamSynchronize(streamOf(0));
  EXPECT_EQ(occlPfree(part), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("epoch 1, has not ended"), std::string::npos)
      << occlGetLastError();
}

class PartsMisused : public Parts, public testing::WithParamInterface<Misused> {};

TEST_P(PartsMisused, EndsTheCommunicatorWithAText) {
  const Misused how = GetParam();
  onRing({4, 4, 4096}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    ring.start(stream);
    if (rank == 0) {
      occlPart_t misused = how == Misused::Receive ? ring.receive : ring.send;
      if (how == Misused::TwiceAfterAll)
        ring.produce(stream, 1, Marker::Block);
      if (how == Misused::WithoutEpoch) {
        ring.produce(stream, 1, Marker::Block);
        ring.waitAndCheck(stream, 1);
      }
      ring.expect(launchMisuse(stream, ring.handle(misused), how, 3), "launching");
      if (how == Misused::WithoutEpoch)
        ring.expect(occlPstartOn(ring.send, stream), "occlPstartOn");
      ring.expect(occlPwaitOn(misused, stream), "occlPwaitOn");
    } else {
      ring.produce(stream, 1, Marker::Block);
      ring.waitAndCheck(stream, 1);
    }
    const std::string why = failureAfter(rank);
    const char *const want = how == Misused::OutOfRange ? "there is not: 4"
                             : how == Misused::Twice || how == Misused::TwiceAfterAll ? "twice: 0"
                             : how == Misused::WithoutEpoch ? "without an epoch: 0"
                                                            : "no partitions to be marked";
    // Calls of a rank that has heard of it fail.
    return why.find(want) != std::string::npos && why.find("thread block 3") != std::string::npos
               ? ""
               : "rank " + std::to_string(rank) + " says: " + why;
  });
}
INSTANTIATE_TEST_SUITE_P(Each, PartsMisused,
                         testing::Values(Misused::OutOfRange, Misused::Twice,
                                         Misused::TwiceAfterAll, Misused::WithoutEpoch,
                                         Misused::Receive));

/// Of a receive it does nothing, also without one.
TEST_F(Parts, APreparedSendHasAnEpoch) {
  onRing({4, 4, 4096}, [&](uint32_t rank, Ring &ring) -> std::string {
    const cudaStream_t stream = streamOf(rank);
    ring.expect(occlPprepareOn(ring.receive, stream), "occlPprepareOn");
    ring.start(stream);
    ring.produce(stream, 1, Marker::Block);
    ring.waitAndCheck(stream, 1);
    if (rank == 0)
      ring.expect(occlPprepareOn(ring.send, stream), "occlPprepareOn");
    const std::string why = failureAfter(rank);
    return why.find("without an epoch: 0") != std::string::npos ? ring.wrong() : "not: " + why;
  });
}

TEST_F(Parts, AMissingMarkIsNamedAtTheDeadline) {
  startWithTimeout(500);
  onRing({4, 4, 4096}, [&](uint32_t rank, Ring &ring) -> std::string {
    ring.start(streamOf(rank));
    ring.expect(occlPreadyOn(ring.send, 0, 1, streamOf(rank)), "occlPreadyOn");
    ring.expect(occlPwaitOn(ring.send, streamOf(rank)), "occlPwaitOn");
    const std::string why = failureAfter(rank);
    return why.find("partition 2 has not been marked ready") != std::string::npos ? "" : why;
  });
}

TEST_F(Parts, SidesThatDisagreeAreNamed) {
  onRing({4, 4, 8192}, [&](uint32_t rank, Ring &ring) -> std::string {
    ring.free();
    ring.make({4, 4, rank == 0 ? 4096u : 8192u});
    ring.start(streamOf(rank));
    ring.produce(streamOf(rank), 1, Marker::Block);
    ring.expect(occlPwaitOn(ring.receive, streamOf(rank)), "occlPwaitOn");
    const std::string why = failureAfter(rank);
    return n() == 1 || (why.find("4 partitions of 1024") != std::string::npos &&
                        why.find("4 partitions of 2048") != std::string::npos)
               ? ""
               : why;
  });
}

TEST_F(Parts, ARankThatHasFreedItsSideTakesNoPart) {
  if (n() < 2)
    GTEST_SKIP() << "needs two ranks";
  std::barrier met(static_cast<ptrdiff_t>(n()));
  onRing({2, 2, 4096}, [&](uint32_t rank, Ring &ring) -> std::string {
    ring.start(streamOf(rank));
    ring.produce(streamOf(rank), 1, Marker::Block);
    ring.waitAndCheck(streamOf(rank), 1);
    std::string wrong = ring.finish(streamOf(rank));
    met.arrive_and_wait();
    if (rank != 0)
      ring.free();
    met.arrive_and_wait();
    if (rank != 0 || !wrong.empty())
      return wrong;
    ring.start(streamOf(rank));
    ring.expect(occlPwaitOn(ring.receive, streamOf(rank)), "occlPwaitOn");
    const std::string why = failureAfter(rank);
    return why.find("has freed its request") != std::string::npos ? "" : why;
  });
}

} // namespace
} // namespace occl::gpu_test
