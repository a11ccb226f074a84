// Sends, receives, groups and collectives with counts by rank as work of streams on devices. Ranks
// are threads, on as many devices as there are. Skipped where there is no device.
#include "test/gpu/transfer/transfers.h"

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

TEST_F(Transfers, RandomGroups) {
  std::mt19937_64 random(seed);
  for (uint32_t round = 0; round < 12; ++round) {
    Plan plan(n());
    for (uint64_t i = 0, number = 1 + random() % 60; i < number; ++i) {
      const uint64_t largest = uint64_t{1} << random() % 23;
      plan.add(random() % n(), random() % n(), random() % 8 == 0 ? 0 : random() % largest,
               random() % 3 == 0 ? random() % 16 : 0);
    }
    runGroups(plan, 3);
  }
}

TEST_F(Transfers, ThousandsInAGroup) {
  std::mt19937_64 random(seed);
  Plan plan(n());
  for (uint32_t i = 0; i < 10'000; ++i)
    plan.add(random() % n(), random() % n(), random() % 5 == 0 ? 0 : random() % 600, i % 16);
  runGroups(plan, 3);
}

/// Around the sizes from which transfers are cut, sent or executed in another way; each a group, so
/// that each way is taken.
TEST_F(Transfers, SizesFromWhichTransfersGoOtherwise) {
  Plan plan(n());
  for (const uint64_t bytes : {4096u, 16384u, 32768u, 65536u, 262144u, 1u << 21, 8u << 20})
    for (const int more : {-1, 0, 1, 8})
      for (uint32_t from = 0; from < n(); ++from)
        plan.add(from, (from + 1) % n(), bytes + static_cast<uint64_t>(more), plan.sent.size() % 9);
  runGroupsOf(n(), plan, 3);
}

/// Groups of all sizes behind each other, which the host does not wait for.
TEST_F(Transfers, GroupsFollowOneAnother) {
  std::mt19937_64 random(seed);
  Plan plan(n());
  for (uint32_t i = 0; i < 600; ++i) {
    const uint64_t largest = uint64_t{1} << random() % 22;
    const auto from = static_cast<uint32_t>(random() % n());
    plan.add(from, static_cast<uint32_t>((from + random() % 2) % n()), random() % largest,
             random() % 16);
  }
  runGroupsOf(6, plan, 4);
}

/// Both sides in a group, which is copied; then each in a group of its own; then both, behind one
/// that has not been received.
TEST_F(Transfers, ToItself) {
  Plan plan(n());
  for (const uint64_t bytes : {0u, 100u, 70'000u, 3u << 20, 200'000u, 60'000u, 60'000u, 60'000u})
    for (uint32_t rank = 0; rank < n(); ++rank)
      plan.add(rank, rank, bytes + rank, bytes % 7);
  const auto all = buffersFor(plan);
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    const auto both = [&](size_t first, size_t number) {
      return callPart(buffers, first * n(), number * n());
    };
    const auto alone = [&](size_t which, bool isSend) {
      return buffers.call(plan.sent[which * n() + rank], isSend, comms[rank], streamOf(rank));
    };
    std::string wrong;
    for (uint64_t round = 0; round < 3 && wrong.empty(); ++round) {
      buffers.prepare(round, streamOf(rank));
      for (const std::string &call :
           {both(0, 1), both(1, 3), alone(4, true), alone(4, false), alone(5, true)})
        wrong += call;
      // Of these the receive is that of the send before.
      occlGroupStart();
      wrong += alone(5, false);
      wrong += alone(6, true);
      occlGroupEnd();
      wrong += alone(6, false);
      wrong += both(7, 1);
      if (wrong.empty())
        wrong = buffers.check(round, streamOf(rank));
    }
    return wrong;
  });
}

TEST_F(Transfers, LargeOnesToAll) {
  Plan plan(n());
  for (uint32_t from = 0; from < n(); ++from)
    for (uint32_t to = 0; to < n(); ++to)
      plan.add(from, to, 20 * kMiB + from * 16 + to, from == 0 ? 4 : 0);
  runGroups(plan, 2);
}

/// Each side sends before it receives: what fits into the pair's memory does not wait.
TEST_F(Transfers, SendsThatFitEndWithoutReceivers) {
  Plan plan(n());
  for (uint32_t from = 0; from < n(); ++from)
    for (uint32_t to = 0; to < n(); ++to)
      for (const uint64_t bytes : {0, 8, 1000, 65536, 100'000})
        plan.add(from, to, bytes);
  const auto all = buffersFor(plan);
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    std::string wrong;
    for (uint64_t round = 0; round < 20 && wrong.empty(); ++round) {
      buffers.prepare(round, streamOf(rank));
      for (const bool isSend : {true, false})
        for (const Sent &one : plan.sent)
          if ((isSend ? one.from : one.to) == rank && wrong.empty())
            wrong = buffers.call(one, isSend, comms[rank], streamOf(rank));
      if (wrong.empty())
        wrong = buffers.check(round, streamOf(rank));
    }
    return wrong;
  });
}

/// Small groups, whose transfers travel with the kernel, and large ones; eager calls in between.
TEST_F(Transfers, AreCapturedAndReplayed) {
  for (const uint32_t number : {1u, 200u}) {
    Plan plan(n());
    for (uint32_t i = 0; i < number; ++i)
      for (uint32_t from = 0; from < n(); ++from)
        plan.add(from, (from + 1 + i) % n(), 100 + 3000 * (i % 50));
    const auto all = buffersFor(plan);
    std::barrier<> meet(n()); // making and destroying graphs may wait for what runs
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937 random(seed + rank);
      Buffers &buffers = *all[rank];
      cudaStream_t stream = streamOf(rank);
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t replayed[2] = {};
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      occlGroupStart();
      std::string wrong = callAll(buffers, stream, random);
      if (occlGroupEnd() != occlSuccess)
        wrong = failed("occlGroupEnd");
      if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || !wrong.empty())
        return "capture: " + wrong;
      for (cudaGraphExec_t &each : replayed)
        if (cudaGraphInstantiate(&each, graph, 0) != cudaSuccess)
          return "the graph cannot be instantiated";
      cudaGraphDestroy(graph); // what it lists stays for those that were made of it
      meet.arrive_and_wait();
      for (uint64_t round = 0; round < 12 && wrong.empty(); ++round) {
        buffers.prepare(round, stream);
        if (round % 3 == 2) {
          occlGroupStart();
          wrong = callAll(buffers, stream, random);
          if (occlGroupEnd() != occlSuccess)
            wrong = failed("occlGroupEnd");
        } else {
          cudaGraphLaunch(replayed[round % 2], stream);
        }
        if (wrong.empty())
          wrong = buffers.check(round, stream);
      }
      meet.arrive_and_wait();
      for (cudaGraphExec_t each : replayed)
        cudaGraphExecDestroy(each);
      return wrong;
    });
  }
}

/// With counts of every pair, 0 among them.
TEST_F(Transfers, CollectivesWithCountsByRank) {
  const auto countOf = [](uint32_t from, uint32_t to) -> uint64_t {
    return (from * 5 + to * 3) % 7 * 1111;
  };
  constexpr uint64_t kBytes = 400'000;
  const auto sources = memory(kBytes), places = memory(kBytes), alls = memory(kBytes),
             owns = memory(kBytes);
  inThreads([&](uint32_t rank) -> std::string {
    std::vector<uint64_t> sendCounts(n()), sendAt(n()), receiveCounts(n()), receiveAt(n());
    uint64_t sent = 0, received = 0;
    for (uint32_t q = 0; q < n(); ++q) {
      sendCounts[q] = countOf(rank, q);
      receiveCounts[q] = countOf(q, rank);
      sendAt[q] = std::exchange(sent, sent + sendCounts[q]);
      receiveAt[q] = std::exchange(received, received + receiveCounts[q]);
    }
    const auto valueOf = [](uint32_t from, uint32_t to, uint64_t i) {
      return static_cast<int32_t>(from * 1'000'000 + to * 100'000 + i);
    };
    std::vector<int32_t> data(sent), got(received);
    for (uint32_t q = 0; q < n(); ++q)
      for (uint64_t i = 0; i < sendCounts[q]; ++i)
        data[sendAt[q] + i] = valueOf(rank, q, i);
    DeviceBuffer &source = *sources[rank], &place = *places[rank], &all = *alls[rank];
    cudaMemcpy(source.get(), data.data(), sent * 4, cudaMemcpyHostToDevice);
    cudaStream_t stream = streamOf(rank);
    if (occlAllToAllv(source.get(), sendCounts.data(), sendAt.data(), place.get(),
                      receiveCounts.data(), receiveAt.data(), occlInt32, comms[rank],
                      stream) != occlSuccess)
      return failed("occlAllToAllv");
    cudaStreamSynchronize(stream);
    cudaMemcpy(got.data(), place.get(), received * 4, cudaMemcpyDeviceToHost);
    for (uint32_t q = 0; q < n(); ++q)
      for (uint64_t i = 0; i < receiveCounts[q]; ++i)
        if (got[receiveAt[q] + i] != valueOf(q, rank, i))
          return "occlAllToAllv: element " + std::to_string(i) + " of rank " + std::to_string(q);
    // Gathered everywhere, then on the last rank, from where it is scattered again.
    std::vector<uint64_t> counts(n()), at(n());
    for (uint32_t q = 0; q < n(); ++q) {
      counts[q] = 100 + 1000 * q;
      at[q] = q * 10'000;
    }
    std::vector<int32_t> own(counts[rank]), gathered(n() * 10'000);
    for (uint64_t i = 0; i < own.size(); ++i)
      own[i] = valueOf(rank, 9, i);
    DeviceBuffer &mine = *owns[rank];
    const uint32_t root = n() - 1;
    for (const bool everywhere : {true, false}) {
      cudaMemcpy(mine.get(), own.data(), own.size() * 4, cudaMemcpyHostToDevice);
      cudaMemsetAsync(all.get(), 0, gathered.size() * 4, stream);
      const occlResult_t result =
          everywhere ? occlAllGatherv(mine.get(), counts[rank], all.get(), counts.data(), at.data(),
                                      occlInt32, comms[rank], stream)
                     : occlGatherv(mine.get(), counts[rank], all.get(), counts.data(), at.data(),
                                   occlInt32, root, comms[rank], stream);
      if (result != occlSuccess)
        return failed("occlGatherv");
      cudaStreamSynchronize(stream);
      cudaMemcpy(gathered.data(), all.get(), gathered.size() * 4, cudaMemcpyDeviceToHost);
      for (uint32_t q = 0; (everywhere || rank == root) && q < n(); ++q)
        for (uint64_t i = 0; i < counts[q]; ++i)
          if (gathered[at[q] + i] != valueOf(q, 9, i))
            return "gathered: element " + std::to_string(i) + " of rank " + std::to_string(q);
    }
    cudaMemsetAsync(mine.get(), 0, own.size() * 4, stream);
    if (occlScatterv(all.get(), counts.data(), at.data(), mine.get(), counts[rank], occlInt32, root,
                     comms[rank], stream) != occlSuccess)
      return failed("occlScatterv");
    std::vector<int32_t> back(own.size());
    cudaStreamSynchronize(stream);
    cudaMemcpy(back.data(), mine.get(), back.size() * 4, cudaMemcpyDeviceToHost);
    return back == own ? "" : "occlScatterv is wrong";
  });
}

TEST_F(Transfers, OtherCountsOrTypesFailOnAllRanks) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  std::vector<std::string> texts(n());
  const auto buffers = memory(4096);
  inThreads([&](uint32_t rank) -> std::string {
    const DeviceBuffer &buffer = *buffers[rank];
    if (rank == 0)
      occlSend(buffer.get(), 100, occlFloat32, 1, comms[rank], streamOf(rank));
    if (rank == 1)
      occlRecv(buffer.get(), 101, occlInt32, 0, comms[rank], streamOf(rank));
    texts[rank] = failureOf(rank);
    return "";
  });
  for (const std::string &text : texts) {
    EXPECT_NE(text.find("sends 100 elements of type float32"), std::string::npos) << text;
    EXPECT_NE(text.find("receives 101 elements of type int32"), std::string::npos) << text;
  }
}

/// Also where they differ in how they go, and how many pieces they are.
TEST_F(Transfers, OtherCountsFailWhateverTheSizes) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  const auto buffers = memory(2 * kMiB);
  const std::pair<uint64_t, uint64_t> sizes[] = {{0, 5},
                                                 {5, 0},
                                                 {100, kMiB},
                                                 {kMiB, 100},
                                                 {10'000, 60'000},
                                                 {300'000, 70'000},
                                                 {70'000, 300'000},
                                                 {kMiB, 2 * kMiB}};
  for (const auto &[sent, received] : sizes) {
    startWithTimeout(0);
    std::vector<std::string> texts(n());
    inThreads([&](uint32_t rank) -> std::string {
      const DeviceBuffer &buffer = *buffers[rank];
      if (rank == 0)
        occlSend(buffer.get(), sent, occlUint8, 1, comms[rank], streamOf(rank));
      if (rank == 1)
        occlRecv(buffer.get(), received, occlUint8, 0, comms[rank], streamOf(rank));
      texts[rank] = failureOf(rank);
      return "";
    });
    for (const std::string &text : texts) {
      EXPECT_NE(text.find("sends " + std::to_string(sent) + " elements"), std::string::npos)
          << text;
      EXPECT_NE(text.find("receives " + std::to_string(received)), std::string::npos) << text;
    }
  }
}

TEST_F(Transfers, DeadlinesNameTheRank) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  startWithTimeout(500);
  std::vector<std::string> texts(n());
  const auto buffers = memory(64 * kMiB);
  inThreads([&](uint32_t rank) -> std::string {
    const DeviceBuffer &buffer = *buffers[rank];
    if (rank == 0)
      occlRecv(buffer.get(), 100, occlFloat32, 1, comms[rank], streamOf(rank));
    texts[rank] = failureOf(rank);
    return "";
  });
  for (const std::string &text : texts)
    EXPECT_NE(text.find("transfer 0 from rank 1: it waits for rank 1 to send"), std::string::npos)
        << text;
}

TEST_F(Transfers, AbortEndsWhatWaits) {
  const auto buffers = memory(64 * kMiB);
  inThreads([&](uint32_t rank) -> std::string {
    const DeviceBuffer &buffer = *buffers[rank];
    if (occlRecv(buffer.get(), 16 * kMiB, occlFloat32, (rank + 1) % n(), comms[rank],
                 streamOf(rank)) != occlSuccess)
      return failed("occlRecv");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    occlCommAbort(comms[rank]);
    return onDevices[rank]->synchronize();
  });
}

TEST_F(Transfers, RefusesWhatItCannotDo) {
  const auto buffers = memory(4096);
  inThreads([&](uint32_t rank) -> std::string {
    const DeviceBuffer &buffer = *buffers[rank];
    std::vector<char> onHost(4096);
    const auto isRefused = [&](occlResult_t result, const char *text) -> std::string {
      const std::string said = occlGetLastError();
      return result == occlInvalidArgument && said.find(text) != std::string::npos
                 ? ""
                 : "result " + std::to_string(result) + ": " + said;
    };
    std::string wrong =
        isRefused(occlSend(buffer.get(), 1, occlUint8, n(), comms[rank], streamOf(rank)), "peer");
    if (wrong.empty())
      wrong = isRefused(occlSend(nullptr, 1, occlUint8, 0, comms[rank], streamOf(rank)), "NULL");
    if (wrong.empty())
      wrong = isRefused(occlRecv(onHost.data(), 64, occlUint8, 0, comms[rank], streamOf(rank)),
                        "device");
    // One of a group that is captured, and one that is not.
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal);
    occlGroupStart();
    occlSend(buffer.get(), 64, occlUint8, rank, comms[rank], streamOf(rank));
    occlRecv(buffer.get() + 64, 64, occlUint8, rank, comms[rank], other);
    if (wrong.empty())
      wrong = isRefused(occlGroupEnd(), "captured");
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(other, &graph);
    if (graph)
      cudaGraphDestroy(graph);
    cudaStreamDestroy(other);
    return wrong;
  });
  Plan plan(n()); // nothing of it has a number
  plan.add(0, n() - 1, 5000);
  runGroups(plan, 2);
}

} // namespace
} // namespace occl::gpu_test
