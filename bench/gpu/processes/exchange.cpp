// gpu_exchange <ranks>: sends and receives beside NCCL's in the same processes, each rank a process
// on a GPU of its own, buffers of cudaMalloc. ring: each rank sends to the next one and receives
// from the one before, as pipelines do. pairs: each with each, as an all-to-all. Every result is
// checked before it is timed. A row for each size, of what goes to one rank: microseconds in a
// stream and in a graph, and NCCL's by ours.
#include "bench/gpu/processes/measured.h"
#include "bench/gpu/processes/nccl.h"
#include "bench/gpu/processes/together.h"
#include "runtime/api/occl.h"
#include "runtime/api/occl_transfer.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace occl::bench {
namespace {

constexpr uint64_t kSmallest = 1 << 10, kLargest = 1 << 30, kAll = uint64_t{2} << 30;
/// Of what may take a second.
constexpr uint32_t kWarmUps = 2;

enum class Shape { Ring, Pairs };

void requireOccl(occlResult_t result, const char *what) {
  if (result == occlSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, occlGetLastError());
  std::exit(1);
}

/// One rank of both libraries, and what it exchanges.
class Exchange {
public:
  Exchange(Together &together, uint32_t rank) : together(together), rank(rank) {
    require(cudaSetDevice(static_cast<int>(rank)), "cudaSetDevice");
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.deviceKind = occlDeviceCuda;
    config.device = rank;
    config.timeoutMs = 20000;
    const std::string name = "exchange-" + std::to_string(getppid());
    requireOccl(occlCommInitRank(&comm, together.size(), rank, name.c_str(), &config),
                "occlCommInitRank");
    nccl = Nccl::join(together, rank);
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    require(cudaMalloc(&input, kAll), "cudaMalloc");
    require(cudaMalloc(&output, kAll), "cudaMalloc");
    require(cudaMemset(input, static_cast<int>(rank + 1), kAll), "cudaMemset");
  }
  ~Exchange() { occlCommDestroy(comm); }

  void table(Shape shape) {
    if (rank == 0)
      std::printf(
          "\n| %s, bytes to a rank | OCCL | graph | NCCL %s | graph | NCCL / OCCL | graph |\n"
          "|---|---|---|---|---|---|---|\n",
          shape == Shape::Ring ? "ring" : "pairs", nccl ? nccl->version().c_str() : "-");
    const uint64_t largest = shape == Shape::Ring ? kLargest : kAll / together.size();
    for (uint64_t bytes = kSmallest; bytes <= largest; bytes *= 4) {
      const auto ours = measure(shape, bytes, [&] { enqueueOurs(shape, bytes); });
      std::pair<double, double> theirs = {0, 0};
      if (nccl)
        theirs = measure(shape, bytes, [&] { enqueueTheirs(shape, bytes); });
      if (rank == 0)
        std::printf("| %llu |%s%s%s%s %.2f | %.2f |\n", static_cast<unsigned long long>(bytes),
                    cell(ours.first).c_str(), cell(ours.second).c_str(), cell(theirs.first).c_str(),
                    cell(theirs.second).c_str(), theirs.first / ours.first,
                    theirs.second / ours.second);
      std::fflush(stdout);
    }
  }

private:
  uint32_t next() const { return (rank + 1) % together.size(); }
  uint32_t before() const { return (rank + together.size() - 1) % together.size(); }

  void enqueueOurs(Shape shape, uint64_t bytes) {
    requireOccl(occlGroupStart(), "occlGroupStart");
    const auto pair = [&](uint32_t to, uint32_t from, uint64_t out, uint64_t in) {
      requireOccl(occlSend(input + out, bytes, occlUint8, to, comm, stream), "occlSend");
      requireOccl(occlRecv(output + in, bytes, occlUint8, from, comm, stream), "occlRecv");
    };
    if (shape == Shape::Ring)
      pair(next(), before(), 0, 0);
    for (uint32_t r = 0; shape == Shape::Pairs && r < together.size(); ++r)
      pair(r, r, r * bytes, r * bytes);
    requireOccl(occlGroupEnd(), "occlGroupEnd");
  }
  void enqueueTheirs(Shape shape, uint64_t bytes) {
    nccl->group(true);
    if (shape == Shape::Ring)
      nccl->exchange(input, next(), output, before(), bytes, stream);
    for (uint32_t r = 0; shape == Shape::Pairs && r < together.size(); ++r)
      nccl->exchange(input + r * bytes, r, output + r * bytes, r, bytes, stream);
    nccl->group(false);
  }

  /// Every byte of what has come says from whom it is.
  void check(Shape shape, uint64_t bytes) {
    const uint32_t parts = shape == Shape::Ring ? 1 : together.size();
    std::vector<unsigned char> host(parts * bytes);
    require(cudaMemcpy(host.data(), output, host.size(), cudaMemcpyDeviceToHost), "copying");
    for (uint32_t part = 0; part < parts; ++part) {
      const auto want = static_cast<unsigned char>((shape == Shape::Ring ? before() : part) + 1);
      const auto begin = host.begin() + static_cast<ptrdiff_t>(part * bytes);
      if (std::all_of(begin, begin + static_cast<ptrdiff_t>(bytes),
                      [&](unsigned char byte) { return byte == want; }))
        continue;
      std::fprintf(stderr, "rank %u: wrong data of %llu bytes\n", rank,
                   static_cast<unsigned long long>(bytes));
      std::exit(1);
    }
  }
  /// Microseconds in a stream, and in a graph.
  std::pair<double, double> measure(Shape shape, uint64_t bytes,
                                    const std::function<void()> &enqueue) {
    require(cudaMemset(output, 0, kAll), "cudaMemset");
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    together.meet();
    enqueue();
    require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check(shape, bytes);
    const auto times =
        static_cast<uint32_t>(std::clamp<uint64_t>((uint64_t{1} << 31) / bytes, 5, 200));
    return {timeInStream(together, rank, stream, kWarmUps, times, enqueue),
            timeInGraph(together, rank, stream, kWarmUps, std::max(times / kInGraph, 2u), enqueue)};
  }

  Together &together;
  const uint32_t rank;
  occlComm_t comm = nullptr;
  std::unique_ptr<Nccl> nccl;
  cudaStream_t stream = nullptr;
  char *input = nullptr, *output = nullptr;
};

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  using namespace occl::bench;
  return Together::main(argc, argv, [](Together &together, uint32_t rank) {
    Exchange exchange(together, rank);
    exchange.table(Shape::Ring);
    exchange.table(Shape::Pairs);
    return 0;
  });
}
