// Which transfers on devices wait for which: several streams, communicators, branches of captures,
// replays, crowded devices. Ranks are threads. Skipped where there is no device.
#include "test/gpu/transfer/transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

/// All ranks receive before they send, each direction in a stream of its own, and streams change.
TEST_F(Transfers, DirectionsInOtherStreamsDoNotWaitForEachOther) {
  Plan plan(n());
  for (uint32_t rank = 0; rank < n(); ++rank)
    plan.add(rank, (rank + 1) % n(), 9 * kMiB);
  const auto all = buffersFor(plan);
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    std::string wrong;
    for (uint64_t round = 0; round < 6 && wrong.empty(); ++round) {
      buffers.prepare(round, streamOf(rank));
      cudaStream_t streams[2] = {round % 2 ? other : streamOf(rank),
                                 round % 2 ? streamOf(rank) : other};
      for (const bool isSend : {false, true})
        for (const Sent &one : plan.sent)
          if ((isSend ? one.from : one.to) == rank && wrong.empty())
            wrong = buffers.call(one, isSend, comms[rank], streams[isSend]);
      cudaStreamSynchronize(other);
      if (wrong.empty())
        wrong = buffers.check(round, streamOf(rank));
    }
    cudaStreamDestroy(other);
    return wrong;
  });
}

/// The group begins behind what each of its streams has, and each goes on behind it.
TEST_F(Transfers, AGroupJoinsItsStreams) {
  Plan plan(n());
  for (uint32_t from = 0; from < n(); ++from)
    for (uint32_t to = 0; to < n(); ++to)
      plan.add(from, to, kMiB);
  const auto all = buffersFor(plan);
  const auto spoilts = memory(*std::ranges::max_element(plan.sendBytes));
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    DeviceBuffer &spoilt = *spoilts[rank];
    std::vector<cudaStream_t> streams(3);
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::string wrong;
    for (uint64_t round = 0; round < 10 && wrong.empty(); ++round) {
      buffers.prepare(round, streamOf(rank));
      // The data come late, in the last stream.
      cudaMemcpyAsync(spoilt.get(), buffers.source.get(), plan.sendBytes[rank],
                      cudaMemcpyDeviceToDevice, streamOf(rank));
      cudaStreamSynchronize(streamOf(rank));
      for (int i = 0; i < 200; ++i)
        cudaMemsetAsync(buffers.source.get(), i, plan.sendBytes[rank], streams[2]);
      cudaMemcpyAsync(buffers.source.get(), spoilt.get(), plan.sendBytes[rank],
                      cudaMemcpyDeviceToDevice, streams[2]);
      occlGroupStart();
      size_t next = 0;
      for (const Sent &one : plan.sent)
        for (const bool isSend : {true, false})
          if ((isSend ? one.from : one.to) == rank && wrong.empty())
            wrong = buffers.call(one, isSend, comms[rank], streams[next++ % 3]);
      if (occlGroupEnd() != occlSuccess)
        return failed("occlGroupEnd");
      if (wrong.empty())
        wrong = buffers.check(round, streams[round % 3]);
    }
    for (cudaStream_t stream : streams) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
    return wrong;
  });
}

TEST_F(Transfers, BesideCollectivesInOneStream) {
  Plan plan(n());
  for (uint32_t rank = 0; rank < n(); ++rank)
    plan.add(rank, (rank + 1) % n(), 70'000);
  constexpr uint64_t kCount = 5000;
  const auto all = buffersFor(plan);
  const auto sums = memory(kCount * 4);
  inThreads([&](uint32_t rank) -> std::string {
    std::mt19937 random(seed + rank);
    Buffers &buffers = *all[rank];
    DeviceBuffer &sum = *sums[rank];
    std::vector<float> ones(kCount, 1), got(kCount);
    cudaMemcpy(sum.get(), ones.data(), kCount * 4, cudaMemcpyHostToDevice);
    std::string wrong;
    float want = 1;
    for (uint64_t round = 0; round < 12 && wrong.empty(); ++round) {
      buffers.prepare(round, streamOf(rank));
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = occlKindAllReduce;
      call.sendBuffer = call.recvBuffer = sum.get();
      call.count = kCount;
      if (occlCall(comms[rank], &call, streamOf(rank)) != occlSuccess)
        return failed("occlCall");
      want *= static_cast<float>(n());
      occlGroupStart();
      wrong = callAll(buffers, streamOf(rank), random);
      if (occlGroupEnd() != occlSuccess)
        return failed("occlGroupEnd");
      if (wrong.empty())
        wrong = buffers.check(round, streamOf(rank));
      cudaMemcpy(got.data(), sum.get(), kCount * 4, cudaMemcpyDeviceToHost);
      if (got[0] != want || got[kCount - 1] != want)
        wrong = "the sum is wrong";
    }
    return wrong;
  });
}

/// Two communicators in one stream, which ranks name in different orders.
TEST_F(Transfers, CommunicatorsOfAGroupDoNotWaitForEachOther) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 256 << 20;
  startMany(2, numRanks(), config, {});
  Plan plan(n());
  for (uint32_t from = 0; from < n(); ++from)
    for (uint32_t i = 0; i < 2; ++i)
      plan.add(from, (from + 1) % n(), 6 * kMiB + i);
  const auto all = buffersFor(plan);
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    std::string wrong;
    for (uint64_t round = 0; round < 6 && wrong.empty(); ++round) {
      buffers.prepare(round, streamOf(rank));
      occlGroupStart();
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t which = (rank + i + round) % 2;
        for (const bool isSend : {true, false})
          for (size_t t = which; t < plan.sent.size(); t += 2)
            if ((isSend ? plan.sent[t].from : plan.sent[t].to) == rank && wrong.empty())
              wrong = buffers.call(plan.sent[t], isSend, commOf(rank, which), streamOf(rank));
      }
      if (occlGroupEnd() != occlSuccess)
        return failed("occlGroupEnd");
      if (wrong.empty())
        wrong = buffers.check(round, streamOf(rank));
    }
    return wrong;
  });
}

/// The first one's stream is late, the second one's is free: nothing but the order of the calls
/// says that the first one goes first. Later rounds find events, the first ones numbers.
TEST_F(Transfers, CallsOfOneDirectionKeepTheirOrderInSeveralStreams) {
  Plan plan(n());
  for (uint32_t from = 0; from < n(); ++from)
    for (uint32_t i = 0; i < 3; ++i)
      plan.add(from, (from + 1) % n(), i == 1 ? 20 * kMiB : 5000);
  const auto all = buffersFor(plan);
  const auto spoilts = memory(16 * kMiB);
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    std::vector<cudaStream_t> streams(4);
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::string wrong;
    for (uint64_t round = 0; round < 10 && wrong.empty(); ++round) {
      buffers.prepare(round, streamOf(rank));
      for (int i = 0; i < 100; ++i)
        cudaMemsetAsync(spoilts[rank]->get(), i, 16 * kMiB, streams[round % 4]);
      uint64_t next[2] = {round, round + rank};
      for (const Sent &one : plan.sent)
        for (const bool isSend : {true, false})
          if ((isSend ? one.from : one.to) == rank && wrong.empty())
            wrong = buffers.call(one, isSend, comms[rank], streams[next[isSend]++ % 4]);
      for (cudaStream_t stream : streams)
        cudaStreamSynchronize(stream);
      if (wrong.empty())
        wrong = buffers.check(round, streamOf(rank));
    }
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    return wrong;
  });
}

/// The first group in another stream has a direction that was used and one that was not.
TEST_F(Transfers, ADirectionInAnotherStreamBesideANewOne) {
  Plan plan(n());
  for (uint32_t i = 0; i < 2; ++i)
    for (uint32_t from = 0; from < n(); ++from)
      plan.add(from, (from + 1) % n(), 100'000 * (i + 1));
  const auto all = buffersFor(plan);
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    const auto call = [&](uint32_t round, bool isSend, cudaStream_t stream) {
      const uint32_t from = isSend ? rank : (rank + n() - 1) % n();
      return buffers.call(plan.sent[round * n() + from], isSend, comms[rank], stream);
    };
    buffers.prepare(0, streamOf(rank));
    std::string wrong = call(0, true, streamOf(rank));
    occlGroupStart();
    wrong += call(1, true, other) + call(0, false, other);
    occlGroupEnd();
    wrong += call(1, false, other);
    cudaStreamSynchronize(other);
    cudaStreamDestroy(other);
    return wrong.empty() ? buffers.check(0, streamOf(rank)) : wrong;
  });
}

/// A copy to oneself, whose stream is late, and one in another stream of what it copies.
TEST_F(Transfers, CopiesToOneselfKeepTheirOrderInSeveralStreams) {
  constexpr uint64_t kBytes = 50'000;
  const auto buffers = memory(3 * kBytes);
  inThreads([&](uint32_t rank) -> std::string {
    cudaStream_t streams[2] = {};
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    char *const memory = buffers[rank]->get();
    std::vector<char> got(kBytes);
    std::string wrong;
    for (int round = 1; round < 4 && wrong.empty(); ++round) {
      cudaMemset(memory, 0, 3 * kBytes);
      cudaMemset(memory, round, kBytes);
      cudaDeviceSynchronize();
      cudaLaunchHostFunc(
          streams[0], [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); },
          nullptr);
      for (uint32_t i = 0; i < 2; ++i) {
        occlGroupStart();
        occlSend(memory + i * kBytes, kBytes, occlUint8, rank, comms[rank], streams[i]);
        occlRecv(memory + (i + 1) * kBytes, kBytes, occlUint8, rank, comms[rank], streams[i]);
        if (occlGroupEnd() != occlSuccess)
          wrong = failed("occlGroupEnd");
      }
      for (cudaStream_t stream : streams)
        cudaStreamSynchronize(stream);
      cudaMemcpy(got.data(), memory + 2 * kBytes, kBytes, cudaMemcpyDeviceToHost);
      if (std::ranges::any_of(got, [&](char each) { return each != round; }))
        wrong = "the second copy went first in round " + std::to_string(round);
    }
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    return wrong;
  });
}

/// The same group on all ranks, of which some have heard of the failure and some have not.
TEST_F(Transfers, OfAGroupAFailedCommunicatorAloneIsLeftOut) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 256 << 20;
  startMany(2, numRanks(), config, {});
  Plan plan(n());
  for (uint32_t from = 0; from < n(); ++from)
    plan.add(from, (from + 1) % n(), 3 * kMiB);
  const auto all = buffersFor(plan), others = buffersFor(plan);
  inThreads([&](uint32_t rank) -> std::string {
    occlCommAbort(commOf(rank, 1));
    std::string wrong;
    for (uint64_t round = 0; round < 4 && wrong.empty(); ++round) {
      all[rank]->prepare(round, streamOf(rank));
      occlGroupStart();
      for (const Sent &one : plan.sent)
        for (const bool isSend : {true, false})
          for (const uint32_t which : {1u, 0u})
            if ((isSend ? one.from : one.to) == rank && wrong.empty())
              wrong = (which == 0 ? all : others)[rank]->call(one, isSend, commOf(rank, which),
                                                              streamOf(rank));
      if (occlGroupEnd() == occlSuccess)
        return "a group of a communicator that was aborted succeeds";
      if (wrong.empty())
        wrong = all[rank]->check(round, streamOf(rank));
    }
    return wrong;
  });
}

/// Branches of one capture that nothing but the order of the calls orders.
TEST_F(Transfers, BranchesOfACaptureKeepTheOrderOfCalls) {
  Plan plan(n());
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t from = 0; from < n(); ++from)
      plan.add(from, (from + 1) % n(), 200'000 + i);
  const auto all = buffersFor(plan);
  std::barrier<> meet(n());
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    cudaStream_t streams[2] = {streamOf(rank), nullptr};
    cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking);
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replayed = nullptr;
    cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(event, streams[0]);
    cudaStreamWaitEvent(streams[1], event, 0);
    std::string wrong;
    for (size_t t = 0; t < plan.sent.size(); t += n()) {
      occlGroupStart();
      for (size_t i = t; i < t + n(); ++i)
        for (const bool isSend : {true, false})
          if ((isSend ? plan.sent[i].from : plan.sent[i].to) == rank && wrong.empty())
            wrong = buffers.call(plan.sent[i], isSend, comms[rank], streams[t / n() % 2]);
      if (occlGroupEnd() != occlSuccess)
        wrong = failed("occlGroupEnd");
    }
    cudaEventRecord(event, streams[1]);
    cudaStreamWaitEvent(streams[0], event, 0);
    if (cudaStreamEndCapture(streams[0], &graph) != cudaSuccess ||
        cudaGraphInstantiate(&replayed, graph, 0) != cudaSuccess)
      wrong = "capture: " + wrong;
    meet.arrive_and_wait();
    for (uint64_t round = 0; round < 10 && wrong.empty(); ++round) {
      buffers.prepare(round, streams[0]);
      cudaGraphLaunch(replayed, streams[0]);
      wrong = buffers.check(round, streams[0]);
    }
    meet.arrive_and_wait();
    cudaGraphExecDestroy(replayed);
    cudaGraphDestroy(graph);
    cudaEventDestroy(event);
    cudaStreamDestroy(streams[1]);
    return wrong;
  });
}

/// More kernels than the device has room for wait for the last one.
TEST_F(Transfers, AWaitingTransferMakesRoom) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  constexpr uint32_t kConnections = 32; // of a device: RanksOnDevices asks for them
  const uint32_t numComms = std::min(24u, kConnections * devices / n());
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 32 << 20;
  startMany(numComms, numRanks(), config, {});
  Plan plan(n());
  for (uint32_t i = 0; i < numComms; ++i)
    for (uint32_t from = 0; from < n(); ++from)
      plan.add(from, (from + 1) % n(), (i % 3 == 0 ? 200'000 : 4 * kMiB) + i);
  const auto all = buffersFor(plan);
  std::vector<std::vector<cudaStream_t>> streams(n(), std::vector<cudaStream_t>(numComms));
  for (uint32_t rank = 0; rank < n(); ++rank) {
    cudaSetDevice(static_cast<int>(rank % devices));
    for (cudaStream_t &stream : streams[rank])
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  inThreads([&](uint32_t rank) -> std::string {
    Buffers &buffers = *all[rank];
    std::string wrong;
    for (uint32_t i = 0; i < numComms && wrong.empty(); ++i) { // each rank begins elsewhere
      const uint32_t which = (i + rank * numComms / n()) % numComms;
      occlGroupStart();
      for (const bool isSend : {false, true})
        for (uint32_t from = 0; from < n() && wrong.empty(); ++from) {
          const Sent &one = plan.sent[which * n() + from];
          if ((isSend ? one.from : one.to) == rank)
            wrong = buffers.call(one, isSend, commOf(rank, which), streams[rank][which]);
        }
      if (occlGroupEnd() != occlSuccess)
        return failed("occlGroupEnd");
    }
    for (cudaStream_t stream : streams[rank])
      cudaStreamSynchronize(stream);
    return wrong.empty() ? buffers.check(0, streamOf(rank)) : wrong;
  });
  for (const auto &each : streams)
    for (cudaStream_t stream : each)
      cudaStreamDestroy(stream);
}

/// Two that wait for rank 1 at once, by graphs of streams that nothing orders. Returns when the
/// communicator has failed, and nothing of it runs; "" or what is wrong.
std::string replayTwoAtOnce(occlComm_t comm, const DeviceBuffer &buffer,
                            const std::function<void()> &awaitFailure) {
  cudaStream_t streams[2] = {};
  cudaGraphExec_t graphs[2] = {};
  for (int i = 0; i < 2; ++i) {
    cudaGraph_t graph = nullptr;
    cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal);
    occlRecv(buffer.get() + i * 2048, 1000, occlUint8, 1, comm, streams[i]);
    cudaStreamEndCapture(streams[i], &graph);
    if (cudaGraphInstantiate(&graphs[i], graph, 0) != cudaSuccess)
      return "the graph cannot be instantiated";
    cudaGraphDestroy(graph);
  }
  for (int i = 0; i < 2; ++i)
    cudaGraphLaunch(graphs[i], streams[i]);
  awaitFailure();
  for (int i = 0; i < 2; ++i) {
    cudaStreamSynchronize(streams[i]);
    cudaGraphExecDestroy(graphs[i]);
    cudaStreamDestroy(streams[i]);
  }
  return "";
}

TEST_F(Transfers, ReplaysBesideEachOtherAreRefused) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  std::vector<std::string> texts(n());
  const auto buffers = memory(4096);
  inThreads([&](uint32_t rank) -> std::string {
    const auto awaitFailure = [&] { texts[rank] = failureOf(rank); };
    if (rank == 0)
      return replayTwoAtOnce(comms[0], *buffers[0], awaitFailure);
    awaitFailure();
    return "";
  });
  for (const std::string &text : texts)
    EXPECT_NE(text.find("run beside them"), std::string::npos) << text;
}

/// Its failure was an invalid argument once; that of the group it is not.
TEST_F(Transfers, AnOldFailureDoesNotHoldUpWhatAGroupHasOnHosts) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  std::vector<occlComm_t> hosts(n());
  ASSERT_EQ(occlCommInitAll(hosts.data(), n(), nullptr), occlSuccess) << occlGetLastError();
  const auto buffers = memory(4096);
  inThreads([&](uint32_t rank) -> std::string {
    const auto awaitFailure = [&] { failureOf(rank); };
    std::string wrong;
    if (rank == 0)
      wrong = replayTwoAtOnce(comms[0], *buffers[0], awaitFailure);
    else
      awaitFailure();
    const uint32_t next = (rank + 1) % n(), before = (rank + n() - 1) % n();
    uint32_t sent = rank + 7, received = 0;
    occlGroupStart();
    occlSend(buffers[rank]->get(), 100, occlUint8, next, comms[rank], streamOf(rank));
    occlSend(&sent, 1, occlInt32, next, hosts[rank], nullptr);
    occlRecv(&received, 1, occlInt32, before, hosts[rank], nullptr);
    const occlResult_t result = occlGroupEnd();
    if (wrong.empty() && result != occlInvalidArgument)
      wrong = "the group's result is " + std::to_string(result);
    if (wrong.empty() && received != before + 7)
      wrong = "received " + std::to_string(received);
    return wrong;
  });
  for (occlComm_t comm : hosts)
    EXPECT_EQ(occlCommDestroy(comm), occlSuccess);
}

/// How a group of captured receives from rank 1 ends, one by each communicator.
struct CapturedReceives {
  CapturedReceives(occlComm_t first, occlComm_t second, char *buffer) {
    cudaStream_t captured = nullptr;
    cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking);
    cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal);
    occlGroupStart();
    occlRecv(buffer, 100, occlUint8, 1, first, captured);
    occlRecv(buffer + 1000, 100, occlUint8, 1, second, captured);
    result = occlGroupEnd();
    text = occlGetLastError();
    cudaGraph_t graph = nullptr;
    isSpoilt = cudaStreamEndCapture(captured, &graph) != cudaSuccess;
    cudaGraphDestroy(graph);
    cudaStreamDestroy(captured);
  }

  occlResult_t result;
  std::string text; // of the group
  bool isSpoilt;    // the capture
};

/// Its own error, and nothing was done: not that of the communicator which has failed before.
TEST_F(Transfers, ARefusedGroupSaysWhyBesideAnOldFailure) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 256 << 20;
  startMany(2, numRanks(), config, {});
  const auto buffers = memory(4096);
  std::barrier<> meet(n());
  inThreads([&](uint32_t rank) -> std::string {
    char *const buffer = buffers[rank]->get();
    std::string wrong;
    if (rank == 0) {
      occlCommAbort(commOf(0, 1));
      occlRecv(buffer, 100, occlUint8, 1, commOf(0, 0), streamOf(0)); // which does not end yet
      const CapturedReceives group(commOf(0, 0), commOf(0, 1), buffer + 1000);
      if (group.result != occlInvalidArgument ||
          group.text.find("those before have ended") == std::string::npos)
        wrong = "the group's result is " + std::to_string(group.result) + ": " + group.text;
      if (group.isSpoilt)
        wrong += " the capture is spoilt";
    }
    meet.arrive_and_wait();
    if (rank == 1)
      occlSend(buffer, 100, occlUint8, 0, commOf(1, 0), streamOf(1));
    return wrong + onDevices[rank]->synchronize();
  });
}

/// Of its second communicator something has not ended, so it cannot be captured yet. The first
/// one's part would have joined other streams to the capture.
TEST_F(Transfers, ARefusedGroupSpoilsNoCapture) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 256 << 20;
  startMany(2, numRanks(), config, {});
  const auto buffers = memory(4096);
  std::barrier<> meet(n());
  inThreads([&](uint32_t rank) -> std::string {
    char *const buffer = buffers[rank]->get();
    std::string wrong;
    if (rank == 0) {
      occlRecv(buffer, 100, occlUint8, 1, commOf(0, 1), streamOf(0));
      const CapturedReceives group(commOf(0, 0), commOf(0, 1), buffer + 1000);
      if (group.result != occlInvalidArgument)
        wrong = "the group's result is " + std::to_string(group.result);
      if (group.isSpoilt)
        wrong += " the capture is spoilt";
    }
    meet.arrive_and_wait();
    if (rank == 1)
      occlSend(buffer, 100, occlUint8, 0, commOf(1, 1), streamOf(1));
    return wrong + onDevices[rank]->synchronize();
  });
}

} // namespace
} // namespace occl::gpu_test
