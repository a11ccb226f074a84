// Partitioned collectives on devices: marks in kernels and in streams, arrivals in kernels, rounds,
// conflicting orders, misuse. Ranks are threads. Skipped where there is no device.
#include "runtime/api/occl_insight.h"
#include "test/gpu/harness/ranks_on_devices.h"
#include "test/gpu/harness/user_kernels.h"
#include "test/gpu/partitioned/collective_request.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

using Requests = std::vector<std::unique_ptr<CollectiveRequest>>;

class PartitionedCollectives : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (!IsSkipped())
      startWithTimeout(20000);
  }
  void TearDown() override {
    all.clear();
    RanksOnDevices::TearDown();
  }
  /// body(rank, requests) on a thread for each rank, "" or what is wrong. All are made before.
  void onRequests(const std::vector<CollectiveShape> &shapes,
                  const std::function<std::string(uint32_t, Requests &)> &body) {
    all.clear();
    all.resize(n());
    for (uint32_t rank = 0; rank < n(); ++rank) {
      cudaSetDevice(static_cast<int>(rank % devices));
      EXPECT_EQ(loadUserKernels(), cudaSuccess);
      for (const CollectiveShape &shape : shapes)
        all[rank].push_back(std::make_unique<CollectiveRequest>(comms[rank], rank, n(), shape));
    }
    inThreads([&](uint32_t rank) { return body(rank, all[rank]); });
  }
  void onRequest(const CollectiveShape &shape,
                 const std::function<std::string(uint32_t, CollectiveRequest &)> &body) {
    onRequests({shape},
               [&](uint32_t rank, Requests &requests) { return body(rank, *requests[0]); });
  }
  /// So many epochs, checked at the end of each.
  std::string run(uint32_t rank, CollectiveRequest &request, int epochs) {
    for (int e = 0; e < epochs && request.wrong().empty(); ++e) {
      request.start(streamOf(rank));
      request.produceAll(streamOf(rank), 2 * static_cast<uint64_t>(e) + 1);
      request.wait(streamOf(rank));
      request.check(streamOf(rank));
    }
    return request.wrong();
  }

  std::vector<Requests> all;
};

constexpr occlKind_t kAllKinds[] = {occlKindAllReduce, occlKindAllGather, occlKindReduceScatter,
                                    occlKindAllToAll,  occlKindBroadcast, occlKindReduce,
                                    occlKindGather,    occlKindScatter};

/// Numbers of partitions that do not divide each other nor the count, and more than there are
/// words.
TEST_F(PartitionedCollectives, AllKindsOfAnyPartitions) {
  for (occlKind_t kind : kAllKinds) {
    std::vector<CollectiveShape> shapes;
    const bool hasRoot = kind == occlKindBroadcast || kind == occlKindReduce ||
                         kind == occlKindGather || kind == occlKindScatter;
    for (uint64_t count : {1, 999, 100'003})
      shapes.push_back({kind, count, 8, 5, 0, false, hasRoot ? n() - 1 : 0});
    shapes.push_back({kind, 1'200'000, 64, 3, 0, false, 0});
    shapes.push_back({kind, 5, 16, 7, 2, false, 0});
    onRequests(shapes, [&](uint32_t rank, Requests &requests) -> std::string {
      for (auto &request : requests)
        if (std::string wrong = run(rank, *request, 3); !wrong.empty())
          return wrong;
      std::string wrong;
      for (auto &request : requests) {
        request->free();
        wrong += request->wrong();
      }
      return wrong;
    });
    if (HasFailure())
      return;
  }
}

/// Marks that come as work of the stream, in place.
TEST_F(PartitionedCollectives, InPlaceByMarksOfStreams) {
  onRequests(
      {{occlKindAllReduce, 300'000, 6, 4, 4, true}, {occlKindAllGather, 50'000, 3, 8, 2, true}},
      [&](uint32_t rank, Requests &requests) -> std::string {
        const cudaStream_t stream = streamOf(rank);
        for (auto &request : requests)
          for (int e = 0; e < 4 && request->wrong().empty(); ++e) {
            request->start(stream);
            const auto last = static_cast<int64_t>(request->in().partitions) - 1;
            // Made whole by a kernel that knows nothing of partitions.
            request->expect(
                launchMakeWords(stream, request->in(), request->epoch * 1009 + rank * 17),
                "launching");
            request->expect(occlPreadyOn(request->part, 1, last, stream), "occlPreadyOn");
            request->expect(occlPreadyOn(request->part, 0, 0, stream), "occlPreadyOn");
            request->wait(stream);
            request->check(stream);
            if (!request->wrong().empty())
              return request->wrong();
          }
        return "";
      });
}

/// Rounds whose partitions are marked arrive, whatever becomes of the others: here the rest is made
/// only when the host has seen them.
TEST_F(PartitionedCollectives, MarkedRoundsArriveBeforeTheOthersAreMade) {
  onRequest({occlKindAllReduce, 1 << 20, 16, 8, 2}, [&](uint32_t rank, CollectiveRequest &request) {
    const cudaStream_t stream = streamOf(rank);
    for (int e = 0; e < 5 && request.wrong().empty(); ++e) {
      request.start(stream);
      request.produce(stream, 0, 8, 3);
      request.take(stream, 0, 3); // rounds begin near partitions
      request.checkSeen(stream, 0, 3);
      request.produce(stream, 8, 16, 3);
      request.wait(stream);
      request.check(stream);
    }
    return request.wrong();
  });
}

/// A kernel in a second stream takes each partition as it comes.
TEST_F(PartitionedCollectives, AConsumerBesideTheProducer) {
  onRequest({occlKindAllReduce, 700'000, 40, 24}, [&](uint32_t rank, CollectiveRequest &request) {
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEvent_t begun = nullptr;
    cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
    for (int e = 0; e < 20 && request.wrong().empty(); ++e) {
      request.start(streamOf(rank));
      cudaEventRecord(begun, streamOf(rank));
      cudaStreamWaitEvent(other, begun, 0);
      request.take(other, 0, 24);
      request.produceAll(streamOf(rank), 7);
      request.wait(streamOf(rank));
      request.checkSeen(other, 0, 24);
      request.check(streamOf(rank));
    }
    cudaStreamDestroy(other);
    cudaEventDestroy(begun);
    return request.wrong();
  });
}

/// Each rank starts them in an order of its own, all in flight at a time, and another one each
/// time.
TEST_F(PartitionedCollectives, ConflictingOrders) {
  std::vector<CollectiveShape> shapes;
  // Ranks in one process share its connections to the device.
  for (uint64_t i = 0; i < (n() > 2 ? 2 : 6); ++i)
    shapes.push_back({kAllKinds[i % 4], 1000 + 40'000 * i, 4 + static_cast<int64_t>(i), 3});
  onRequests(shapes, [&](uint32_t rank, Requests &requests) -> std::string {
    std::vector<cudaStream_t> streams(requests.size());
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::string wrong;
    for (size_t e = 0; e < 20 && wrong.empty(); ++e) {
      for (size_t k = 0; k < requests.size(); ++k) {
        const size_t i =
            (k * (rank % 2 == 0 ? 1 : requests.size() - 1) + rank + e) % requests.size();
        requests[i]->start(streams[i]);
        requests[i]->produceAll(streams[i], 1);
      }
      for (size_t i = 0; i < requests.size(); ++i)
        requests[i]->wait(streams[i]);
      for (size_t i = 0; i < requests.size() && wrong.empty(); ++i) {
        requests[i]->check(streams[i]);
        wrong = requests[i]->wrong();
      }
    }
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    return wrong;
  });
}

/// What follows in the stream is there before the first epoch has ended.
TEST_F(PartitionedCollectives, EpochsOneBehindTheOther) {
  onRequest({occlKindAllReduce, 60'000, 9, 2}, [&](uint32_t rank, CollectiveRequest &request) {
    for (int e = 0; e < 30; ++e) {
      request.start(streamOf(rank));
      request.produceAll(streamOf(rank), 2);
      request.wait(streamOf(rank));
    }
    request.check(streamOf(rank));
    return request.wrong();
  });
}

/// Of requests that are freed as soon as their streams have ended nothing is known any more.
TEST_F(PartitionedCollectives, MadeAndFreedAgainAndAgain) {
  std::vector<CollectiveShape> shapes;
  for (size_t i = 0; i < 4; ++i)
    shapes.push_back({kAllKinds[i], 1000 + i, 5, 2});
  onRequests(shapes, [&](uint32_t rank, Requests &requests) -> std::string {
    std::string wrong;
    for (size_t i = 0; i < 150 && wrong.empty(); ++i) {
      CollectiveRequest &request = *requests[i % 3]; // the last one is kept
      wrong = run(rank, request, 1);
      request.free();
      request.make();
      wrong += request.wrong();
      if (i % 50 == 0)
        wrong += run(rank, *requests[3], 1);
    }
    size_t known = 0;
    EXPECT_EQ(occlCommGetCollectives(comms[rank], nullptr, 0, &known), occlSuccess);
    EXPECT_LE(known, requests.size()) << "rank " << rank;
    return wrong;
  });
}

/// Nobody stays on the device for calls alone, but for kernels that wait.
TEST_F(PartitionedCollectives, InStrictMode) {
  occlConfig_t config = smallConfig();
  config.strict = 1;
  config.timeoutMs = 20000;
  start(n(), config);
  onRequest({occlKindAllReduce, 200'000, 8, 6, 2}, [&](uint32_t rank, CollectiveRequest &request) {
    const cudaStream_t stream = streamOf(rank);
    for (int e = 0; e < 10 && request.wrong().empty(); ++e) {
      request.start(stream);
      request.expect(launchDelay(stream, 3), "waiting");
      request.produceAll(stream, 3);
      request.take(stream, 0, 6);
      request.wait(stream);
      request.checkSeen(stream, 0, 6);
    }
    return request.wrong();
  });
}

/// The producer needs every multiprocessor that it can get, and the others are late.
TEST_F(PartitionedCollectives, ALateRank) {
  onRequest({occlKindAllReduce, 500'000, 10, 10}, [&](uint32_t rank, CollectiveRequest &request) {
    for (int e = 0; e < 3 && request.wrong().empty(); ++e) {
      if (rank == 0)
        request.expect(launchDelay(streamOf(rank), 40), "waiting");
      request.start(streamOf(rank));
      if (rank != 0)
        request.expect(launchDelay(streamOf(rank), 10), "waiting");
      request.produceAll(streamOf(rank), 3);
      request.wait(streamOf(rank));
      request.check(streamOf(rank));
    }
    return request.wrong();
  });
}

TEST_F(PartitionedCollectives, RefusesWhatCannotBe) {
  onRequest({occlKindAllReduce, 1000, 4, 4}, [&](uint32_t rank, CollectiveRequest &request) {
    const cudaStream_t stream = streamOf(rank);
    const auto refuses = [&](occlResult_t result, const char *text) {
      if (result != occlInvalidArgument ||
          std::string(occlGetLastError()).find(text) == std::string::npos)
        request.expect(static_cast<int>(cudaErrorUnknown),
                       (std::string("no '") + text + "' but " + occlGetLastError()).c_str());
    };
    refuses(occlPwaitOn(request.part, stream), "has no epoch");
    refuses(occlPprepareOn(request.part, stream), "only sends and receives");
    refuses(occlPreadyOn(request.part, 2, 4, stream), "there are no partitions 2 to 4 of 4");
    refuses(occlPstart(request.part), "occlPstartOn");
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    refuses(occlPstartOn(request.part, stream), "captured");
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    request.start(stream);
    refuses(occlPstartOn(request.part, stream), "epoch 1, has no wait yet");
    refuses(occlPfree(request.part), "epoch 1, has not ended");
    request.produceAll(stream);
    request.wait(stream);
    request.check(stream);
    float factor = 2;
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = request.in().data;
    call.recvBuffer = request.out().data;
    call.count = 1000;
    call.scalar = &factor;
    occlPart_t none = nullptr;
    refuses(occlPcollInit(comms[rank], &call, 4, 4, nullptr, &none), "scalar");
    call.scalar = nullptr;
    refuses(occlPcollInit(comms[rank], &call, 1 << 17, 4, nullptr, &none), "too many");
    refuses(occlPcollInit(comms[rank], &call, 0, 4, nullptr, &none), "0 partitions of the input");
    request.free();
    return request.wrong();
  });
}

/// What is said of a side that a rank does not have counts for nothing.
TEST_F(PartitionedCollectives, AreNotAskedForPartitionsOfWhatThereIsNot) {
  cudaSetDevice(0);
  const auto make = [&](uint32_t rank, occlKind_t kind, int64_t sent, int64_t received) {
    cudaSetDevice(static_cast<int>(rank % devices));
    const DeviceBuffer in(400), out(400);
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = kind;
    call.sendBuffer = in.get();
    call.recvBuffer = out.get();
    call.count = 100;
    occlPart_t part = nullptr;
    EXPECT_EQ(occlPcollInit(comms[rank], &call, sent, received, nullptr, &part), occlSuccess)
        << occlGetLastError();
    EXPECT_EQ(occlPfree(part), occlSuccess) << occlGetLastError();
  };
  for (uint32_t rank = 0; rank < n(); ++rank) {
    make(rank, occlKindBroadcast, rank == 0 ? 4 : -1, 4);
    make(rank, occlKindReduce, 4, rank == 0 ? 4 : 1 << 17);
  }
}

/// One that a rank alone has no memory for keeps its number until it is made.
TEST_F(PartitionedCollectives, OneThatARankLacksMemoryForIsMadeAgainFirst) {
  const CollectiveShape shape = {occlKindAllReduce, 4096, 5, 3};
  cudaSetDevice(0);
  DeviceBuffer in(4 * 4096), out(4 * 4096);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = shape.kind;
  call.sendBuffer = in.get();
  call.recvBuffer = out.get();
  call.count = shape.count;
  call.dataType = occlUint32;
  call.op = occlSum;
  const auto refuses = [&](occlResult_t result, const char *text) {
    occlPart_t none = nullptr;
    EXPECT_EQ(occlPcollInit(comms[0], &call, 5, 3, nullptr, &none), result);
    EXPECT_NE(std::string(occlGetLastError()).find(text), std::string::npos) << occlGetLastError();
  };
  std::vector<void *> taken;
  for (size_t bytes = size_t{256} << 20; bytes >= 128;) {
    void *memory = nullptr;
    if (occlMemAlloc(comms[0], bytes, &memory) == occlSuccess)
      taken.push_back(memory);
    else
      bytes /= 2;
  }
  refuses(occlAgain, "request 0: there is no room");
  refuses(occlAgain, "again, before any other");
  for (void *memory : taken)
    ASSERT_EQ(occlMemFree(comms[0], memory), occlSuccess) << occlGetLastError();
  onRequests({shape, {occlKindAllReduce, 100, 1, 1}},
             [&](uint32_t rank, Requests &requests) -> std::string {
               for (auto &request : requests)
                 if (std::string wrong = run(rank, *request, 2); !wrong.empty())
                   return wrong;
               return "";
             });
}

TEST_F(PartitionedCollectives, NeedPreemption) {
  occlConfig_t config = smallConfig();
  config.preemption = 2; // off
  start(n(), config);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindAllReduce;
  cudaSetDevice(0);
  DeviceBuffer in(400), out(400);
  call.sendBuffer = in.get();
  call.recvBuffer = out.get();
  call.count = 100;
  occlPart_t part = nullptr;
  EXPECT_EQ(occlPcollInit(comms[0], &call, 4, 4, nullptr, &part), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("preemption"), std::string::npos);
}

class CollectiveMisused : public PartitionedCollectives,
                          public testing::WithParamInterface<Misused> {};

/// Also one that keeps the epoch from ending, and without a deadline.
TEST_P(CollectiveMisused, EndsTheCommunicatorWithAText) {
  const Misused how = GetParam();
  startWithTimeout(0);
  onRequest({occlKindAllReduce, 4096, 4, 4}, [&](uint32_t rank, CollectiveRequest &request) {
    const cudaStream_t stream = streamOf(rank);
    request.start(stream);
    if (rank == 0) {
      if (how == Misused::TwiceAfterAll || how == Misused::WithoutEpoch)
        request.produceAll(stream);
      if (how == Misused::WithoutEpoch)
        request.wait(stream);
      request.expect(launchMisuse(stream, request.handle(), how, 3), "launching");
      if (how == Misused::WithoutEpoch)
        request.expect(occlPstartOn(request.part, stream), "occlPstartOn");
      request.expect(occlPwaitOn(request.part, stream), "occlPwaitOn");
    } else {
      request.produceAll(stream);
      request.wait(stream);
    }
    if (how == Misused::WithoutEpoch && rank != 0)
      return std::string();
    const std::string why = failureAfter(rank);
    const char *const want = how == Misused::OutOfRange     ? "there is not: 4"
                             : how == Misused::WithoutEpoch ? "without an epoch: 0"
                                                            : "twice: 0";
    return why.find(want) != std::string::npos && why.find("thread block 3") != std::string::npos &&
                   why.find("partitioned allreduce, request 0") != std::string::npos
               ? std::string()
               : "rank " + std::to_string(rank) + " says: " + why;
  });
}
INSTANTIATE_TEST_SUITE_P(Each, CollectiveMisused,
                         testing::Values(Misused::OutOfRange, Misused::Twice,
                                         Misused::TwiceAfterAll, Misused::WithoutEpoch));

TEST_F(PartitionedCollectives, AMissingMarkIsNamedAtTheDeadline) {
  startWithTimeout(500);
  onRequest({occlKindAllReduce, 4096, 4, 4}, [&](uint32_t rank, CollectiveRequest &request) {
    const cudaStream_t stream = streamOf(rank);
    request.start(stream);
    request.produce(stream, 0, 2);
    request.produce(stream, rank == 0 ? 3 : 2, 4);
    request.wait(stream);
    const std::string why = failureAfter(rank);
    // Whoever notices it first says it for all; rank 0 is asked what it waits for.
    return why.find("request 0, epoch 1, did not end on rank") != std::string::npos &&
                   (why.find("on rank 0 before") == std::string::npos ||
                    why.find("to mark partition 2 as ready") != std::string::npos)
               ? std::string()
               : "rank " + std::to_string(rank) + " says: " + why;
  });
}

TEST_F(PartitionedCollectives, RoundsThatDifferAreNamed) {
  if (n() < 2)
    GTEST_SKIP() << "needs two ranks";
  all.resize(n());
  inThreads([&](uint32_t rank) -> std::string {
    cudaSetDevice(static_cast<int>(rank % devices));
    CollectiveRequest request(comms[rank], rank, n(),
                              {occlKindAllReduce, 1 << 14, 4, 4, rank == 0 ? 2u : 4u});
    request.start(streamOf(rank));
    request.produceAll(streamOf(rank));
    const std::string why = failureAfter(rank);
    return why.find("partitioned request 0") != std::string::npos &&
                   why.find("with rounds 2") != std::string::npos &&
                   why.find("with rounds 4") != std::string::npos
               ? ""
               : "rank " + std::to_string(rank) + " says: " + why;
  });
}

} // namespace
} // namespace occl::gpu_test
