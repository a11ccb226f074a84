// A process that is stopped at every step that another one can see of its life, and goes on later.
// Meanwhile the others have an error and use their buffers again, or have finished and are gone.
//
// OCCL_FAULTS_STRIDE: each so many-th step; `make faults` takes all.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/faults/at_once.h"
#include "test/faults/fault_points.h"
#include "test/faults/resuming.h"
#include "test/faults/reused_buffers.h"
#include "test/faults/shared_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 3;
constexpr uint32_t kRounds = 4;

struct Shared {
  faults::Record record;
  std::atomic<uint32_t> over{0}; // ranks whose calls have all returned
};

struct Trial {
  uint32_t victim = 0;
  uint64_t point = 0;
  uint32_t timeoutMs = 0;
  bool mayFail = false; // as the deadline passes while the victim is stopped
  bool destroys = true; // or exits without
  std::string name = {};
};

std::string live(const Trial &trial, uint32_t rank, Shared &shared) {
  if (rank == trial.victim)
    faults::arm(faults::Kind::Stop, trial.point, &shared.record);
  occlConfig_t config = withTimeout(trial.timeoutMs);
  config.arenaBytes = 1 << 20;
  config.heapBytes = 8 << 20;
  occlComm_t comm = nullptr;
  occlResult_t result = occlCommInitRank(&comm, kRanks, rank, trial.name.c_str(), &config);
  std::vector<Exchange> all = exchangesOfAllKinds(kRanks);
  std::string wrong;
  if (result == occlSuccess)
    wrong = exchange(comm, all, kRounds, result);
  if (wrong.empty() && result != occlSuccess && !trial.mayFail)
    wrong = std::string("failed: ") + occlGetLastError();
  shared.over.fetch_add(1);
  if (rank == trial.victim)
    shared.record.ended.store(true);
  if (trial.mayFail && !waitFor(30s, [&] { return shared.over.load() == kRanks; }) && wrong.empty())
    wrong = "the others do not end";
  for (const Exchange &each : all)
    if (std::string foreign = each.findForeign(); wrong.empty())
      wrong = foreign;
  if (trial.destroys)
    occlCommDestroy(comm);
  return wrong;
}

/// False if the victim's life has no such point.
bool run(const Trial &trial) {
  InSharedMemory<Shared> shared;
  const faults::Record &record = shared->record;
  Processes processes(kRanks, [&](uint32_t rank) { return live(trial, rank, *shared.get()); });
  while (!record.hit.load() && !record.ended.load())
    std::this_thread::sleep_for(1ms);
  if (record.hit.load()) {
    // Who has a plan that stores to its buffers stays in its call while the victim might; who has
    // not finished waits for it.
    bool areOver =
        waitFor(trial.mayFail ? 1000ms : 100ms, [&] { return shared->over.load() + 1 >= kRanks; });
    if (areOver && !trial.mayFail)
      std::this_thread::sleep_for(20ms); // they are gone, or about to go
  }
  resumeAndJoin(processes, kRanks, trial.victim, [&] {
    return "victim " + std::to_string(trial.victim) + " at point " + std::to_string(trial.point) +
           ", " + record.where;
  });
  return record.hit.load();
}

void runFrom(uint64_t point, uint64_t stride, Trial trial) {
  trial.name = jobName("paused");
  uint64_t trials = 0;
  bool isHit = true;
  for (trial.point = point; isHit && !::testing::Test::HasFailure();
       trial.point += stride, ++trials)
    isHit = run(trial);
  std::printf("%llu trials with victim %u\n", static_cast<unsigned long long>(trials),
              trial.victim);
}

/// `atOnce`: so many trials at a time.
void runAtEachPoint(const Trial &trial, uint64_t stride, uint32_t atOnce) {
  if (const char *given = std::getenv("OCCL_FAULTS_STRIDE"))
    stride = std::max(1ull, std::strtoull(given, nullptr, 10));
  const uint64_t first = 1 + trial.victim * stride / kRanks;
  faults::runAtOnce(atOnce,
                    [&](uint32_t i) { runFrom(first + i * stride, atOnce * stride, trial); });
}

class Paused : public ::testing::TestWithParam<uint32_t> {};

/// Success has come with the right data, and nobody stores to what has been given back.
TEST_P(Paused, WhileTheOthersFailAndReuseTheirBuffers) {
  runAtEachPoint({.victim = GetParam(), .timeoutMs = 300, .mayFail = true}, 60, 4);
}

/// Nobody fails: who has finished has done all that others need.
TEST_P(Paused, WhileTheOthersFinishAndExit) {
  runAtEachPoint({.victim = GetParam(), .timeoutMs = 60000, .destroys = false}, 60, 2);
}

TEST_P(Paused, WhileTheOthersFinishDestroyAndExit) {
  runAtEachPoint({.victim = GetParam(), .timeoutMs = 60000, .destroys = true}, 60, 2);
}

INSTANTIATE_TEST_SUITE_P(Victim, Paused, ::testing::Range(0u, kRanks),
                         ::testing::PrintToStringParamName());

/// 'T' while the process is stopped.
char stateOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? '?' : text[end + 2];
}

/// Rank 1 sleeps in its call and is stopped there; rank 0 does its part and its process ends. What
/// rank 1 found missing is there when it goes on.
TEST(PausedAsleep, ARankThatHasDoneItsPartMayExitWhileOthersAreStopped) {
  for (bool destroys : {false, true}) {
    std::string name = jobName("exit");
    auto *mayBegin = static_cast<std::atomic<bool> *>(mmap(nullptr, sizeof(std::atomic<bool>),
                                                           PROT_READ | PROT_WRITE,
                                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    new (mayBegin) std::atomic<bool>(false);
    occlConfig_t config = withTimeout(60000);
    Processes processes(2, [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr;
      if (occlCommInitRank(&comm, 2, rank, name.c_str(), &config) != occlSuccess)
        return lastError("occlCommInitRank");
      Job job(0, handleOf(chainBroadcast(2, 1)), 1000);
      while (rank == 0 && !mayBegin->load())
        std::this_thread::sleep_for(1ms);
      if (job.run(comm, rank) != occlSuccess)
        return lastError("occlCall");
      std::string wrong = job.check(rank);
      if (destroys)
        occlCommDestroy(comm);
      return wrong;
    });
    std::this_thread::sleep_for(500ms); // it sleeps by now; if not, this shows nothing
    processes.signal(1, SIGSTOP);
    while (stateOf(processes.pid(1)) != 'T')
      std::this_thread::sleep_for(1ms);
    mayBegin->store(true);
    EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
    std::this_thread::sleep_for(100ms); // so that rank 1 looks first who is gone, then for its data
    processes.signal(1, SIGCONT);
    EXPECT_EQ(processes.join(1), 0) << processes.wrong(1);
  }
}

} // namespace
} // namespace occl::communicator::testing
