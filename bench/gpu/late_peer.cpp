// late_peer <ranks> <thread blocks of the daemon> <all-reduce plan>...: how long an all-reduce
// submitted to a stream takes when another rank comes late, with a lookout and in strict mode: on
// the rank that waits, from the late rank's call until its stream is empty. Ranks are threads, on
// as many devices as there are.
#include "runtime/communicator/occl.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kTimes = 300;
constexpr uint64_t kBytes = 16 << 10;
constexpr std::chrono::microseconds kDelays[] = {0us, 100us, 1000us, 10000us, 30000us};

void require(bool isRight, const char *what) {
  if (isRight)
    return;
  std::printf("FAILED: %s: %s\n", what, occlGetLastError());
  std::fflush(stdout);
  std::_Exit(1); // other threads are still at it
}

struct Rank {
  occlComm_t comm = nullptr;
  int device = 0;
  cudaStream_t stream = nullptr;
  void *input = nullptr, *output = nullptr;
};

void submit(Rank &rank) {
  require(occlSubmitOnStream(rank.comm, 1, rank.input, rank.output, rank.stream, nullptr, nullptr,
                             nullptr) == occlSuccess,
          "occlSubmitOnStream");
}

/// Not by sleeping, which ends when it likes.
void pass(std::chrono::microseconds time) {
  for (auto end = Clock::now() + time; Clock::now() < end;)
    ;
}

/// In microseconds, ascending: the first rank is there at once, the last one `delay` later.
std::vector<double> measure(std::vector<Rank> &ranks, std::chrono::microseconds delay) {
  std::vector<double> took;
  std::barrier<> met(static_cast<ptrdiff_t>(ranks.size()));
  std::atomic<Clock::rep> lateAt{0};
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] {
      Rank &rank = ranks[r];
      require(cudaSetDevice(rank.device) == cudaSuccess, "cudaSetDevice");
      for (uint32_t i = 0; i < kTimes; ++i) {
        met.arrive_and_wait();
        if (r + 1 == ranks.size()) {
          pass(delay);
          lateAt = Clock::now().time_since_epoch().count();
        }
        submit(rank);
        require(cudaStreamSynchronize(rank.stream) == cudaSuccess, "cudaStreamSynchronize");
        const auto end = Clock::now();
        met.arrive_and_wait();
        if (r == 0)
          took.push_back(std::chrono::duration<double, std::micro>(
                             end - Clock::time_point(Clock::duration(lateAt.load())))
                             .count());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  std::ranges::sort(took);
  return took;
}

void measureAll(uint32_t numRanks, uint32_t blocks, const std::vector<occlPlan_t> &plans,
                bool isStrict) {
  int devices = 0;
  require(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0, "no CUDA device");
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.workers = blocks;
  config.strict = isStrict ? 1 : 2;
  std::vector<occlComm_t> comms(numRanks);
  require(occlCommInitAll(comms.data(), numRanks, &config) == occlSuccess, "occlCommInitAll");
  std::vector<Rank> ranks(numRanks);
  for (uint32_t r = 0; r < numRanks; ++r) {
    ranks[r].comm = comms[r];
    ranks[r].device = static_cast<int>(r) % devices;
    require(cudaSetDevice(ranks[r].device) == cudaSuccess, "cudaSetDevice");
    for (void **buffer : {&ranks[r].input, &ranks[r].output})
      require(occlMemAlloc(comms[r], kBytes, buffer) == occlSuccess, "occlMemAlloc");
    require(cudaStreamCreateWithFlags(&ranks[r].stream, cudaStreamNonBlocking) == cudaSuccess,
            "cudaStreamCreateWithFlags");
    occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
    collective.id = 1;
    collective.plans = plans.data();
    collective.numPlans = static_cast<uint32_t>(plans.size());
    collective.count = kBytes / sizeof(float);
    require(occlRegister(comms[r], &collective) == occlSuccess, "occlRegister");
  }
  measure(ranks, 0us);
  for (auto delay : kDelays) {
    const std::vector<double> took = measure(ranks, delay);
    std::printf("| %s | %lld | %.0f | %.0f | %.0f |\n", isStrict ? "strict" : "lookout",
                static_cast<long long>(delay.count()), took[took.size() / 10],
                took[took.size() / 2], took[took.size() * 9 / 10]);
    std::fflush(stdout);
  }
  for (Rank &rank : ranks)
    cudaStreamDestroy(rank.stream);
  for (occlComm_t comm : comms)
    require(occlCommDestroy(comm) == occlSuccess, "occlCommDestroy");
}

} // namespace

int main(int argc, char **argv) {
  auto number = [&](int i) {
    return argc > 3 ? static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)) : 0;
  };
  const uint32_t numRanks = number(1), blocks = number(2);
  if (numRanks == 0 || blocks == 0) {
    std::fprintf(stderr, "usage: late_peer <ranks> <thread blocks of the daemon> <plan>...\n");
    return 2;
  }
  std::vector<occlPlan_t> plans(static_cast<size_t>(argc) - 3);
  for (size_t p = 0; p < plans.size(); ++p)
    require(occlPlanLoad(argv[p + 3], &plans[p]) == occlSuccess, "occlPlanLoad");
  std::printf("| mode | late by, us | 10 %% | median | 90 %% |\n|---|---|---|---|---|\n");
  for (bool isStrict : {false, true})
    measureAll(numRanks, blocks, plans, isStrict);
  for (occlPlan_t plan : plans)
    occlPlanDestroy(plan);
}
