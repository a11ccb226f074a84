// Processes that are killed or stopped at any moment, set-up included: the others get an error soon
// that says what they waited for, and go on without the lost one.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

using Clock = std::chrono::steady_clock;

constexpr uint32_t kRanks = 4;

/// Seen by all processes of a trial.
struct Shared {
  std::atomic<int64_t> faultAt{0}; // of the clock
  std::atomic<int64_t> longest{0}; // from the fault to an error, in ns
};

class SharedMemory {
public:
  SharedMemory()
      : memory(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0)) {
    new (memory) Shared;
  }
  ~SharedMemory() { munmap(memory, sizeof(Shared)); }
  Shared &operator*() const { return *static_cast<Shared *>(memory); }

private:
  void *memory;
};

struct Trial {
  std::string name;
  int signal = SIGKILL;
  uint32_t timeoutMs = 4000; // until a rank that was lost before it came is given up
  Shared *shared = nullptr;
};

void noteTime(Shared &shared) {
  int64_t faultAt = shared.faultAt.load(), now = Clock::now().time_since_epoch().count();
  int64_t longest = shared.longest.load();
  while (faultAt != 0 && now - faultAt > longest &&
         !shared.longest.compare_exchange_weak(longest, now - faultAt))
    ;
}

/// Starts all jobs in an order of its own, waits for them, and so on; the first error.
occlResult_t iterate(occlComm_t comm, std::vector<Job> &jobs, uint32_t rank) {
  for (uint32_t i = 0;; ++i) {
    std::vector<occlRequest_t> requests;
    for (uint32_t j : latinOrder(static_cast<uint32_t>(jobs.size()), rank, i)) {
      requests.emplace_back();
      occlResult_t result = jobs[j].submit(comm, rank, &requests.back());
      if (result != occlSuccess)
        return result;
    }
    for (occlRequest_t request : requests)
      if (occlResult_t result = occlWait(comm, request); result != occlSuccess)
        return result;
  }
}

std::string checkCause(occlResult_t result, const std::string &text) {
  if (result != occlPeerFailed && result != occlTimeout)
    return "not an error that this can be: " + text;
  for (const char *part : {"rank ", "collective '", "instruction ", ".coll:", " waits for "})
    if (text.find(part) == std::string::npos)
      return "does not name " + std::string(part) + ": " + text;
  return {};
}

std::string goOnWithoutTheLost(occlComm_t comm) {
  occlComm_t smaller = nullptr;
  if (occlCommShrink(comm, nullptr, 0, nullptr, &smaller) != occlSuccess)
    return lastError("occlCommShrink");
  uint32_t rank = 0, numRanks = 0;
  occlCommRank(smaller, &rank);
  occlCommSize(smaller, &numRanks);
  Job job(9, handleOf(ringAllReduce(numRanks)), 500);
  occlRequest_t request = 0;
  if (job.submit(smaller, rank, &request) != occlSuccess ||
      occlWait(smaller, request) != occlSuccess)
    return lastError("after the shrink");
  std::string wrong = job.check(rank);
  occlCommDestroy(smaller);
  return wrong;
}

std::string live(const Trial &trial, uint32_t rank) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = trial.timeoutMs;
  occlComm_t comm = nullptr;
  occlResult_t result = occlCommInitRank(&comm, kRanks, rank, trial.name.c_str(), &config);
  if (result != occlSuccess) {
    noteTime(*trial.shared);
    return result == occlPeerFailed || result == occlTimeout ? "" : lastError("set-up");
  }
  PlanHandle handle = handleOf(ringAllReduce(kRanks));
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < 3; ++j)
    jobs.emplace_back(j, handle, 2000);
  result = iterate(comm, jobs, rank);
  noteTime(*trial.shared);
  std::string wrong = checkCause(result, occlCommGetLastError(comm));
  if (wrong.empty())
    wrong = goOnWithoutTheLost(comm);
  occlCommDestroy(comm);
  return wrong;
}

void run(Trial trial, uint32_t victim, std::chrono::microseconds delay) {
  SharedMemory memory;
  trial.shared = &*memory;
  Processes processes(kRanks, [&](uint32_t rank) { return live(trial, rank); });
  std::this_thread::sleep_for(delay);
  trial.shared->faultAt.store(Clock::now().time_since_epoch().count());
  processes.signal(victim, trial.signal);
  for (uint32_t r = 0; r < kRanks; ++r)
    if (r != victim) {
      EXPECT_EQ(processes.join(r), 0) << "rank " << r << ", victim " << victim << " after "
                                      << delay.count() << " us: " << processes.wrong(r);
    }
  processes.kill(victim);
  processes.join(victim);
  std::printf("signal %d to rank %u after %5.1f ms: all had an error after %6.1f ms\n",
              trial.signal, victim, static_cast<double>(delay.count()) * 1e-3,
              static_cast<double>(trial.shared->longest.load()) * 1e-6);
  EXPECT_FALSE(std::filesystem::exists(meetingPath(trial.name)));
}

void runMany(uint32_t trials, int signal, uint32_t timeoutMs, uint32_t mostDelayMs) {
  const auto seed = static_cast<uint32_t>(printedSeed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (uint32_t t = 0; t < trials; ++t) {
    Trial trial;
    trial.name = jobName("faults") + "-" + std::to_string(signal) + "-" + std::to_string(t);
    trial.signal = signal;
    trial.timeoutMs = timeoutMs;
    run(trial, random() % kRanks, std::chrono::microseconds(random() % (mostDelayMs * 1000)));
  }
}

TEST(RandomFaults, KilledAtAnyMoment) { runMany(8, SIGKILL, 4000, 60); }

TEST(RandomFaults, StoppedWhileRunning) { runMany(2, SIGSTOP, 1500, 300); }

} // namespace
} // namespace occl::communicator::testing
