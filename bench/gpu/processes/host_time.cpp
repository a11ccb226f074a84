// gpu_host_time <ranks> <libnccl.so.2>...: what a call of NCCL's interface costs the host, by each
// of the libraries in turn, each rank a process on a GPU of its own (several share one if need be).
// For each kind of call microseconds of the host, and until all of a row are done, of kInRow in a
// row; medians of kRounds, of the slowest rank. A name without a slash is searched for as programs
// do.
#include "bench/gpu/nccl_library.h"
#include "bench/gpu/processes/measured.h"
#include "bench/gpu/processes/nccl.h"
#include "bench/gpu/processes/together.h"
#include "bench/gpu/timing.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sched.h>
#include <string>
#include <vector>

namespace occl::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kRounds = 101, kInRow = 64, kTurns = 2;
constexpr size_t kSmall = 1 << 10, kMedium = 128 << 10, kMost = 16 << 20;

/// All-reduces in one group.
struct GroupOf {
  uint32_t calls;
  size_t bytes; // of each
};
constexpr GroupOf kGroups[] = {{2, 1 << 10},    {4, 1 << 10},   {16, 1 << 10},  {64, 1 << 10},
                               {4, 16 << 10},   {16, 16 << 10}, {2, 128 << 10}, {4, 128 << 10},
                               {16, 128 << 10}, {2, 1 << 20},   {4, 1 << 20}};

/// The same ones for every library: cores of a machine may differ.
void stayOnCores(uint32_t rank, uint32_t numRanks) {
  cpu_set_t given, chosen;
  CPU_ZERO(&chosen);
  require(sched_getaffinity(0, sizeof given, &given), "sched_getaffinity");
  const auto each = std::max(1u, static_cast<uint32_t>(CPU_COUNT(&given)) / numRanks);
  uint32_t seen = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &given) && seen++ / each == rank)
      CPU_SET(core, &chosen);
  if (CPU_COUNT(&chosen) != 0)
    require(sched_setaffinity(0, sizeof chosen, &chosen), "sched_setaffinity");
}

class Caller {
public:
  Caller(Together &together, uint32_t rank, const char *library) : together(together), rank(rank) {
    int devices = 0;
    require(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    require(cudaSetDevice(static_cast<int>(rank) % std::max(devices, 1)), "cudaSetDevice");
    nccl = Nccl::join(together, rank, library);
    if (!nccl) {
      std::fprintf(stderr, "%s is not found\n", library);
      std::exit(1);
    }
    for (cudaStream_t &stream : streams)
      require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (char **buffer : {&input, &output})
      require(cudaMalloc(buffer, kMost), "cudaMalloc");
    require(cudaMemset(input, 0, kMost), "cudaMemset");
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  void table(const char *library) {
    if (rank == 0)
      std::printf(
          "\n%s, NCCL %s\n\n| %u calls in a row | host, us a call | until done, us a call |\n"
          "|---|---:|---:|\n",
          library, nccl->version().c_str(), kInRow);
    measure("all-reduce, 1 KiB", [&](uint32_t) { sum(kSmall, streams[0]); });
    measure("all-reduce, 128 KiB", [&](uint32_t) { sum(kMedium, streams[0]); });
    for (const GroupOf &of : kGroups)
      measure(("group of " + std::to_string(of.calls) + " all-reduces, " +
               std::to_string(of.bytes >> 10) + " KiB")
                  .c_str(),
              [&](uint32_t) { sums(of); });
    measure("send and receive, 1 KiB", [&](uint32_t) { shift(kSmall); });
    measure("all-reduce, 1 KiB, two streams in turn",
            [&](uint32_t call) { sum(kSmall, streams[call % kTurns]); });
    measure("all-reduce, 1 KiB, after that", [&](uint32_t) { sum(kSmall, streams[0]); });
    captureOne();
    measure("all-reduce, 1 KiB, with a graph", [&](uint32_t) { sum(kSmall, streams[0]); });
  }

private:
  void sum(size_t bytes, cudaStream_t stream) {
    nccl->enqueue(Kind::AllReduce, input, output, bytes / sizeof(float), stream);
  }
  /// Of buffers of their own.
  void sums(const GroupOf &of) {
    nccl->group(true);
    for (uint32_t i = 0; i < of.calls; ++i)
      nccl->enqueue(Kind::AllReduce, input + i * of.bytes, output + i * of.bytes,
                    of.bytes / sizeof(float), streams[0]);
    nccl->group(false);
  }
  void shift(size_t bytes) {
    const uint32_t size = together.size();
    nccl->group(true);
    nccl->exchange(input, (rank + 1) % size, output, (rank + size - 1) % size, bytes, streams[0]);
    nccl->group(false);
  }
  void synchronize() {
    for (cudaStream_t stream : streams)
      require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  void measure(const char *what, const std::function<void(uint32_t)> &call) {
    std::vector<double> host, done;
    for (uint32_t round = 0; round < kRounds; ++round) {
      synchronize();
      together.meet();
      const auto begin = Clock::now();
      for (uint32_t i = 0; i < kInRow; ++i)
        call(i);
      host.push_back(microsecondsSince(begin) / kInRow);
      synchronize();
      done.push_back(microsecondsSince(begin) / kInRow);
    }
    const double slowestHost = together.largest(medianOf(host), rank);
    const double slowestDone = together.largest(medianOf(done), rank);
    if (rank == 0)
      std::printf("| %s | %.2f | %.2f |\n", what, slowestHost, slowestDone);
    std::fflush(stdout);
  }

  /// A graph of a call, which stays until the process ends.
  void captureOne() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    synchronize();
    require(cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeThreadLocal), "BeginCapture");
    sum(kSmall, streams[1]);
    require(cudaStreamEndCapture(streams[1], &graph), "cudaStreamEndCapture");
    require(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
    require(cudaGraphLaunch(replay, streams[0]), "cudaGraphLaunch");
    synchronize();
  }

  Together &together;
  const uint32_t rank;
  std::unique_ptr<Nccl> nccl;
  cudaStream_t streams[kTurns] = {};
  char *input = nullptr, *output = nullptr; // until the process ends
};

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  using namespace occl::bench;
  const unsigned long ranks = argc > 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (ranks < 2 || ranks > 8) {
    std::fprintf(stderr, "usage: gpu_host_time <ranks, 2 to 8> <libnccl.so.2>...\n");
    return 2;
  }
  int failed = 0;
  for (int library = 2; library < argc; ++library)
    failed += Together::run(static_cast<uint32_t>(ranks), [&](Together &together, uint32_t rank) {
      stayOnCores(rank, together.size());
      Caller(together, rank, argv[library]).table(argv[library]);
      std::_Exit(0); // what is captured goes with the process
      return 0;
    });
  return failed;
}
