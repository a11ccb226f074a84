// Graphs of many calls, many graphs beside eager calls, and captures that fork. Ranks are threads,
// on as many devices as there are. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/captured_graph.h"
#include "test/gpu/harness/checked_rank.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace occl::gpu_test {
namespace {

/// A rank's calls of one graph: each has elements of its own in one input and one output, so that
/// all of them are made and compared at once.
class ManyCalls {
public:
  /// The device is current; for so many elements in all.
  explicit ManyCalls(uint64_t elements)
      : input(elements * sizeof(float)), output(elements * sizeof(float)),
        differences(sizeof(Differences)) {
    EXPECT_EQ(cudaMemset(differences.get(), 0, sizeof(Differences)), cudaSuccess);
  }

  /// Call i is the i-th case, in turn; all have equal counts.
  std::string call(occlComm_t comm, const std::vector<Case> &cases, uint32_t numCalls,
                   cudaStream_t stream) const {
    std::string wrong;
    for (uint32_t i = 0; i < numCalls && wrong.empty(); ++i) {
      const Case &what = cases[i % cases.size()];
      const uint64_t offset = i * what.count * sizeof(float);
      wrong = callInStream(comm, what, input.get() + offset, output.get() + offset, stream);
    }
    return wrong;
  }
  std::string prepare(uint64_t elements, uint64_t key, uint32_t rank, cudaStream_t stream) const {
    if (cudaMemsetAsync(output.get(), 0xa5, elements * sizeof(float), stream) != cudaSuccess ||
        fillInput(stream, input.get(), elements, {key, Elements::Floats}, rank) != cudaSuccess)
      return "the input cannot be made";
    return "";
  }
  std::string compare(uint64_t elements, uint64_t key, uint32_t numRanks,
                      cudaStream_t stream) const {
    return compareOutput(stream, output.get(), elements, {key, Elements::Floats}, Expected::Sum, 0,
                         numRanks,
                         reinterpret_cast<Differences *>(differences.get())) == cudaSuccess
               ? ""
               : "the output cannot be compared";
  }
  /// Once the stream has ended: "" or what was found since it was made.
  std::string found(cudaStream_t stream) const {
    Differences seen = {};
    cudaMemcpyAsync(&seen, differences.get(), sizeof(seen), cudaMemcpyDeviceToHost, stream);
    if (cudaError_t error = cudaStreamSynchronize(stream); error != cudaSuccess)
      return cudaGetErrorString(error);
    return seen.number == 0
               ? ""
               : std::to_string(seen.number) + " elements are wrong; number " +
                     std::to_string(seen.position) + " is " + std::to_string(seen.found) +
                     " instead of " + std::to_string(seen.expected);
  }

private:
  DeviceBuffer input, output, differences;
};

class Graphs : public RanksOnDevices {
protected:
  static occlConfig_t largeConfig() {
    occlConfig_t config = smallConfig();
    config.arenaBytes = 256 << 20;
    return config;
  }
  void startLarge() { start(numRanks(), largeConfig()); }
  void use(uint32_t rank) const { cudaSetDevice(static_cast<int>(rank % devices)); }
  /// All-reduces of floats by each protocol.
  std::vector<Case> cases(uint64_t count) const {
    std::vector<Case> all = {one(oneShotInBlocks(n(), 4, plan::Protocol::LL)),
                             one(oneShotInBlocks(n(), 8, plan::Protocol::LL128)),
                             one(plan::testing::twoShotAllReduce(n()))};
    for (Case &each : all)
      each.count = count;
    return all;
  }
  std::vector<std::unique_ptr<ManyCalls>> manyCalls(uint64_t elements) const {
    std::vector<std::unique_ptr<ManyCalls>> all;
    for (uint32_t r = 0; r < n(); ++r) {
      use(r);
      EXPECT_EQ(loadDataKernels(), cudaSuccess);
      all.push_back(std::make_unique<ManyCalls>(elements));
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    return all;
  }
  std::vector<std::unique_ptr<CheckedRank>> checkedRanks(const std::vector<Case> &calls,
                                                         uint32_t numComms = 1) const {
    std::vector<std::unique_ptr<CheckedRank>> all;
    for (uint32_t r = 0; r < n(); ++r) {
      use(r);
      std::vector<occlComm_t> ofStreams;
      for (uint32_t c = 0; c < numComms; ++c)
        ofStreams.push_back(commOf(r, c));
      all.push_back(std::make_unique<CheckedRank>(ofStreams, r, n(), 2,
                                                  calls[0].count * sizeof(float), false));
    }
    return all;
  }
  /// Of all devices, by whomever.
  uint64_t taken() const {
    uint64_t sum = 0;
    for (uint32_t d = 0; d < devices; ++d) {
      cudaSetDevice(static_cast<int>(d));
      size_t free = 0, all = 0;
      EXPECT_EQ(cudaMemGetInfo(&free, &all), cudaSuccess);
      sum += all - free;
    }
    return sum;
  }
  /// A graph a rank of what `work` puts into the rank's stream; the bytes that they take on
  /// devices.
  uint64_t captureAll(std::vector<CapturedGraph> &graphs,
                      const std::function<std::string(uint32_t rank)> &work) {
    const uint64_t before = taken();
    for (uint32_t r = 0; r < n(); ++r) {
      use(r);
      EXPECT_EQ(graphs[r].capture(streamOf(r), [&] { return work(r); }), "") << "rank " << r;
    }
    const uint64_t after = taken();
    return after > before ? after - before : 0;
  }
  void replayForks(const std::vector<Case> &calls,
                   const std::vector<std::unique_ptr<CheckedRank>> &ranks, bool isOrdered);
};

/// What is behind in stream `to` comes after what stream `from` has now. "" or what is wrong.
std::string order(cudaStream_t from, cudaStream_t to) {
  cudaEvent_t event = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error == cudaSuccess)
    error = cudaEventRecord(event, from);
  if (error == cudaSuccess)
    error = cudaStreamWaitEvent(to, event, 0);
  cudaEventDestroy(event); // once it has happened
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

/// One capture of both streams of a rank, which have a call in turn. isOrdered: events have each
/// wait for the one before; else nothing does but the communicator, if it is one.
void Graphs::replayForks(const std::vector<Case> &calls,
                         const std::vector<std::unique_ptr<CheckedRank>> &ranks, bool isOrdered) {
  constexpr uint32_t kCalls = 12, kRounds = 10;
  std::vector<CapturedGraph> graphs(n());
  for (uint32_t r = 0; r < n(); ++r) {
    use(r);
    CheckedRank &rank = *ranks[r];
    const cudaStream_t streams[2] = {rank.stream(0), rank.stream(1)};
    const auto fork = [&] {
      std::string wrong = order(streams[0], streams[1]);
      for (uint32_t i = 0; i < kCalls && wrong.empty(); ++i) {
        const Case &what = calls[i % calls.size()];
        wrong = rank.run(i % 2, what, checkedOf(what, Expected::Sum), i + 1);
        if (wrong.empty() && isOrdered)
          wrong = order(streams[i % 2], streams[(i + 1) % 2]);
      }
      return wrong.empty() ? order(streams[1], streams[0]) : wrong;
    };
    ASSERT_EQ(graphs[r].capture(streams[0], fork), "") << "rank " << r;
  }
  inThreads([&](uint32_t rank) {
    std::string wrong;
    for (uint32_t round = 0; round < kRounds && wrong.empty(); ++round)
      wrong = graphs[rank].replay(ranks[rank]->stream(0));
    return wrong.empty() ? ranks[rank]->finish() : wrong;
  });
}

/// A captured call is a node, whose arguments CUDA keeps on the device. The communicator has
/// nothing for it: not a byte of its memory is left when the calls are captured.
TEST_F(Graphs, TenThousandNodesTakeNoMemoryOfTheirOwn) {
  constexpr uint32_t kNodes = 10'000;
  constexpr uint64_t kCount = 64, kElements = kNodes * kCount;
  /// Of a node, more than CUDA takes for a kernel without work: there are arguments of some 500
  /// bytes, and CUDA's own alignment.
  constexpr uint64_t kMostBytesOfNode = 2048;
  startLarge();
  const std::vector<Case> calls = cases(kCount);
  for (const Case &what : calls)
    callOnAll(what);
  const auto ranks = manyCalls(kElements);
  const auto putEmpty = [&](uint32_t nodes) {
    return [this, nodes](uint32_t rank) -> std::string {
      for (uint32_t i = 0; i < nodes; ++i)
        if (spin(streamOf(rank), 0) != cudaSuccess)
          return "a kernel cannot be captured";
      return "";
    };
  };
  // CUDA's own first.
  std::vector<CapturedGraph> first(n()), empty(n()), graphs(n());
  captureAll(first, putEmpty(1));
  const uint64_t ofEmpty = captureAll(empty, putEmpty(kNodes));
  for (occlComm_t comm : comms)
    takeAllMemory(comm);
  const uint64_t ofCalls = captureAll(graphs, [&](uint32_t rank) {
    return ranks[rank]->call(comms[rank], calls, kNodes, streamOf(rank));
  });
  std::fprintf(stderr,
               "a graph of %u nodes on each of %u ranks: %.2f MiB of empty kernels, %.2f MiB of "
               "all-reduces\n",
               kNodes, n(), static_cast<double>(ofEmpty) / (1 << 20),
               static_cast<double>(ofCalls) / (1 << 20));
  EXPECT_LE(ofCalls, ofEmpty + n() * kNodes * kMostBytesOfNode);
  inThreads([&](uint32_t rank) -> std::string {
    std::string wrong;
    for (uint64_t key = 1; key <= 2 && wrong.empty(); ++key) {
      wrong = ranks[rank]->prepare(kElements, key, rank, streamOf(rank));
      if (wrong.empty())
        wrong = graphs[rank].replay(streamOf(rank));
      if (wrong.empty())
        wrong = ranks[rank]->compare(kElements, key, n(), streamOf(rank));
      if (wrong.empty())
        wrong = onDevices[rank]->synchronize();
      if (wrong.empty())
        wrong = occlCommGetLastError(comms[rank]) + ranks[rank]->found(streamOf(rank));
    }
    return wrong;
  });
}

/// The order is the same on all ranks, another one in each round. Streams follow each other by
/// events of the program, as nothing else of the communicator may run beside a replay.
TEST_F(Graphs, SixtyFourInAnyOrderBesideCalls) {
  constexpr uint32_t kGraphs = 64, kCalls = 160, kRounds = 6, kAtOnce = 8;
  constexpr uint64_t kMostCount = 64 + 4 * kGraphs;
  const char *given = std::getenv("OCCL_TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::fprintf(stderr, "OCCL_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  startLarge();
  const auto ranks = manyCalls(kCalls * kMostCount);
  const std::vector<Case> eager = cases(5000);
  const auto checked = checkedRanks(eager);
  std::vector<std::vector<CapturedGraph>> graphs(kGraphs);
  for (uint32_t g = 0; g < kGraphs; ++g) {
    const std::vector<Case> calls = cases(64 + 4 * g);
    const uint64_t elements = kCalls * calls[0].count;
    graphs[g] = std::vector<CapturedGraph>(n());
    captureAll(graphs[g], [&](uint32_t r) {
      std::string wrong = ranks[r]->prepare(elements, g, r, streamOf(r));
      if (wrong.empty())
        wrong = ranks[r]->call(comms[r], calls, kCalls, streamOf(r));
      return wrong.empty() ? ranks[r]->compare(elements, g, n(), streamOf(r)) : wrong;
    });
  }
  inThreads([&](uint32_t rank) -> std::string {
    std::mt19937_64 random(seed); // the same on all ranks
    std::vector<uint32_t> next(kGraphs);
    std::iota(next.begin(), next.end(), 0);
    CheckedRank &own = *checked[rank];
    std::string wrong;
    uint32_t last = 0; // the stream of the work before
    const auto nextStream = [&] {
      const auto stream = static_cast<uint32_t>(random() % 2);
      if (stream != last && wrong.empty())
        wrong = order(own.stream(last), own.stream(stream));
      return last = stream;
    };
    for (uint32_t round = 0; round < kRounds && wrong.empty(); ++round) {
      std::ranges::shuffle(next, random);
      for (uint32_t i = 0; i < kGraphs && wrong.empty(); ++i) {
        for (uint64_t calls = random() % 4; calls > 0 && wrong.empty(); --calls) {
          const uint32_t stream = nextStream();
          const uint64_t key = random();
          const Case &what = eager[key % eager.size()];
          if (wrong.empty())
            wrong = own.run(stream, what, checkedOf(what, Expected::Sum), key);
        }
        const uint32_t stream = nextStream();
        if (wrong.empty())
          wrong = graphs[next[i]][rank].replay(own.stream(stream));
        if (wrong.empty() && i % kAtOnce == kAtOnce - 1)
          wrong = own.finish();
      }
      if (wrong.empty())
        wrong = ranks[rank]->found(own.stream(last));
    }
    return wrong;
  });
}

TEST_F(Graphs, BranchesOfACaptureThatEventsOrder) {
  startLarge();
  const std::vector<Case> calls = cases(5000);
  replayForks(calls, checkedRanks(calls), true);
}

/// Nothing orders them, and nothing has to.
TEST_F(Graphs, ACommunicatorInEachBranchOfACapture) {
  const std::vector<Case> calls = cases(5000);
  startMany(2, numRanks(), largeConfig(), calls);
  replayForks(calls, checkedRanks(calls, 2), false);
}

/// Calls of one communicator, which itself has each wait for the one before.
TEST_F(Graphs, BranchesOfACaptureThatNothingOrders) {
  startLarge();
  const std::vector<Case> calls = cases(5000);
  replayForks(calls, checkedRanks(calls), false);
}

} // namespace
} // namespace occl::gpu_test
