// Time of 64-byte all-reduces on ranks that are threads of one process, submission to completion,
// in one call, started and waited for, and through a callback: what the runtime itself costs. Of
// callbacks also from the start until the callback begins; the rest is the way back to the thread
// that has started it. Data and flag travel together (LL128).
#include "bench/runtime/checked.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr uint64_t kElements = 16; // 64 bytes
/// The median over many short runs: what interrupts some of them does not count.
constexpr uint32_t kRuns = 1000, kOperations = 20;

using occl::bench::callOf;
using occl::bench::check;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

/// From the start until the callback begins; 0 without one.
using UntilCallback = Microseconds;

UntilCallback throughWait(occlComm_t comm, const occlCall_t &call) {
  check(occlWait(comm, occl::bench::start(comm, call)));
  return {};
}

UntilCallback inOneCall(occlComm_t comm, const occlCall_t &call) {
  check(occlCall(comm, &call, nullptr));
  return {};
}

/// The program goes on when its thread has seen that the callback has been called.
UntilCallback throughCallback(occlComm_t comm, const occlCall_t &call) {
  struct Seen {
    Clock::time_point began;
    std::atomic<bool> ended{false};
  } seen;
  occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
    auto *seen = static_cast<Seen *>(user);
    seen->began = Clock::now();
    seen->ended.store(true, std::memory_order_release);
  };
  const auto started = Clock::now();
  check(occlStart(comm, &call, callback, &seen, nullptr));
  while (!seen.ended.load(std::memory_order_acquire))
    std::this_thread::yield();
  return seen.began - started;
}

/// How a measurement ends its operations.
struct Way {
  const char *label;
  UntilCallback (*operate)(occlComm_t, const occlCall_t &);
  bool callbacksNeverBlock;
};

/// Ranks are spread over the processors, whatever else the machine does.
void takeProcessor(uint32_t rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(rank % std::thread::hardware_concurrency(), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Microseconds of an operation, one value a run, ascending: in all, and until the callback.
struct Times {
  std::vector<double> all, untilCallback;
};

Times timesOf(const Way &way, occlComm_t comm, occlPlan_t plan) {
  std::vector<float> input(kElements, 1), output(kElements);
  occlCall_t call = callOf(plan, input.data(), output.data(), kElements);
  call.callbacksNeverBlock = way.callbacksNeverBlock;
  Times times;
  for (uint32_t run = 0; run < kRuns; ++run) {
    UntilCallback untilCallback{};
    const auto start = Clock::now();
    for (uint32_t i = 0; i < kOperations; ++i)
      untilCallback += way.operate(comm, call);
    times.all.push_back(Microseconds(Clock::now() - start).count() / kOperations);
    times.untilCallback.push_back(untilCallback.count() / kOperations);
  }
  std::ranges::sort(times.all);
  std::ranges::sort(times.untilCallback);
  return times;
}

/// Of the rank that takes longest.
void print(const char *label, const std::vector<Times> &ranks, std::vector<double> Times::*which) {
  auto worst = [&](uint32_t run) {
    double most = 0;
    for (const Times &ofRank : ranks)
      most = std::max(most, (ofRank.*which)[run]);
    return most;
  };
  std::printf("%-28s %2zu ranks  %8.3f us an operation (a tenth of the runs %8.3f or less, p99 "
              "%8.3f)\n",
              label, ranks.size(), worst(kRuns / 2), worst(kRuns / 10), worst(kRuns * 99 / 100));
}

void measure(const Way &way, uint32_t numRanks) {
  std::vector<occlComm_t> comms(numRanks);
  check(occlCommInitAll(comms.data(), numRanks, nullptr));
  occl::plan::Plan made = occl::plan::testing::oneShotAllReduce(numRanks);
  if (numRanks > 1)
    made.protocol = occl::plan::Protocol::LL128;
  std::shared_ptr<occlPlan> plan(occl::communicator::adoptPlan(std::move(made)), occlPlanDestroy);
  std::vector<Times> times(numRanks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < numRanks; ++r)
    threads.emplace_back([&, r] {
      takeProcessor(r);
      times[r] = timesOf(way, comms[r], plan.get());
    });
  for (std::thread &thread : threads)
    thread.join();
  print(way.label, times, &Times::all);
  if (way.operate == throughCallback)
    print("  until it begins", times, &Times::untilCallback);
  for (occlComm_t comm : comms)
    check(occlCommDestroy(comm));
}

} // namespace

/// Arguments: numbers of ranks; the usual ones if there are none.
int main(int argc, char **argv) {
  std::vector<uint32_t> sizes;
  for (int i = 1; i < argc; ++i)
    sizes.push_back(static_cast<uint32_t>(std::clamp(std::atoi(argv[i]), 1, 64)));
  if (sizes.empty())
    sizes = {1, 2, 4, 8};
  for (uint32_t numRanks : sizes)
    for (const Way &way : {Way{"call", inOneCall, false}, Way{"wait", throughWait, false},
                           Way{"callback, never blocks", throughCallback, true},
                           Way{"callback, may block", throughCallback, false}})
      measure(way, numRanks);
}
