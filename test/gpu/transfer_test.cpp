// Sends, receives, groups and collectives with counts by rank as work of streams on devices. Ranks
// are threads, on as many devices as there are. Skipped where there is no device.
#include "runtime/communicator/occl_transfer.h"
#include "test/gpu/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint64_t kMiB = 1 << 20;

struct Sent {
  uint32_t from, to;
  uint64_t bytes;
  uint64_t key;           // of the data
  uint64_t source, place; // offsets in the buffers of both ranks
};

void fill(char *data, uint64_t bytes, uint64_t key) {
  uint64_t word = key * 0x9e3779b97f4a7c15u + 1;
  for (uint64_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0)
      word = (word ^ word >> 29) * 0xbf58476d1ce4e5b9u + i;
    data[i] = static_cast<char>(word >> i % 8 * 8);
  }
}

std::string failed(const char *what) { return std::string(what) + ": " + occlGetLastError(); }

/// Transfers with places in one buffer for what a rank sends, one for what it receives.
struct Plan {
  std::vector<Sent> sent;
  std::vector<uint64_t> sendBytes, receiveBytes; // by rank

  explicit Plan(uint32_t n) : sendBytes(n), receiveBytes(n) {}
  /// misalignment: bytes left free before both ends.
  void add(uint32_t from, uint32_t to, uint64_t bytes, uint64_t misalignment = 0) {
    const auto place = [&](uint64_t &end) {
      const uint64_t begin = (end + 15) / 16 * 16 + misalignment;
      end = begin + bytes;
      return begin;
    };
    const uint64_t source = place(sendBytes[from]), to_ = place(receiveBytes[to]);
    sent.push_back({from, to, bytes, sent.size() * 31 + from * 7 + to, source, to_});
  }
};

/// A rank's buffers for a plan.
struct Buffers {
  Buffers(const Plan &plan, uint32_t rank)
      : plan(plan), rank(rank), source(plan.sendBytes[rank]), place(plan.receiveBytes[rank]) {}
  /// Another round's data; what is to be received is spoilt.
  void prepare(uint64_t round, cudaStream_t stream) {
    std::vector<char> data(plan.sendBytes[rank]);
    for (const Sent &one : plan.sent)
      if (one.from == rank)
        fill(data.data() + one.source, one.bytes, one.key + round * 1'000'003);
    cudaMemcpyAsync(source.get(), data.data(), data.size(), cudaMemcpyHostToDevice, stream);
    cudaMemsetAsync(place.get(), 0x5a, plan.receiveBytes[rank], stream);
    cudaStreamSynchronize(stream);
  }
  /// "" or what is wrong, also of bytes in between.
  std::string check(uint64_t round, cudaStream_t stream) const {
    std::vector<char> want(plan.receiveBytes[rank], 0x5a), got(want.size());
    for (const Sent &one : plan.sent)
      if (one.to == rank)
        fill(want.data() + one.place, one.bytes, one.key + round * 1'000'003);
    // Before: a copy to such memory waits for the stream, and CUDA has other threads wait as well.
    if (cudaStreamSynchronize(stream) != cudaSuccess)
      return "the stream fails";
    cudaMemcpyAsync(got.data(), place.get(), got.size(), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    auto [w, g] = std::mismatch(want.begin(), want.end(), got.begin());
    return w == want.end() ? ""
                           : "rank " + std::to_string(rank) + ", round " + std::to_string(round) +
                                 ": wrong from byte " + std::to_string(w - want.begin()) + " of " +
                                 std::to_string(want.size());
  }
  std::string call(const Sent &one, bool isSend, occlComm_t comm, cudaStream_t stream) const {
    const occlResult_t result =
        isSend ? occlSend(source.get() + one.source, one.bytes, occlUint8, one.to, comm, stream)
               : occlRecv(place.get() + one.place, one.bytes, occlUint8, one.from, comm, stream);
    return result == occlSuccess ? "" : failed(isSend ? "occlSend" : "occlRecv");
  }

  const Plan &plan;
  const uint32_t rank;
  DeviceBuffer source, place;
};

class Transfers : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    const char *given = std::getenv("OCCL_TEST_SEED");
    seed = given ? static_cast<uint32_t>(std::atoi(given)) : 20261123;
    std::printf("OCCL_TEST_SEED=%u\n", seed);
    startWith(0);
  }
  void startWith(uint32_t timeoutMs) {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.deviceKind = occlDeviceCuda;
    config.arenaBytes = 256 << 20;
    config.timeoutMs = timeoutMs;
    start(numRanks(), config);
  }
  uint32_t n() const { return static_cast<uint32_t>(comms.size()); }
  /// By rank. Before anything runs, and freed when all is over: CUDA waits for what runs.
  std::vector<std::unique_ptr<Buffers>> buffersFor(const Plan &plan) const {
    std::vector<std::unique_ptr<Buffers>> all;
    for (uint32_t rank = 0; rank < n(); ++rank) {
      cudaSetDevice(static_cast<int>(rank % devices));
      all.push_back(std::make_unique<Buffers>(plan, rank));
      all.back()->prepare(0, streamOf(rank)); // loads what that needs
    }
    return all;
  }
  std::vector<std::unique_ptr<DeviceBuffer>> memory(uint64_t bytes) const {
    std::vector<std::unique_ptr<DeviceBuffer>> all;
    for (uint32_t rank = 0; rank < n(); ++rank) {
      cudaSetDevice(static_cast<int>(rank % devices));
      all.push_back(std::make_unique<DeviceBuffer>(bytes));
    }
    return all;
  }
  cudaStream_t streamOf(uint32_t rank) const { return onDevices[rank]->stream(); }

  /// In the order of each pair, but pairs mixed in an order of the rank's own.
  std::string callAll(const Buffers &buffers, cudaStream_t stream, std::mt19937 &random) const {
    std::map<std::pair<bool, uint32_t>, std::vector<const Sent *>> byDirection;
    for (const Sent &one : buffers.plan.sent) {
      if (one.from == buffers.rank)
        byDirection[{true, one.to}].push_back(&one);
      if (one.to == buffers.rank)
        byDirection[{false, one.from}].push_back(&one);
    }
    std::vector<std::pair<bool, uint32_t>> turns;
    std::map<std::pair<bool, uint32_t>, size_t> next;
    for (const auto &[direction, transfers] : byDirection)
      turns.insert(turns.end(), transfers.size(), direction);
    std::ranges::shuffle(turns, random);
    for (const auto &direction : turns)
      if (std::string wrong = buffers.call(*byDirection[direction][next[direction]++],
                                           direction.first, comms[buffers.rank], stream);
          !wrong.empty())
        return wrong;
    return "";
  }
  /// Each a group on every rank, round by round.
  void runGroups(const Plan &plan, uint64_t rounds) {
    const auto all = buffersFor(plan);
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937 random(seed + rank);
      Buffers &buffers = *all[rank];
      for (uint64_t round = 0; round < rounds; ++round) {
        buffers.prepare(round, streamOf(rank));
        occlGroupStart();
        std::string wrong = callAll(buffers, streamOf(rank), random);
        if (occlGroupEnd() != occlSuccess)
          return failed("occlGroupEnd");
        if (wrong.empty())
          wrong = buffers.check(round, streamOf(rank));
        if (!wrong.empty())
          return wrong;
      }
      return "";
    });
  }

  uint32_t seed = 0;
};

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
      // The data come late, in the last stream; all of the group is said to be in others.
      cudaMemcpyAsync(spoilt.get(), buffers.source.get(), plan.sendBytes[rank],
                      cudaMemcpyDeviceToDevice, streamOf(rank));
      cudaMemsetAsync(buffers.source.get(), 0, plan.sendBytes[rank], streamOf(rank));
      cudaStreamSynchronize(streamOf(rank));
      for (int i = 0; i < 20; ++i)
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

TEST_F(Transfers, DeadlinesNameTheRank) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  startWith(500);
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
TEST_F(Transfers, WhatWaitsMakesRoom) {
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
      plan.add(from, (from + 1) % n(), 4 * kMiB + i);
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

/// Two that wait for the same rank at once, by graphs of streams that nothing orders.
TEST_F(Transfers, ReplaysBesideEachOtherAreRefused) {
  if (n() < 2)
    GTEST_SKIP() << "one rank";
  std::vector<std::string> texts(n());
  const auto buffers = memory(4096);
  inThreads([&](uint32_t rank) -> std::string {
    const DeviceBuffer &buffer = *buffers[rank];
    if (rank == 0) {
      cudaStream_t streams[2] = {};
      cudaGraphExec_t graphs[2] = {};
      for (int i = 0; i < 2; ++i) {
        cudaGraph_t graph = nullptr;
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
        cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal);
        occlRecv(buffer.get() + i * 2048, 1000, occlUint8, 1, comms[rank], streams[i]);
        cudaStreamEndCapture(streams[i], &graph);
        if (cudaGraphInstantiate(&graphs[i], graph, 0) != cudaSuccess)
          return "the graph cannot be instantiated";
        cudaGraphDestroy(graph);
      }
      for (int i = 0; i < 2; ++i)
        cudaGraphLaunch(graphs[i], streams[i]);
      texts[rank] = failureOf(rank);
      for (int i = 0; i < 2; ++i) {
        cudaStreamSynchronize(streams[i]);
        cudaGraphExecDestroy(graphs[i]);
        cudaStreamDestroy(streams[i]);
      }
    } else {
      texts[rank] = failureOf(rank);
    }
    return "";
  });
  for (const std::string &text : texts)
    EXPECT_NE(text.find("run beside them"), std::string::npos) << text;
}

} // namespace
} // namespace occl::gpu_test
