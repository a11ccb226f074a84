// resident_measure: what resident daemons cost, with several ranks on one GPU: from submission to
// completion seen by the host, conflicting orders against equal ones.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/resident/testing/one_device.h"
#include "runtime/cuda/resident/testing/orders.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLong = std::chrono::seconds(20);

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void require(const Status &status) {
  if (status.ok())
    return;
  std::printf("FAILED: %s\n", status.message().c_str());
  std::fflush(stdout);
  std::_Exit(1); // other threads are still at it
}

DaemonOptions optionsWith(uint32_t numExecutors) {
  DaemonOptions options;
  options.kernel = &floatSumKernel();
  options.settings.numExecutors = numExecutors;
  return options;
}

/// A one-shot all-reduce of 1 KiB, a host thread for each rank: rank 0's times, sorted.
std::vector<double> latencies(uint32_t numRanks, const DaemonOptions &options) {
  constexpr uint32_t kWarmUp = 200, kMeasured = 3000;
  OneDevice group(numRanks, options);
  require(group.add(plan::testing::oneShotAllReduce(numRanks), 256));
  group.setInputs(0);
  std::vector<double> times;
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < numRanks; ++r)
    threads.emplace_back([&, r] {
      for (uint32_t i = 0; i < kWarmUp + kMeasured; ++i) {
        auto begin = Clock::now();
        auto request = group.submit(r, 0);
        require(request.status());
        require(group.daemon(r).wait(*request, kLong));
        if (r == 0 && i >= kWarmUp)
          times.push_back(microsecondsSince(begin));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  require(group.check(0));
  std::ranges::sort(times);
  return times;
}

void measureLatency() {
  for (uint32_t numExecutors : {1u, 4u})
    for (uint32_t numRanks : {1u, 2u, 4u, 8u}) {
      auto times = latencies(numRanks, optionsWith(numExecutors));
      std::printf("1 KiB host to host, %u ranks, %u executors each: median %.1f us, 99%% %.1f us\n",
                  numRanks, numExecutors, times[times.size() / 2], times[times.size() * 99 / 100]);
      std::fflush(stdout);
    }
}

/// Microseconds a collective: eight all-reduces in flight on each of eight ranks.
double timeOrders(uint64_t bytes, bool conflicting, uint32_t numExecutors) {
  constexpr uint32_t kRanks = 8, kCollectives = 8, kIterations = 50;
  OneDevice group(kRanks, optionsWith(numExecutors));
  for (uint32_t c = 0; c < kCollectives; ++c)
    require(group.add(plan::testing::twoShotAllReduce(kRanks), bytes / sizeof(float)));
  group.setInputs(0);
  require(runOrders(group, 5, conflicting, kLong, kNothing));
  auto begin = Clock::now();
  require(runOrders(group, kIterations, conflicting, kLong, kNothing));
  double time = microsecondsSince(begin) / (kIterations * kCollectives);
  require(group.check(0));
  for (uint32_t r = 0; r < kRanks; ++r)
    require(group.daemon(r).waitForQuit(kLong));
  printCounts(group);
  return time;
}

void measureOrders() {
  for (uint64_t bytes : {1ull << 10, 64ull << 10, 1ull << 20, 4ull << 20})
    for (bool conflicting : {false, true, false, true}) {
      double time = timeOrders(bytes, conflicting, 8);
      std::printf("eight all-reduces of %llu bytes, %s orders: %.1f us each\n",
                  static_cast<unsigned long long>(bytes), conflicting ? "conflicting" : "equal",
                  time);
      std::fflush(stdout);
    }
}

} // namespace

int main() {
  measureLatency();
  measureOrders();
}
