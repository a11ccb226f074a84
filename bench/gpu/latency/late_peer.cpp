// late_peer <ranks> <thread blocks of the daemon> <all-reduce plan>...: how long an all-reduce
// submitted to a stream takes when another rank comes late, with a lookout and in strict mode: on
// the rank that waits, from the late rank's call until its stream is empty. Ranks are threads, on
// as many devices as there are.
#include "bench/gpu/latency/latency_ranks.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace occl::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kTimes = 300;
constexpr uint64_t kBytes = 16 << 10;
constexpr std::chrono::microseconds kDelays[] = {0us, 100us, 1000us, 10000us, 30000us};

/// Not by sleeping, which ends when it likes.
void pass(std::chrono::microseconds time) {
  for (auto end = Clock::now() + time; Clock::now() < end;)
    ;
}

/// In microseconds, ascending: the first rank is there at once, the last one `delay` later.
std::vector<double> measure(const std::vector<LatencyRank> &ranks,
                            const std::vector<occlPlan_t> &plans, std::chrono::microseconds delay) {
  std::vector<double> took;
  std::barrier<> met(static_cast<ptrdiff_t>(ranks.size()));
  std::atomic<Clock::rep> lateAt{0};
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] {
      const LatencyRank &rank = ranks[r];
      require(cudaSetDevice(rank.device) == cudaSuccess, "cudaSetDevice");
      const occlCall_t call = callOf(rank, plans, kBytes);
      for (uint32_t i = 0; i < kTimes; ++i) {
        met.arrive_and_wait();
        if (r + 1 == ranks.size()) {
          pass(delay);
          lateAt = Clock::now().time_since_epoch().count();
        }
        startInStream(rank, call);
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

void measureAll(const LatencyArguments &arguments, bool isStrict) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.workers = arguments.blocks;
  config.strict = isStrict ? 1 : 2;
  std::vector<LatencyRank> ranks = makeLatencyRanks(arguments.numRanks, config, kBytes);
  measure(ranks, arguments.plans, 0us);
  for (auto delay : kDelays) {
    const std::vector<double> took = measure(ranks, arguments.plans, delay);
    std::printf("| %s | %lld | %.0f | %.0f | %.0f |\n", isStrict ? "strict" : "lookout",
                static_cast<long long>(delay.count()), took[took.size() / 10],
                took[took.size() / 2], took[took.size() * 9 / 10]);
    std::fflush(stdout);
  }
  destroyLatencyRanks(ranks);
}

} // namespace
} // namespace occl::bench

int main(int argc, char **argv) {
  using namespace occl::bench;
  const LatencyArguments arguments = latencyArguments(argc, argv, "late_peer");
  std::printf("| mode | late by, us | 10 %% | median | 90 %% |\n|---|---|---|---|---|\n");
  for (bool isStrict : {false, true})
    measureAll(arguments, isStrict);
  for (occlPlan_t plan : arguments.plans)
    occlPlanDestroy(plan);
}
