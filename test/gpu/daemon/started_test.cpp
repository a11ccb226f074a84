// Calls of occlStart on devices: any kinds, counts, types and orders, more ids than there are
// lanes, in the order of streams and without. Ranks are threads, on as many devices as there are.
// Skipped where there is no device.
#include "test/gpu/daemon/started.h"

#include <atomic>
#include <chrono>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

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

} // namespace
} // namespace occl::gpu_test
