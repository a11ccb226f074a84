// Time of small all-reduces on ranks that are threads of one process, submission to completion,
// through wait() and through a callback: what the runtime itself costs.
#include "bench/runtime/checked.h"
#include "plan/testing/example_plans.h"
#include "runtime/communicator/handles.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kElements = 16; // 64 bytes
constexpr uint64_t kIterations = 20000;
constexpr uint64_t kId = 1;

using occl::bench::check;

double cpuMicroseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

void throughWait(occlComm_t comm, const float *input, float *output) {
  occlRequest_t request = 0;
  check(occlSubmit(comm, kId, input, output, nullptr, nullptr, &request));
  check(occlWait(comm, request));
}

void throughCallback(occlComm_t comm, const float *input, float *output) {
  std::atomic<bool> ended{false};
  occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
    static_cast<std::atomic<bool> *>(user)->store(true, std::memory_order_release);
  };
  check(occlSubmit(comm, kId, input, output, callback, &ended, nullptr));
  while (!ended.load(std::memory_order_acquire))
    std::this_thread::yield();
}

/// How a measurement ends its operations.
struct Way {
  const char *label;
  void (*operate)(occlComm_t, const float *, float *);
  bool callbacksNeverBlock;
};

void measure(const Way &way, uint32_t numRanks) {
  std::vector<occlComm_t> comms(numRanks);
  check(occlCommInitAll(comms.data(), numRanks, nullptr));
  std::shared_ptr<occlPlan> plan(
      occl::communicator::adoptPlan(occl::plan::testing::oneShotAllReduce(numRanks)),
      occlPlanDestroy);
  std::vector<double> wall(numRanks), cpu(numRanks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < numRanks; ++r)
    threads.emplace_back([&, r] {
      occlPlan_t handle = plan.get();
      occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
      collective.id = kId;
      collective.plans = &handle;
      collective.numPlans = 1;
      collective.count = kElements;
      collective.callbacksNeverBlock = way.callbacksNeverBlock;
      check(occlRegister(comms[r], &collective));
      std::vector<float> input(kElements, 1), output(kElements);
      for (uint64_t i = 0; i < kIterations / 10; ++i)
        way.operate(comms[r], input.data(), output.data());
      auto start = std::chrono::steady_clock::now();
      double cpuStart = cpuMicroseconds();
      for (uint64_t i = 0; i < kIterations; ++i)
        way.operate(comms[r], input.data(), output.data());
      cpu[r] = (cpuMicroseconds() - cpuStart) / kIterations;
      std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
      wall[r] = passed.count() / kIterations;
    });
  for (std::thread &thread : threads)
    thread.join();
  std::printf(
      "%-22s %2u ranks  %8.3f us an operation, %8.3f us of the calling thread's processor time\n",
      way.label, numRanks, *std::max_element(wall.begin(), wall.end()),
      *std::max_element(cpu.begin(), cpu.end()));
  for (occlComm_t comm : comms)
    check(occlCommDestroy(comm));
}

} // namespace

int main() {
  for (uint32_t numRanks : {1u, 2u, 4u, 8u})
    for (const Way &way :
         {Way{"wait", throughWait, false}, Way{"callback, never blocks", throughCallback, true},
          Way{"callback, may block", throughCallback, false}})
      measure(way, numRanks);
}
