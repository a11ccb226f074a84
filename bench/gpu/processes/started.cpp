// gpu_started <ranks>: all-reduces that the resident daemon executes beside calls in a stream, each
// rank a process on a GPU of its own, buffers of cudaMalloc. Every sum is checked before anything
// is timed. Microseconds each: one started after the other, four in flight, and in a stream.
#include "bench/gpu/processes/measured.h"
#include "bench/gpu/processes/together.h"
#include "bench/gpu/timing.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace occl::bench {
namespace {

constexpr uint64_t kSmallest = 4 << 10, kLargest = 256 << 20;
constexpr uint32_t kInFlight = 4;

/// One rank, with buffers for each of what is in flight.
class Started {
public:
  Started(Together &together, uint32_t rank) : together(together), rank(rank) {
    occl = Occl::join(together, rank, "allreduce", {}, true);
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (Buffers &each : buffers) {
      require(cudaMalloc(&each.input, kLargest), "cudaMalloc");
      require(cudaMalloc(&each.output, kLargest), "cudaMalloc");
    }
  }

  void table(Type type) {
    fill(type);
    if (rank == 0)
      std::printf("\nus a collective\n\n| bytes of %s | started | four in flight | in a stream | "
                  "stream / started |\n"
                  "|---|---:|---:|---:|---:|\n",
                  type == Type::Float32 ? "float" : "bfloat16");
    for (uint64_t bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
      const occlCall_t call = occl->callOfKind(bytes / sizeOf(type), type);
      check(call, type);
      const auto times =
          static_cast<uint32_t>(std::clamp<uint64_t>((uint64_t{1} << 30) / bytes, 4, 200));
      const double one = time(times, 1, call), four = time(times / kInFlight, kInFlight, call);
      const double inStream = timeInStream(together, rank, stream, 2, times, [&] {
        occl->enqueue(call, buffers[0].input, buffers[0].output, stream);
      });
      if (rank == 0)
        std::printf("| %llu |%s%s%s %.2f |\n", static_cast<unsigned long long>(bytes),
                    cell(one).c_str(), cell(four).c_str(), cell(inStream).c_str(), inStream / one);
      std::fflush(stdout);
    }
  }

private:
  struct Buffers {
    char *input = nullptr, *output = nullptr; // until the process ends
  };

  /// Ones of each rank: all sums are small whole numbers.
  void fill(Type type) {
    const std::vector<uint32_t> ones(kLargest / 4,
                                     type == Type::Float32 ? kOne : kOne | kOne >> 16);
    for (Buffers &each : buffers)
      require(cudaMemcpy(each.input, ones.data(), kLargest, cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  void check(const occlCall_t &call, Type type) {
    const uint64_t bytes = call.count * sizeOf(type);
    require(cudaMemset(buffers[0].output, 0, bytes), "cudaMemset");
    together.meet();
    run(1, call);
    std::vector<uint32_t> sums(bytes / 4);
    require(cudaMemcpy(sums.data(), buffers[0].output, bytes, cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    const auto sum = static_cast<float>(together.size());
    uint32_t word = 0;
    static_assert(sizeof sum == sizeof word);
    std::copy_n(reinterpret_cast<const char *>(&sum), sizeof sum, reinterpret_cast<char *>(&word));
    if (type == Type::Bfloat16)
      word |= word >> 16;
    if (std::ranges::all_of(sums, [&](uint32_t each) { return each == word; }))
      return;
    std::fprintf(stderr, "rank %u: a wrong sum of %llu bytes\n", rank,
                 static_cast<unsigned long long>(bytes));
    std::exit(1);
  }

  void run(uint32_t inFlight, const occlCall_t &call) {
    std::array<uint64_t, kInFlight> requests{};
    for (uint32_t i = 0; i < inFlight; ++i)
      requests[i] = occl->start(i + 1, call, buffers[i].input, buffers[i].output);
    for (uint32_t i = 0; i < inFlight; ++i)
      occl->wait(requests[i]);
  }

  /// Microseconds each, of the slowest rank.
  double time(uint32_t times, uint32_t inFlight, const occlCall_t &call) {
    run(inFlight, call);
    together.meet();
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < times; ++i)
      run(inFlight, call);
    return together.largest(microsecondsSince(begin) / times / inFlight, rank);
  }

  static constexpr uint32_t kOne = 0x3f800000; // 1.0f; its upper half is that of bfloat16

  Together &together;
  const uint32_t rank;
  std::unique_ptr<Occl> occl;
  cudaStream_t stream = nullptr;
  std::array<Buffers, kInFlight> buffers;
};

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  using namespace occl::bench;
  setenv("OCCL_BENCH_ARENA_MIB", "1280", 0); // as much as a communicator has by default
  return Together::main(argc, argv, [](Together &together, uint32_t rank) {
    Started started(together, rank);
    started.table(Type::Float32);
    started.table(Type::Bfloat16);
    return 0;
  });
}
