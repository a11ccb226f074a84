// Aborts at random moments, of programs that use their buffers again as soon as a call has
// returned.
//
// OCCL_FAULTS_ABORTS: how many; OCCL_TEST_SEED: the seed that was printed.
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/faults/at_once.h"
#include "test/faults/reused_buffers.h"
#include "test/faults/shared_record.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kRanks = 3;
constexpr uint32_t kMostDelayUs = 4000;
constexpr uint32_t kMostRounds = 1000000; // the abort ends it

struct Shared {
  std::atomic<uint32_t> begun{0}, returned{0}, checked{0}; // of all trials
  std::atomic<bool> isOver{false};                         // somebody has found something wrong
};

/// Until all ranks have come here in this trial. False: they do not.
bool meet(std::atomic<uint32_t> &count, uint32_t trial, const std::atomic<bool> &isOver) {
  count.fetch_add(1);
  for (auto end = std::chrono::steady_clock::now() + 60s * kSlowness;
       count.load() < (trial + 1) * kRanks; std::this_thread::sleep_for(50us))
    if (isOver.load() || std::chrono::steady_clock::now() > end)
      return false;
  return true;
}

std::string findForeign(const std::vector<Exchange> &all) {
  for (const Exchange &each : all)
    if (std::string foreign = each.findForeign(); !foreign.empty())
      return foreign;
  return {};
}

/// `aborts`: the rank that does, or none; `delay` after the ranks have begun.
std::string runTrial(occlComm_t comm, uint32_t trial, bool aborts, std::chrono::microseconds delay,
                     std::vector<Exchange> &all, Shared &shared) {
  if (!meet(shared.begun, trial, shared.isOver))
    return "the others do not begin";
  std::thread aborter([&] {
    if (!aborts)
      return;
    std::this_thread::sleep_for(delay);
    occlCommAbort(comm);
  });
  occlResult_t result = occlSuccess;
  std::string wrong = exchange(comm, all, kMostRounds, result);
  aborter.join();
  if (wrong.empty() && result != occlAborted)
    wrong = "not aborted: " + std::to_string(result) + " " + occlCommGetLastError(comm);
  if (!meet(shared.returned, trial, shared.isOver) && wrong.empty())
    wrong = "the others do not return";
  return wrong.empty() ? findForeign(all) : wrong;
}

std::string live(const std::string &name, uint32_t rank, uint32_t trials, uint32_t seed,
                 Shared &shared) {
  std::mt19937 random(seed); // the same on all ranks
  std::vector<Exchange> all = exchangesOfAllKinds(kRanks);
  occlConfig_t config = withTimeout(60000 * kSlowness);
  config.arenaBytes = 1 << 20;
  config.heapBytes = 8 << 20;
  std::string wrong;
  for (uint32_t trial = 0; trial < trials && wrong.empty(); ++trial) {
    occlComm_t comm = nullptr;
    const uint32_t aborter = random() % kRanks;
    const std::chrono::microseconds delay(random() % kMostDelayUs);
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), &config) != occlSuccess)
      wrong = lastError("occlCommInitRank");
    else
      wrong = runTrial(comm, trial, rank == aborter, delay, all, shared);
    if (wrong.empty() && !meet(shared.checked, trial, shared.isOver))
      wrong = "the others have found something wrong";
    occlCommDestroy(comm);
    if (!wrong.empty())
      wrong += "; trial " + std::to_string(trial);
  }
  if (!wrong.empty())
    shared.isOver.store(true);
  return wrong;
}

uint32_t numberIn(const char *variable, uint32_t otherwise) {
  const char *given = std::getenv(variable);
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : otherwise;
}

/// One job after the other; each ends within Processes' patience.
constexpr uint32_t kTrialsOfAJob = 250;

void runJobs(uint32_t first, uint32_t stride, uint32_t trials, uint32_t seed) {
  for (uint32_t job = first; job * kTrialsOfAJob < trials && !::testing::Test::HasFailure();
       job += stride) {
    const uint32_t done = job * kTrialsOfAJob;
    InSharedMemory<Shared> shared;
    const std::string name = jobName("aborts");
    Processes processes(kRanks, [&](uint32_t rank) {
      return live(name, rank, std::min(kTrialsOfAJob, trials - done), seed + done, *shared.get());
    });
    for (uint32_t r = 0; r < kRanks; ++r)
      EXPECT_EQ(processes.join(r), 0)
          << "rank " << r << ", seed " << seed + done << ": " << processes.wrong(r);
  }
}

/// Ranks wait for each other most of the time: several jobs at once.
TEST(RandomAborts, SuccessIsRightAndBuffersStayAsTheyAreReused) {
  const uint32_t trials = numberIn("OCCL_FAULTS_ABORTS", 300);
  const uint32_t seed = numberIn("OCCL_TEST_SEED", std::random_device()());
  std::printf("seed %u, %u aborts\n", seed, trials);
  const uint32_t jobs = (trials + kTrialsOfAJob - 1) / kTrialsOfAJob;
  const uint32_t atOnce = std::min(jobs, 4u);
  faults::runAtOnce(atOnce, [&](uint32_t i) { runJobs(i, atOnce, trials, seed); });
}

} // namespace
} // namespace occl::communicator::testing
