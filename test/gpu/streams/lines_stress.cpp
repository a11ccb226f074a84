// lines_stress [--seconds S] [--seed N] [--from I] [--ranks R]
//
// Collectives of protocol LL128, for as long as is asked for, of a communicator in each of several
// streams: every byte of every output is compared, while ranks come late at random and copies fill
// the links. What an iteration does is a
// function of the seed and its number, and the last line says with which arguments the next run
// goes on. Ranks are threads, on as many devices as there are. Exit status 1 if something was
// wrong; 0 without a device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/checked_rank.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace occl;
using namespace occl::gpu_test;

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kStreams = 3;
constexpr uint64_t kBufferBytes = 4 << 20, kTrafficBytes = 8 << 20;
constexpr uint64_t kBatch = 32; // iterations between two looks at what was found

struct Options {
  double seconds = 2;
  uint64_t seed = std::random_device()();
  uint64_t from = 0;
  uint32_t ranks = 0; // as many as devices, and two at least
};

bool read(int argc, char **argv, Options &options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char *value = argv[i + 1];
    if (name == "--seconds")
      options.seconds = std::strtod(value, nullptr);
    else if (name == "--seed")
      options.seed = std::strtoull(value, nullptr, 10);
    else if (name == "--from")
      options.from = std::strtoull(value, nullptr, 10) / kBatch * kBatch;
    else if (name == "--ranks")
      options.ranks = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
    else
      return false;
  }
  return argc % 2 == 1 && options.ranks <= 8;
}

/// Straight thread blocks and interpreted ones, steps that are made ready and those that are not,
/// reductions from registers and reductions that load again.
struct Shape {
  plan::Plan plan;
  Expected expected;
  std::vector<uint64_t> counts;
};

/// ranksEach: of a device. Straight thread blocks do not make way, so those of all streams have to
/// fit on it together.
std::vector<Shape> shapesFor(uint32_t n, uint32_t ranksEach) {
  using namespace plan::testing;
  std::vector<Shape> shapes;
  auto add = [&](plan::Plan plan, Expected expected, std::vector<uint64_t> counts) {
    plan.protocol = plan::Protocol::LL128;
    shapes.push_back({std::move(plan), expected, std::move(counts)});
  };
  add(oneShotInBlocks(n, 32 / ranksEach, plan::Protocol::LL128), Expected::Sum,
      {928, 20'000, 250'000});
  add(oneShotAllReduce(n), Expected::Sum, {7, 1003, 30'000});
  add(twoShotAllReduce(n), Expected::Sum, {1003 * n, 40'000 * n});
  add(ringAllReduce(n), Expected::Sum, {1003 * n, 80'000}); // a call has room for so many messages
  add(ringAllGather(n), Expected::Gathered, {1003, 20'000});
  add(allToAll(n), Expected::Transposed, {1003, 40'000});
  return shapes;
}

/// What a stream may have, and what its output is then.
struct Checked {
  Case what;
  CheckedCollective collective;
};

/// Of both types where there is something to add.
std::vector<Checked> casesOf(uint32_t numRanks, uint32_t ranksEach) {
  std::vector<Checked> cases;
  for (const Shape &shape : shapesFor(numRanks, ranksEach))
    for (uint64_t count : shape.counts)
      for (DataType type : {DataType::Int32, DataType::Float32}) {
        if (shape.expected != Expected::Sum && type != DataType::Int32)
          continue;
        Case what;
        what.plan = shape.plan;
        what.count = count;
        what.type = type;
        cases.push_back({what, checkedOf(what, shape.expected)});
      }
  return cases;
}

/// One rank's part; what all of them share is atomic or constant.
class Stress {
public:
  Stress(const Options &options, uint32_t devices)
      : options(options), devices(devices), comms(kStreams, std::vector<occlComm_t>(options.ranks)),
        met(static_cast<ptrdiff_t>(options.ranks)) {}

  int run() {
    occlConfig_t config = smallConfig();
    config.arenaBytes = 512 << 20;
    const uint32_t ranksEach = (options.ranks + devices - 1) / devices;
    config.streams = kStreams * ranksEach;
    for (auto &ofStream : comms)
      if (occlCommInitAll(ofStream.data(), options.ranks, &config) != occlSuccess)
        return fail(occlGetLastError());
    cases = casesOf(options.ranks, ranksEach);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < options.ranks; ++r)
      threads.emplace_back([this, r] { runRank(r); });
    for (std::thread &thread : threads)
      thread.join();
    for (const auto &ofStream : comms)
      for (occlComm_t comm : ofStream)
        occlCommDestroy(comm);
    report();
    return isWrong ? 1 : 0;
  }

private:
  static int fail(const char *why) {
    std::fprintf(stderr, "lines_stress: %s\n", why);
    return 1;
  }

  void report() const {
    const uint64_t iterations = next - options.from;
    std::printf("lines_stress: %u ranks on %u devices, seed %llu, iterations %llu to %llu, %llu "
                "collectives: %s; go on with --seed %llu --from %llu\n",
                options.ranks, devices, static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(options.from),
                static_cast<unsigned long long>(next),
                static_cast<unsigned long long>(iterations * kStreams),
                isWrong ? "WRONG" : "all right", static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(isWrong ? next - kBatch : next));
  }

  void runRank(uint32_t r) {
    cudaSetDevice(static_cast<int>(r % devices));
    CheckedRank rank({comms[0][r], comms[1][r], comms[2][r]}, r, options.ranks, kStreams,
                     kBufferBytes, false);
    Traffic traffic(static_cast<int>(r % devices), static_cast<int>((r + 1) % devices));
    met.arrive_and_wait(); // nothing is allocated or freed while others run
    const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
    for (uint64_t first = options.from; !isOver; first += kBatch) {
      std::string wrong;
      traffic.put(mixed(options.seed, first, r) % 8);
      for (uint64_t i = first; i < first + kBatch && wrong.empty(); ++i)
        wrong = iterate(rank, r, i);
      if (wrong.empty())
        wrong = rank.finish();
      if (!wrong.empty()) {
        std::fprintf(stderr, "iterations %llu to %llu: %s\n",
                     static_cast<unsigned long long>(first),
                     static_cast<unsigned long long>(first + kBatch), wrong.c_str());
        isWrong = true;
      }
      met.arrive_and_wait();
      if (r == 0) {
        next = first + kBatch;
        isOver = isWrong || Clock::now() > end;
      }
      met.arrive_and_wait();
    }
  }

  /// One collective in each stream.
  std::string iterate(CheckedRank &rank, uint32_t r, uint64_t iteration) const {
    constexpr uint64_t kLongest = 20'000; // nanoseconds
    for (uint32_t s = 0; s < kStreams; ++s) {
      const uint64_t key = mixed(options.seed, iteration, s);
      const uint64_t late = mixed(key, r);
      if (late % 8 == 0)
        spin(rank.stream(s), late / 8 % kLongest);
      const Checked &next = cases[key % cases.size()];
      std::string wrong = rank.run(s, next.what, next.collective, key);
      if (!wrong.empty())
        return wrong;
    }
    return "";
  }

  /// Copies to another device, beside everything else.
  class Traffic {
  public:
    Traffic(int from, int to) : from(from), to(to) {
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      cudaMalloc(&source, kTrafficBytes);
      cudaSetDevice(to);
      cudaMalloc(&destination, kTrafficBytes);
      cudaSetDevice(from);
    }
    ~Traffic() {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
      cudaFree(source);
      cudaFree(destination);
    }
    Traffic(const Traffic &) = delete;
    Traffic &operator=(const Traffic &) = delete;
    void put(uint64_t copies) {
      for (uint64_t i = 0; i < copies; ++i)
        cudaMemcpyPeerAsync(destination, to, source, from, kTrafficBytes, stream);
    }

  private:
    const int from, to;
    cudaStream_t stream = nullptr;
    void *source = nullptr, *destination = nullptr;
  };

  const Options options;
  const uint32_t devices;
  std::vector<std::vector<occlComm_t>> comms; // by stream and rank
  std::vector<Checked> cases;
  std::barrier<> met;
  std::atomic<bool> isWrong{false}, isOver{false};
  uint64_t next = 0; // by rank 0
};

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (!read(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: lines_stress [--seconds S] [--seed N] [--from I] [--ranks R (2 to 8)]\n");
    return 2;
  }
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); // before CUDA starts: all streams wait at times
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("lines_stress: no CUDA device, nothing was tried\n");
    return 0;
  }
  if (options.ranks == 0)
    options.ranks = static_cast<uint32_t>(std::clamp(devices, 2, 8));
  return Stress(options, static_cast<uint32_t>(devices)).run();
}
