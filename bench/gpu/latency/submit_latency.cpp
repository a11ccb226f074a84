// submit_latency <ranks> <thread blocks of the daemon> <all-reduce plan>...: what an all-reduce
// takes on CUDA devices, with ranks that are threads, on as many devices as there are; several on
// one if need be. From host to host: occlStart and occlWait; and occlCall, occlStart after the
// stream with occlStreamWait, and NCCL with a wait for the stream; then of many in a stream, each.
// The first plan that serves a size is taken. NCCL needs a device for each rank, and libnccl.so.2.
// OCCL_BENCH_BYTES: occlStart and occlWait of so many bytes alone, which is what a trace
// (OCCL_TRACE) is wanted of.
#include "bench/gpu/latency/latency_ranks.h"
#include "bench/gpu/nccl_library.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace occl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kWarmUp = 200, kMeasured = 2000;
constexpr uint32_t kInRow = 100; // of a stream, less than a daemon takes at once
constexpr uint64_t kLargest = 4 << 20;

class Rank : public LatencyRank {
public:
  explicit Rank(const LatencyRank &rank) : LatencyRank(rank) {}

  void *nccl = nullptr; // a communicator, or none

  /// Microseconds: medians.
  struct Times {
    double run = 0, runMost = 0, called = 0, calledMost = 0;
    double streamed = 0, nccl = 0, streamedInRow = 0, calledInRow = 0;
  };
  /// runsAlone: occlStart and occlWait and nothing else.
  Times measure(uint64_t id, const std::vector<occlPlan_t> &plans, uint64_t bytes,
                const NcclLibrary &library, bool runsAlone) {
    require(cudaSetDevice(device) == cudaSuccess, "cudaSetDevice");
    occlCall_t call = callOf(*this, plans, bytes);
    call.id = id;
    auto streamed = [&] { startInStream(*this, call); };
    auto called = [&] { require(occlCall(comm, &call, stream) == occlSuccess, "occlCall"); };
    auto run = [&] {
      occlRequest_t request = 0;
      require(occlStart(comm, &call, nullptr, nullptr, &request) == occlSuccess, "occlStart");
      require(occlWait(comm, request) == occlSuccess, "occlWait");
    };
    auto byNccl = [&] {
      requireNccl(library.allReduce(input, output, bytes / sizeof(float), kNcclFloat32, kNcclSum,
                                    nccl, stream),
                  "ncclAllReduce");
    };
    const std::vector<double> runs = each(run, 1, kMeasured, [] {});
    Times times;
    times.run = runs[runs.size() / 2];
    times.runMost = runs[runs.size() * 99 / 100];
    if (runsAlone)
      return times;
    const auto empty = [&] {
      require(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
    };
    const auto median = [&](const auto &invoke, uint32_t number) {
      return each(invoke, number, kMeasured / number, empty)[kMeasured / number / 2];
    };
    const std::vector<double> calls = each(called, 1, kMeasured, empty);
    times.called = calls[calls.size() / 2];
    times.calledMost = calls[calls.size() * 99 / 100];
    times.streamed = median(streamed, 1);
    times.nccl = nccl ? median(byNccl, 1) : 0;
    times.streamedInRow = median(streamed, kInRow);
    times.calledInRow = median(called, kInRow);
    return times;
  }

private:
  /// Of `times` times `number` of them and a wait: of each, in ascending order.
  template <class Do, class Wait>
  std::vector<double> each(const Do &invoke, uint32_t number, uint32_t times, const Wait &wait) {
    std::vector<double> each;
    for (uint32_t i = 0; i < kWarmUp / number + times; ++i) {
      auto begin = Clock::now();
      for (uint32_t n = 0; n < number; ++n)
        invoke();
      wait();
      std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      if (i >= kWarmUp / number)
        each.push_back(took.count() / number);
    }
    std::ranges::sort(each);
    return each;
  }
};

/// Gives each rank a communicator of NCCL, if there is one and each has a device.
void joinNccl(NcclLibrary &library, std::vector<Rank> &ranks) {
  int (*initAll)(void **, int, const int *) = nullptr;
  int devices = 0;
  require(cudaGetDeviceCount(&devices) == cudaSuccess, "cudaGetDeviceCount");
  if (static_cast<size_t>(devices) < ranks.size() || !library.open() ||
      !library.find(initAll, "ncclCommInitAll"))
    return;
  std::vector<void *> comms(ranks.size());
  requireNccl(initAll(comms.data(), static_cast<int>(ranks.size()), nullptr), "ncclCommInitAll");
  for (size_t r = 0; r < ranks.size(); ++r)
    ranks[r].nccl = comms[r];
  std::printf("NCCL %s\n\n", library.version().c_str());
}

void leaveNccl(NcclLibrary &library, std::vector<Rank> &ranks) {
  int (*destroy)(void *) = nullptr;
  for (Rank &rank : ranks)
    if (rank.nccl && library.find(destroy, "ncclCommDestroy"))
      requireNccl(destroy(rank.nccl), "ncclCommDestroy");
}

void measureAll(std::vector<Rank> &ranks, const std::vector<occlPlan_t> &plans,
                const NcclLibrary &library) {
  uint64_t id = 0;
  const char *given = std::getenv("OCCL_BENCH_BYTES");
  const uint64_t only = given ? std::strtoull(given, nullptr, 10) : 0;
  require(only <= kLargest, "OCCL_BENCH_BYTES is too large");
  std::printf("| bytes | occlStart | 99 %% | occlCall | 99 %% | in the stream | NCCL | "
              "in the stream, in a row | occlCall in a row |\n"
              "|---|---|---|---|---|---|---|---|---|\n");
  for (uint64_t bytes = only ? only : 1 << 10; bytes <= (only ? only : kLargest); bytes *= 4) {
    ++id;
    std::vector<Rank::Times> times(ranks.size());
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < ranks.size(); ++r)
      threads.emplace_back(
          [&, r] { times[r] = ranks[r].measure(id, plans, bytes, library, only != 0); });
    for (std::thread &thread : threads)
      thread.join();
    const Rank::Times &took = times[0];
    std::printf("| %llu | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n",
                static_cast<unsigned long long>(bytes), took.run, took.runMost, took.called,
                took.calledMost, took.streamed, took.nccl, took.streamedInRow, took.calledInRow);
    std::fflush(stdout);
  }
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  using namespace occl::bench;
  const LatencyArguments arguments = latencyArguments(argc, argv, "submit_latency");
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.workers = arguments.blocks;
  config.arenaBytes = 512ull << 20;
  std::vector<LatencyRank> made = makeLatencyRanks(arguments.numRanks, config, kLargest);
  std::vector<Rank> ranks(made.begin(), made.end());
  NcclLibrary library;
  joinNccl(library, ranks);
  measureAll(ranks, arguments.plans, library);
  leaveNccl(library, ranks);
  destroyLatencyRanks(made);
  for (occlPlan_t plan : arguments.plans)
    occlPlanDestroy(plan);
}
