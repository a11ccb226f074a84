// Calls of occlStart on devices: any kinds, counts, types and orders, more ids than there are
// lanes, in the order of streams and without; what ranks that do not do their part get. Ranks are
// threads, on as many devices as there are. Skipped where there is no device.
#include "runtime/exec/conformance/reference.h"
#include "support/testing/seed.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
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

using namespace std::chrono_literals;
namespace conformance = interpreter::conformance;

struct Kind {
  occlKind_t kind;
  const char *name;                 // as plans have it
  uint32_t inputParts, outputParts; // 0: of a number of ranks
  bool reduces = false, hasRoot = false;
};
constexpr Kind kKinds[] = {{occlKindAllReduce, "allreduce", 1, 1, true},
                           {occlKindAllGather, "allgather", 1, 0},
                           {occlKindReduceScatter, "reducescatter", 0, 1, true},
                           {occlKindBroadcast, "broadcast", 1, 1, false, true},
                           {occlKindReduce, "reduce", 1, 1, true, true},
                           {occlKindAllToAll, "alltoall", 0, 0},
                           {occlKindGather, "gather", 1, 0, false, true},
                           {occlKindScatter, "scatter", 0, 1, false, true}};

/// One call on all ranks, with buffers and what is expected of each.
struct Tried {
  Kind kind;
  uint64_t id, count;
  DataType type;
  ReduceOp op;
  uint32_t root;
  std::vector<std::unique_ptr<DeviceBuffer>> inputs, outputs;
  std::vector<std::vector<char>> expected;

  Tried(const Kind &kind, uint64_t id, uint64_t count, DataType type, ReduceOp op, uint32_t root,
        uint32_t n, uint32_t devices)
      : kind(kind), id(id), count(count), type(type), op(op), root(root) {
    std::vector<conformance::Numbers> numbers;
    for (uint32_t r = 0; r < n; ++r)
      numbers.push_back(conformance::exactInput((kind.inputParts ? kind.inputParts : n) * count,
                                                type, op, id * 100 + r));
    for (uint32_t r = 0; r < n; ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      const auto input = conformance::encode(numbers[r], type);
      expected.push_back(expectedOf(numbers, r));
      const uint64_t bytes = (kind.outputParts ? kind.outputParts : n) * count * sizeOf(type);
      inputs.push_back(std::make_unique<DeviceBuffer>(input.size()));
      outputs.push_back(std::make_unique<DeviceBuffer>(bytes));
      EXPECT_EQ(cudaMemcpy(inputs[r]->get(), input.data(), input.size(), cudaMemcpyHostToDevice),
                cudaSuccess);
      EXPECT_EQ(cudaMemset(outputs[r]->get(), 0x5a, std::max<uint64_t>(bytes, 1)), cudaSuccess);
    }
    cudaDeviceSynchronize();
  }
  occlCall_t on(uint32_t rank) const {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = kind.kind;
    call.sendBuffer = inputs[rank]->get();
    call.recvBuffer = outputs[rank]->get();
    call.count = count;
    call.dataType = static_cast<occlDataType_t>(type);
    call.op = static_cast<occlRedOp_t>(op);
    call.root = root;
    call.id = id;
    return call;
  }
  std::vector<char> expectedOf(const std::vector<conformance::Numbers> &numbers,
                               uint32_t rank) const {
    std::vector<char> all;
    const auto append = [&](uint32_t from, uint64_t begin, uint64_t bytes) {
      const std::vector<char> whole = conformance::encode(numbers[from], type);
      const auto first = whole.begin() + static_cast<ptrdiff_t>(begin);
      all.insert(all.end(), first, first + static_cast<ptrdiff_t>(bytes));
    };
    const uint64_t bytes = count * sizeOf(type);
    if (kind.kind == occlKindGather)
      for (uint32_t r = 0; rank == root && r < numbers.size(); ++r)
        append(r, 0, bytes);
    else if (kind.kind == occlKindScatter)
      append(root, rank * bytes, bytes);
    else
      all = conformance::encode(
          conformance::expectedOutput(kind.name, numbers, rank, root, count, type, op), type);
    return all;
  }
  std::string check(uint32_t rank, cudaStream_t stream) const {
    const std::vector<char> &want = expected[rank];
    std::vector<char> got(want.size());
    cudaMemcpyAsync(got.data(), outputs[rank]->get(), got.size(), cudaMemcpyDeviceToHost, stream);
    if (cudaStreamSynchronize(stream) != cudaSuccess)
      return "the output cannot be read";
    auto [w, g] = std::mismatch(want.begin(), want.end(), got.begin());
    return w == want.end() ? ""
                           : std::string(kind.name) + " of id " + std::to_string(id) + ", count " +
                                 std::to_string(count) + ", rank " + std::to_string(rank) +
                                 ": wrong from byte " + std::to_string(w - want.begin()) + " of " +
                                 std::to_string(want.size());
  }
};

std::string failed(const char *what) { return std::string(what) + ": " + occlGetLastError(); }

class Started : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    seed = static_cast<uint32_t>(printedSeed());
    startLarge();
  }
  void startLarge() {
    occlConfig_t config = smallConfig();
    config.arenaBytes = 512 << 20;
    start(numRanks(), config);
  }
  std::unique_ptr<Tried> make(const Kind &kind, uint64_t id, uint64_t count,
                              DataType type = DataType::Float32, ReduceOp op = ReduceOp::Sum,
                              uint32_t root = 0) {
    return std::make_unique<Tried>(kind, id, count, type, op, kind.hasRoot ? root : 0, n(),
                                   devices);
  }
  /// Each rank starts all of them in an order of its own, and waits for them in another.
  void runShuffled(const std::vector<std::unique_ptr<Tried>> &all, bool byTest = false) {
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937 random(seed + rank);
      std::vector<size_t> order(all.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      std::vector<std::pair<size_t, occlRequest_t>> requests;
      for (size_t i : order) {
        const occlCall_t call = all[i]->on(rank);
        requests.emplace_back(i, 0);
        if (occlStart(comms[rank], &call, nullptr, nullptr, &requests.back().second) != occlSuccess)
          return failed("occlStart");
      }
      std::ranges::shuffle(requests, random);
      for (auto [i, request] : requests) {
        occlResult_t result = occlInProgress;
        while (byTest && (result = occlTest(comms[rank], request)) == occlInProgress)
          std::this_thread::yield();
        if (!byTest)
          result = occlWait(comms[rank], request);
        if (result != occlSuccess)
          return failed("occlWait");
        if (std::string wrong = all[i]->check(rank, onDevices[rank]->stream()); !wrong.empty())
          return wrong;
      }
      return "";
    });
  }

  uint32_t seed = 0;
};

/// The first test of this process: of each kernel. CUDA takes a kernel's stack for all threads that
/// a device can have, and has its first launch wait until the device is idle.
TEST_F(Started, FirstStartsTakeNoMemoryForStacks) {
  std::vector<std::unique_ptr<Tried>> all;
  for (DataType type : {DataType::Float32, DataType::Int32})
    for (uint64_t count : {100, 1'000'000})
      all.push_back(make(kKinds[0], all.size(), count, type));
  const uint64_t before = bytesTaken();
  runShuffled(all);
  EXPECT_LT(bytesTaken(), before + (64 << 20));
}

TEST_F(Started, AllKindsAndCounts) {
  std::vector<std::unique_ptr<Tried>> all;
  for (const Kind &kind : kKinds)
    for (uint64_t count : {0, 1, 3, 127, 1003, 2048, 7000, 30011, 300007})
      all.push_back(make(kind, all.size(), count, DataType::Float32, ReduceOp::Sum, n() - 1));
  runShuffled(all);
}

TEST_F(Started, AllTypesAndOperations) {
  std::vector<std::unique_ptr<Tried>> all;
  for (uint32_t type = 0; type < kNumDataTypes; ++type)
    for (uint32_t op = 0; op < kNumReduceOps; ++op)
      for (uint64_t count : {131, 9001})
        all.push_back(make(kKinds[all.size() % 3 == 0 ? 2 : 0], all.size(), count,
                           static_cast<DataType>(type), static_cast<ReduceOp>(op)));
  runShuffled(all, true);
}

/// Of two kernels, in several rounds.
TEST_F(Started, ManyMoreIdsThanLanes) {
  std::vector<std::unique_ptr<Tried>> all;
  std::mt19937 random(seed);
  for (uint64_t id = 0; id < 300; ++id)
    all.push_back(make(kKinds[0], 7 * id + 3, 1 + random() % 5000,
                       random() % 2 ? DataType::Float32 : DataType::Int32));
  for (uint32_t round = 0; round < 4; ++round)
    runShuffled(all);
}

/// Rank 0 has started all before it waits, the others wait for each before they start the next, the
/// last one first.
TEST_F(Started, MoreIdsWaitForOneAnotherThanThereAreLanes) {
  std::vector<std::unique_ptr<Tried>> all;
  for (uint64_t id = 0; id < 200; ++id)
    all.push_back(make(kKinds[0], id, 1 + id % 7 * 300));
  inThreads([&](uint32_t rank) -> std::string {
    std::vector<occlRequest_t> requests(all.size());
    const auto wait = [&](size_t i) { return occlWait(comms[rank], requests[i]) == occlSuccess; };
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t which = rank == 0 ? i : all.size() - 1 - i;
      const occlCall_t call = all[which]->on(rank);
      if (occlStart(comms[rank], &call, nullptr, nullptr, &requests[which]) != occlSuccess)
        return failed("occlStart");
      if (rank != 0 && !wait(which))
        return failed("occlWait");
    }
    for (size_t i = 0; rank == 0 && i < all.size(); ++i)
      if (!wait(i))
        return failed("occlWait");
    for (const auto &each : all)
      if (std::string wrong = each->check(rank, onDevices[rank]->stream()); !wrong.empty())
        return wrong;
    return "";
  });
}

/// What a stream waits for is not behind what waits for the stream, though ids share lanes, and
/// though the id has a call of another kernel behind it.
TEST_F(Started, AStreamMayWaitForOtherCalls) {
  std::vector<std::unique_ptr<Tried>> all;
  for (uint64_t id = 0; id < 150; ++id)
    all.push_back(make(kKinds[0], id, 500 + id));
  const auto gated = make(kKinds[0], 1000, 700);
  const auto behind = make(kKinds[0], 1000, 700, DataType::Int32);
  inThreads([&](uint32_t rank) -> std::string {
    std::atomic<bool> mayGoOn{false};
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaLaunchHostFunc(
        stream,
        [](void *flag) {
          while (!*static_cast<std::atomic<bool> *>(flag))
            std::this_thread::sleep_for(1ms);
        },
        &mayGoOn);
    std::string wrong;
    std::vector<occlRequest_t> requests;
    const auto put = [&](const Tried &what, bool isAfter) {
      occlCall_t call = what.on(rank);
      call.after = isAfter ? &stream : nullptr;
      requests.push_back(0);
      if (wrong.empty() &&
          occlStart(comms[rank], &call, nullptr, nullptr, &requests.back()) != occlSuccess)
        wrong = failed("occlStart");
    };
    put(*gated, rank == 0);
    put(*behind, false);
    for (const auto &each : all)
      put(*each, false);
    for (size_t i = 2; i < requests.size() && wrong.empty(); ++i)
      if (occlWait(comms[rank], requests[i]) != occlSuccess)
        wrong = failed("occlWait");
    mayGoOn = true;
    for (size_t i = 0; i < 2 && wrong.empty(); ++i)
      if (occlWait(comms[rank], requests[i]) != occlSuccess)
        wrong = failed("occlWait");
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    for (const Tried *each : {gated.get(), behind.get(), all.front().get(), all.back().get()})
      if (wrong.empty())
        wrong = each->check(rank, onDevices[rank]->stream());
    return wrong;
  });
}

/// All in flight at once, in place in one buffer: one after the other, whatever executes each.
TEST_F(Started, CallsOfAnIdRunOneAfterTheOther) {
  constexpr uint64_t kCount = 100'000, kFew = 100;
  constexpr uint32_t kTimes = 6;
  inThreads([&](uint32_t rank) -> std::string {
    DeviceBuffer buffer(kCount * sizeof(float));
    std::vector<float> values(kCount, 1);
    cudaMemcpy(buffer.get(), values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
    std::vector<occlRequest_t> requests(2 * kTimes);
    for (uint32_t i = 0; i < 2 * kTimes; ++i) {
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = occlKindAllReduce;
      call.sendBuffer = call.recvBuffer = buffer.get();
      call.count = i % 2 == 0 ? kCount : kFew;
      call.id = 5;
      if (occlStart(comms[rank], &call, nullptr, nullptr, &requests[i]) != occlSuccess)
        return failed("occlStart");
    }
    for (occlRequest_t request : requests)
      if (occlWait(comms[rank], request) != occlSuccess)
        return failed("occlWait");
    cudaMemcpy(values.data(), buffer.get(), kCount * sizeof(float), cudaMemcpyDeviceToHost);
    const auto power = [&](uint32_t times) {
      float product = 1;
      for (uint32_t i = 0; i < times; ++i)
        product *= static_cast<float>(n());
      return product;
    };
    for (uint64_t i = 0; i < kCount; ++i)
      if (values[i] != power(i < kFew ? 2 * kTimes : kTimes))
        return "element " + std::to_string(i) + " is " + std::to_string(values[i]);
    return "";
  });
}

/// Some calls before the lines of a lane are cleared, and before flags of LL come again.
TEST_F(Started, AfterVeryManyOthers) {
  for (uint64_t first : {(1ull << 22) - 5, (1ull << 23) - 5, (1ull << 24) - 5, (1ull << 32) - 5}) {
    setenv("OCCL_FIRST_CALL", std::to_string(first).c_str(), 1);
    startLarge();
    std::vector<std::unique_ptr<Tried>> all;
    for (uint64_t id = 0; id < 6; ++id) // each of one kernel
      all.push_back(make(kKinds[id % 2 ? 1 : 0], id, id < 3 ? 1500 : 50'000,
                         id % 3 == 0 ? DataType::Int32 : DataType::Float32));
    for (uint32_t round = 0; round < 12; ++round)
      runShuffled(all);
  }
  unsetenv("OCCL_FIRST_CALL");
}

/// Nobody waits on the host: what comes before is stored, what comes after reads, in the same
/// stream or in one that only reads. Ranks take streams in any order, and keep one order in each.
TEST_F(Started, InTheOrderOfStreams) {
  constexpr uint32_t kStreams = 3;
  std::vector<std::unique_ptr<Tried>> all;
  for (uint64_t id = 0; id < 12; ++id)
    all.push_back(make(kKinds[id % 8], id, 100 + 3000 * id, DataType::Float32));
  inThreads([&](uint32_t rank) -> std::string {
    std::mt19937 random(seed + rank);
    std::vector<cudaStream_t> streams(kStreams + 1); // the last one reads
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::vector<std::unique_ptr<DeviceBuffer>> copies;
    for (const auto &each : all)
      copies.push_back(std::make_unique<DeviceBuffer>(each->expected[rank].size()));
    const auto put = [&](size_t i, bool readsInStream) -> std::string {
      cudaStream_t stream = streams[i % kStreams];
      const Tried &what = *all[i];
      cudaMemsetAsync(what.outputs[rank]->get(), 0x77, what.expected[rank].size(), stream);
      occlCall_t call = what.on(rank);
      call.after = &stream;
      occlRequest_t request = 0;
      occlResult_t result = occlSuccess;
      while ((result = occlStart(comms[rank], &call, nullptr, nullptr, &request)) == occlAgain)
        std::this_thread::yield();
      if (result != occlSuccess)
        return failed("occlStart");
      cudaStream_t reader = readsInStream ? stream : streams.back();
      for (cudaStream_t waits : {stream, reader})
        if (occlStreamWait(comms[rank], request, waits) != occlSuccess)
          return failed("occlStreamWait");
      cudaMemcpyAsync(copies[i]->get(), what.outputs[rank]->get(), what.expected[rank].size(),
                      cudaMemcpyDeviceToDevice, reader);
      return "";
    };
    std::string wrong;
    for (uint32_t round = 0; round < 8 && wrong.empty(); ++round) {
      std::vector<size_t> next(kStreams), turns;
      for (uint32_t s = 0; s < kStreams; ++s) {
        next[s] = s;
        turns.insert(turns.end(), all.size() / kStreams, s);
      }
      std::ranges::shuffle(turns, random);
      for (size_t s : turns)
        if (wrong.empty())
          wrong = put(std::exchange(next[s], next[s] + kStreams), round % 2 == 0);
      for (cudaStream_t stream : streams)
        if (cudaStreamSynchronize(stream) != cudaSuccess)
          wrong = "the stream does not end";
      for (size_t i = 0; i < all.size() && wrong.empty(); ++i) {
        std::vector<char> got(all[i]->expected[rank].size());
        cudaMemcpy(got.data(), copies[i]->get(), got.size(), cudaMemcpyDeviceToHost);
        if (got != all[i]->expected[rank])
          wrong = "id " + std::to_string(i) + " is wrong in round " + std::to_string(round);
      }
    }
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    return wrong;
  });
}

TEST_F(Started, CallbacksAlsoOfWhatHasToWait) {
  constexpr uint64_t kIds = 150;
  std::vector<std::unique_ptr<Tried>> all;
  for (uint64_t id = 0; id < kIds; ++id)
    all.push_back(make(kKinds[0], id, 500));
  inThreads([&](uint32_t rank) -> std::string {
    std::atomic<uint64_t> ended{0}, bad{0};
    struct Ends {
      std::atomic<uint64_t> &ended, &bad;
    } ends{ended, bad};
    const auto callback = [](occlRequest_t, occlResult_t result, void *user) {
      auto *ends = static_cast<Ends *>(user);
      ends->bad += result != occlSuccess;
      ++ends->ended;
    };
    for (uint64_t i = 0; i < kIds; ++i) {
      occlCall_t call = all[rank % 2 ? i : kIds - 1 - i]->on(rank);
      call.callbacksNeverBlock = i % 2;
      if (occlStart(comms[rank], &call, callback, &ends, nullptr) != occlSuccess)
        return failed("occlStart");
    }
    for (auto end = std::chrono::steady_clock::now() + 30s;
         ended != kIds && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(100us);
    if (ended != kIds || bad != 0)
      return std::to_string(ended) + " have ended, " + std::to_string(bad) + " badly";
    for (const auto &each : all)
      if (std::string wrong = each->check(rank, onDevices[rank]->stream()); !wrong.empty())
        return wrong;
    return "";
  });
}

/// Rank 0 calls `mine`, the others `theirs`: all are told what differs.
void expectMismatch(const std::vector<occlComm_t> &comms, const Tried &mine, const Tried &theirs,
                    const std::string &text) {
  std::vector<std::thread> threads;
  std::vector<std::string> said(comms.size());
  std::vector<occlResult_t> results(comms.size(), occlSuccess);
  for (uint32_t r = 0; r < comms.size(); ++r)
    threads.emplace_back([&, r] {
      cudaSetDevice(0);
      const occlCall_t call = (r == 0 ? mine : theirs).on(r);
      occlRequest_t request = 0;
      results[r] = occlStart(comms[r], &call, nullptr, nullptr, &request);
      if (results[r] == occlSuccess)
        results[r] = occlWait(comms[r], request);
      said[r] = occlGetLastError();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint32_t r = 0; r < comms.size(); ++r) {
    EXPECT_EQ(results[r], occlMismatch) << "rank " << r << ": " << said[r];
    EXPECT_NE(said[r].find(text), std::string::npos) << said[r];
  }
}

TEST_F(Started, WhatRanksCallDifferently) {
  if (n() == 1)
    GTEST_SKIP() << "of several ranks";
  const auto of = [&](uint64_t count, DataType type = DataType::Float32,
                      const Kind &kind = kKinds[0]) { return make(kind, 9, count, type); };
  expectMismatch(comms, *of(1000), *of(1001), "count 100");
  startLarge();
  expectMismatch(comms, *of(1000), *of(1000, DataType::Int32), "dataType");
  startLarge();
  expectMismatch(comms, *of(1000), *of(100'000), "count 1000");
  startLarge();
  expectMismatch(comms, *of(1000), *of(1000, DataType::Float32, kKinds[3]), "kind");
}

TEST_F(Started, ARankThatDoesNotStartIt) {
  if (n() == 1)
    GTEST_SKIP() << "of several ranks";
  auto what = make(kKinds[0], 4, 1000);
  occlCall_t call = what->on(0);
  call.timeoutMs = 300;
  occlRequest_t request = 0;
  ASSERT_EQ(occlStart(comms[0], &call, nullptr, nullptr, &request), occlSuccess);
  EXPECT_EQ(occlTest(comms[0], request), occlInProgress);
  EXPECT_EQ(occlWait(comms[0], request), occlTimeout);
  const std::string text = occlGetLastError();
  EXPECT_NE(text.find("rank 0 waits for rank 1 (its submission)"), std::string::npos) << text;
  EXPECT_EQ(occlStart(comms[1], &call, nullptr, nullptr, &request), occlTimeout);
}

TEST_F(Started, ARankThatAbortsOrLeaves) {
  if (n() == 1)
    GTEST_SKIP() << "of several ranks";
  auto what = make(kKinds[0], 4, 1000);
  for (bool aborts : {true, false}) {
    startLarge();
    const occlCall_t call = what->on(0);
    occlRequest_t request = 0;
    ASSERT_EQ(occlStart(comms[0], &call, nullptr, nullptr, &request), occlSuccess);
    std::thread other([&] {
      std::this_thread::sleep_for(50ms);
      if (aborts)
        return (void)occlCommAbort(comms[1]);
      onDevices[1].reset();
      EXPECT_EQ(occlCommDestroy(std::exchange(comms[1], nullptr)), occlSuccess);
    });
    EXPECT_EQ(occlWait(comms[0], request), aborts ? occlAborted : occlPeerFailed)
        << occlGetLastError();
    other.join();
  }
}

/// Each in each lane is known to the daemon by a number of its own, of which there are fewer.
TEST_F(Started, MoreShapesInMoreLanesThanTheDaemonKnows) {
  std::vector<std::unique_ptr<Tried>> all;
  for (uint64_t id = 0; id < 64; ++id)
    for (uint64_t count = 0; count < 17; ++count)
      all.push_back(make(kKinds[0], id, 10 + count * 50));
  inThreads([&](uint32_t rank) -> std::string {
    for (uint32_t round = 0; round < 2; ++round) {
      std::vector<occlRequest_t> requests;
      for (const auto &each : all) {
        const occlCall_t call = each->on(rank);
        requests.push_back(0);
        if (occlStart(comms[rank], &call, nullptr, nullptr, &requests.back()) != occlSuccess)
          return failed("occlStart");
      }
      for (occlRequest_t request : requests)
        if (occlWait(comms[rank], request) != occlSuccess)
          return failed("occlWait");
    }
    for (const auto &each : all)
      if (std::string wrong = each->check(rank, onDevices[rank]->stream()); !wrong.empty())
        return wrong;
    return "";
  });
}

/// A stream that is late holds a place in the daemon's window; when the others have gone round,
/// calls are refused, and later taken.
TEST_F(Started, ALateStreamHoldsUpNobodyForEver) {
  const auto late = make(kKinds[0], 1, 1000), often = make(kKinds[0], 2, 1000);
  inThreads([&](uint32_t rank) -> std::string {
    std::atomic<bool> mayGoOn{false};
    cudaStream_t streams[2] = {};
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaLaunchHostFunc(
        streams[0],
        [](void *flag) {
          while (!*static_cast<std::atomic<bool> *>(flag))
            std::this_thread::sleep_for(1ms);
        },
        &mayGoOn);
    occlCall_t call = late->on(rank);
    call.after = &streams[0];
    occlRequest_t first = 0, request = 0;
    std::string wrong;
    if (occlStart(comms[rank], &call, nullptr, nullptr, &first) != occlSuccess)
      wrong = failed("occlStart");
    call = often->on(rank);
    call.after = &streams[1];
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 300 && wrong.empty(); ++i) {
      const occlResult_t result = occlStart(comms[rank], &call, nullptr, nullptr, &request);
      if (result == occlAgain) {
        mayGoOn = ++refused >= 3;
        --i;
        continue;
      }
      if (result != occlSuccess || occlWait(comms[rank], request) != occlSuccess)
        wrong = failed("occlStart");
    }
    mayGoOn = true;
    if (wrong.empty() && occlWait(comms[rank], first) != occlSuccess)
      wrong = failed("occlWait");
    if (wrong.empty() && refused == 0)
      wrong = "nothing was refused";
    for (cudaStream_t stream : streams) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
    return wrong.empty() ? late->check(rank, onDevices[rank]->stream()) : wrong;
  });
}

TEST_F(Started, RefusedCallsTakeNoPlace) {
  auto what = make(kKinds[0], 4, 1000);
  inThreads([&](uint32_t rank) -> std::string {
    occlRequest_t request = 0;
    occlCall_t wrong = what->on(rank);
    std::vector<float> host(1000);
    wrong.sendBuffer = host.data();
    if (occlStart(comms[rank], &wrong, nullptr, nullptr, &request) != occlInvalidArgument)
      return "memory of the host was taken";
    wrong = what->on(rank);
    wrong.recvBuffer = static_cast<char *>(wrong.recvBuffer) + 4;
    wrong.sendBuffer = what->outputs[rank]->get();
    if (occlStart(comms[rank], &wrong, nullptr, nullptr, &request) != occlInvalidArgument)
      return "buffers that overlap were taken";
    const float scalar = 2;
    wrong = what->on(rank);
    wrong.op = occlMax;
    wrong.scalar = &scalar;
    if (occlStart(comms[rank], &wrong, nullptr, nullptr, &request) != occlInvalidArgument)
      return "a scalar was taken for maxima";
    const occlCall_t right = what->on(rank);
    if (occlStart(comms[rank], &right, nullptr, nullptr, &request) != occlSuccess)
      return failed("occlStart");
    if (occlStreamWait(comms[rank], request, onDevices[rank]->stream()) != occlInvalidArgument &&
        occlTest(comms[rank], request) == occlInProgress)
      return "a stream waits for a call without one";
    return occlWait(comms[rank], request) == occlSuccess
               ? what->check(rank, onDevices[rank]->stream())
               : failed("occlWait");
  });
}

} // namespace
} // namespace occl::gpu_test
