// call_costs <ranks>: what a call in a stream costs beside the collective itself: time of the host,
// first calls, device memory. Ranks are threads, on as many devices as there are, several on one if
// need be; buffers are of cudaMalloc, plans those that come with the library. A table in Markdown.
#include "bench/gpu/latency/empty_kernel.h"
#include "bench/gpu/latency/latency_ranks.h"
#include "bench/gpu/latency/resnet50_counts.h"
#include "bench/gpu/timing.h"
#include "runtime/api/occl_collectives.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {
/// Of this thread, in nanoseconds, in what CUDA's runtime does to launch kernels.
thread_local double launching = 0;
} // namespace

// Linked in the place of CUDA's (--wrap, see BUILD.bazel).
extern "C" cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *,
                                                  void **);
extern "C" cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                                  const void *kernel, void **arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const cudaError_t error = __real_cudaLaunchKernelExC(config, kernel, arguments);
  launching +=
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  return error;
}

namespace occl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLargest = 16 << 20;
/// Calls between two waits for the stream: fewer than what a stream takes at a time.
constexpr uint32_t kInRow = 64;
constexpr uint32_t kStreams = 4;

uint64_t freeBytes(int device) {
  size_t free = 0, total = 0;
  require(cudaSetDevice(device) == cudaSuccess, "cudaSetDevice");
  require(cudaMemGetInfo(&free, &total) == cudaSuccess, "cudaMemGetInfo");
  return free;
}

/// A rank with ordinary buffers.
class Rank {
public:
  explicit Rank(const LatencyRank &rank) : rank(rank) {
    require(cudaSetDevice(rank.device) == cudaSuccess, "cudaSetDevice");
    for (char **buffer : {&input, &output})
      require(cudaMalloc(reinterpret_cast<void **>(buffer), kLargest) == cudaSuccess, "cudaMalloc");
    require(cudaMemset(input, 0, kLargest) == cudaSuccess, "cudaMemset");
    streams[0] = rank.stream;
    for (uint32_t s = 1; s < kStreams; ++s)
      require(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking) == cudaSuccess,
              "cudaStreamCreateWithFlags");
    require(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
  }

  void allReduce(uint64_t count, uint32_t stream = 0) const {
    require(occlAllReduce(input, output, count, occlFloat32, occlSum, rank.comm, streams[stream]) ==
                occlSuccess,
            "occlAllReduce");
  }
  void synchronize() const {
    for (cudaStream_t stream : streams)
      require(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
  }
  const LatencyRank &rank;

private:
  char *input = nullptr, *output = nullptr; // until the process ends
  cudaStream_t streams[kStreams] = {};
};

/// Each of the ranks in a thread of its own; what rank 0's body returns.
std::vector<double> inThreads(const std::vector<Rank> &ranks,
                              const std::function<std::vector<double>(const Rank &)> &body) {
  std::vector<std::vector<double>> results(ranks.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] {
      require(cudaSetDevice(ranks[r].rank.device) == cudaSuccess, "cudaSetDevice");
      results[r] = body(ranks[r]);
    });
  for (std::thread &thread : threads)
    thread.join();
  return results[0];
}

/// Microseconds of the host for a call of a known shape, and of them in CUDA's launch.
struct HostTime {
  double call = 0, launch = 0;
};

/// In so many streams in turn.
HostTime hostTime(const std::vector<Rank> &ranks, uint32_t numStreams) {
  constexpr uint32_t kRounds = 200;
  const uint64_t count = 256;
  std::vector<double> launches;
  const std::vector<double> calls = inThreads(ranks, [&](const Rank &rank) {
    std::vector<double> each, launchesOfEach;
    for (uint32_t round = 0; round < kRounds; ++round) {
      launching = 0;
      const auto begin = Clock::now();
      for (uint32_t i = 0; i < kInRow; ++i)
        rank.allReduce(count, i % numStreams);
      each.push_back(microsecondsSince(begin) / kInRow);
      launchesOfEach.push_back(launching / kInRow / 1000);
      rank.synchronize();
    }
    if (&rank == &ranks[0])
      launches = launchesOfEach;
    return each;
  });
  return {medianOf(calls), medianOf(launches)};
}

/// Microseconds of the host for what CUDA itself takes to launch a kernel.
double launchTime(const std::vector<Rank> &ranks) {
  constexpr uint32_t kRounds = 200;
  return medianOf(inThreads(ranks, [](const Rank &rank) {
    std::vector<double> each;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const auto begin = Clock::now();
      for (uint32_t i = 0; i < kInRow; ++i)
        require(launchEmptyKernel(rank.rank.stream) == cudaSuccess, "launchEmptyKernel");
      each.push_back(microsecondsSince(begin) / kInRow);
      rank.synchronize();
    }
    return each;
  }));
}

double copyTime() {
  constexpr uint32_t kTimes = 200, kBytes = 4096;
  require(cudaSetDevice(0) == cudaSuccess, "cudaSetDevice");
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess,
          "cudaStreamCreateWithFlags");
  char *to = nullptr;
  require(cudaMalloc(reinterpret_cast<void **>(&to), kBytes) == cudaSuccess, "cudaMalloc");
  const std::vector<char> from(kBytes);
  std::vector<double> each;
  for (uint32_t i = 0; i < kTimes; ++i) {
    const auto begin = Clock::now();
    require(cudaMemcpyAsync(to, from.data(), kBytes, cudaMemcpyDefault, stream) == cudaSuccess &&
                cudaStreamSynchronize(stream) == cudaSuccess,
            "cudaMemcpyAsync");
    each.push_back(microsecondsSince(begin));
  }
  return medianOf(each);
}

/// Microseconds of the host for the first call of each of so many counts, and until it is done.
struct FirstCalls {
  double call = 0, done = 0;
};
FirstCalls firstCalls(const std::vector<Rank> &ranks, uint64_t firstCount) {
  constexpr uint32_t kCounts = 64;
  std::barrier meeting(static_cast<std::ptrdiff_t>(ranks.size()));
  std::vector<double> done;
  const std::vector<double> calls = inThreads(ranks, [&](const Rank &rank) {
    std::vector<double> mine;
    for (uint32_t i = 0; i < kCounts; ++i) {
      meeting.arrive_and_wait();
      const auto begin = Clock::now();
      rank.allReduce(firstCount + i);
      mine.push_back(microsecondsSince(begin));
      rank.synchronize();
      if (&rank == &ranks[0])
        done.push_back(microsecondsSince(begin));
    }
    return mine;
  });
  return {medianOf(calls), medianOf(done)};
}

/// Milliseconds for the gradients of ResNet-50, one call after the other, until all are done.
struct Step {
  double done = 0, host = 0, longest = 0; // of the host's time for one call
};
Step trainingStep(const std::vector<Rank> &ranks) {
  const std::vector<uint64_t> counts = resnet50Counts();
  std::barrier meeting(static_cast<std::ptrdiff_t>(ranks.size()));
  const std::vector<double> took = inThreads(ranks, [&](const Rank &rank) -> std::vector<double> {
    meeting.arrive_and_wait();
    const auto begin = Clock::now();
    double longest = 0;
    for (uint64_t count : counts) {
      const auto call = Clock::now();
      rank.allReduce(count);
      longest = std::max(longest, microsecondsSince(call));
    }
    const double host = microsecondsSince(begin);
    rank.synchronize();
    return {microsecondsSince(begin) / 1000, host / 1000, longest / 1000};
  });
  return {took[0], took[1], took[2]};
}

void measure(uint32_t numRanks) {
  const auto row = [](const char *what, const char *unit, double value) {
    std::printf("| %s | %.2f %s |\n", what, value, unit);
    std::fflush(stdout);
  };
  int devices = 0;
  require(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0, "no CUDA device");
  const double ranksOnDevice = (numRanks + devices - 1) / devices;
  const auto megabytes = [&](uint64_t from, uint64_t to) {
    return static_cast<double>(from - to) / (1 << 20) / ranksOnDevice;
  };
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.heapBytes = 1 << 20; // no buffers of occlMemAlloc
  const uint64_t before = freeBytes(0);
  std::vector<LatencyRank> made = makeLatencyRanks(numRanks, config, 256);
  const uint64_t withOne = freeBytes(0);
  std::vector<LatencyRank> further = makeLatencyRanks(numRanks, config, 256);
  const uint64_t withTwo = freeBytes(0);
  std::printf("%u ranks, %d devices\n\n| what | |\n|---|---:|\n", numRanks, devices);
  row("device memory of a rank, CUDA's context and kernels included", "MiB",
      megabytes(before, withOne));
  row("of a rank of a further communicator", "MiB", megabytes(withOne, withTwo));
  destroyLatencyRanks(further);

  const std::vector<Rank> ranks(made.begin(), made.end());
  const FirstCalls small = firstCalls(ranks, 1000), large = firstCalls(ranks, 1 << 20);
  row("first call of a shape, 4 KB, host", "us", small.call);
  row("until it is done", "us", small.done);
  row("first call of a shape, 4 MiB, host", "us", large.call);
  row("until it is done", "us", large.done);
  for (const char *what : {"161 counts, each called once, until all are done", "the same again"}) {
    const Step step = trainingStep(ranks);
    row(what, "ms", step.done);
    row("of it until the host has made the calls", "ms", step.host);
    row("of it the longest call", "ms", step.longest);
  }
  row("a launch of an empty kernel, for comparison", "us", launchTime(ranks));
  row("a copy of 4 KiB to the device and the wait for it", "us", copyTime());
  for (uint32_t numStreams : {1u, kStreams}) {
    const HostTime time = hostTime(ranks, numStreams);
    row(numStreams == 1 ? "host time of a call, known shape, one stream" : "four streams in turn",
        "us", time.call);
    row("of it until CUDA's launch, and behind it", "us", time.call - time.launch);
  }
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  const uint32_t ranks = argc == 2 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 0;
  if (ranks == 0 || ranks > 8) {
    std::fprintf(stderr, "usage: call_costs <ranks, 1 to 8>\n");
    return 2;
  }
  occl::bench::measure(ranks);
  std::fflush(stdout);
  std::_Exit(0); // the ranks' memory ends with the process
}
