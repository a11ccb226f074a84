// A fault at every step that another process can see of a rank's life: set-up, calls, every
// instruction, partitioned epochs, completion, tear-down, shrinking. The others get an error in
// time that says what they waited for, go on without the lost rank, and leave nothing behind.
//
// OCCL_FAULTS_STRIDE: each so many-th step, for all kinds of faults; `make faults` takes all.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/partitioned_epochs.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/faults/at_once.h"
#include "test/faults/fault_points.h"
#include "test/faults/shared_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;
using faults::Kind;

constexpr uint32_t kRanks = 3;

struct Trial {
  Kind kind = Kind::None;
  uint32_t victim = 0;
  uint64_t point = 0;
  uint32_t timeoutMs = 2000;
  std::string name;
  const faults::Record *record = nullptr; // of the victim

  bool losesARank() const { return kind == Kind::Kill || kind == Kind::Stop; }
};

int64_t countEntries(const char *directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

/// Of this process, by their numbers.
std::set<std::string> listThreads() {
  std::set<std::string> threads;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(entry.path().filename());
  return threads;
}

/// Whether this error is what the trial leads to; "" or what is wrong.
std::string checkError(const Trial &trial, occlResult_t result, const std::string &text,
                       std::initializer_list<const char *> parts, bool isSetUp) {
  if (trial.kind == Kind::Corrupt)
    return {}; // that it returns is all that can be asked
  if (trial.kind == Kind::Exhaust)
    return isSetUp ? "has failed: " + text : "";
  if (!trial.losesARank() || (result != occlPeerFailed && result != occlTimeout))
    return "not an error that this can be: " + text;
  for (const char *part : parts)
    if (text.find(part) == std::string::npos)
      return "does not name " + std::string(part) + ": " + text;
  return {};
}

occlConfig_t configOf(const Trial &trial) {
  occlConfig_t config = withTimeout(trial.timeoutMs);
  config.arenaBytes = 1 << 18;
  return config;
}

plan::Plan inLines(plan::Plan plan) {
  plan.protocol = plan::Protocol::LL128;
  return plan;
}

/// Where a wrong value says that data is there, or where it lies, or that memory may be used again:
/// nothing keeps a receiver from taking other bytes then.
constexpr const char *kFilesOfData[] = {"runtime/exec/", "runtime/control/records/announce",
                                        "runtime/sched/task_board.", "runtime/partitioned/"};

bool leadsToData(const faults::Record &record) {
  return record.hit.load() && std::ranges::any_of(kFilesOfData, [&](const char *file) {
           return std::strstr(record.where, file) != nullptr;
         });
}

/// Of a life without a fault: there is no name in the list that no file has any more.
void expectAllFiles(const faults::Record &record) {
  for (size_t i = 0; i < std::size(kFilesOfData); ++i)
    EXPECT_TRUE(record.files.load() >> i & 1) << "no step is in " << kFilesOfData[i];
}

struct Work {
  explicit Work(uint32_t numRanks) : epochs(numRanks) {}

  std::vector<Job> jobs;
  PartitionedEpochs epochs;
};

/// Starts all in an order of its own, waits, and calls the last one; if it is in lines in the end
/// in the lane (runtime/sched/lane_run.h). The first error.
occlResult_t runAll(occlComm_t comm, std::vector<Job> &jobs, uint32_t rank) {
  std::vector<occlRequest_t> requests;
  for (uint32_t j : latinOrder(static_cast<uint32_t>(jobs.size()), rank, 0))
    if (occlResult_t result = jobs[j].submit(comm, rank, &requests.emplace_back());
        result != occlSuccess)
      return result;
  for (occlRequest_t request : requests)
    if (occlResult_t result = occlWait(comm, request); result != occlSuccess)
      return result;
  constexpr int kUntilInLane = 4;
  for (int i = 0; i < kUntilInLane; ++i)
    if (occlResult_t result = jobs.back().run(comm, rank); result != occlSuccess)
      return result;
  return occlSuccess;
}

/// Whether the text of a failure says what was waited for, on the rank that saw it first, which may
/// be further on than the others.
std::string checkFailure(const Trial &trial, occlResult_t result, const std::string &text) {
  const auto has = [&](const char *part) { return text.find(part) != std::string::npos; };
  // A partitioned epoch may also find a send's buffer gone, or wait for the room of the last one.
  if (has("partitioned"))
    return checkError(trial, result, text,
                      {"rank ", "epoch ",
                       has(" cannot be read ") ? "its process is gone"
                       : has(" waits for ")    ? " waits for "
                                               : " not finished "},
                      true);
  return checkError(trial, result, text,
                    {"rank ", "collective '", "instruction ", ".coll:", " waits for "}, true);
}

/// All that a communicator of a trial does; "" or what is wrong. The work outlives the
/// communicator.
std::string runWork(const Trial &trial, occlComm_t comm, Work &work, bool &isLost) {
  uint32_t rank = 0;
  occlCommRank(comm, &rank);
  occlResult_t result = runAll(comm, work.jobs, rank);
  if (result == occlSuccess)
    result = work.epochs.run(comm);
  isLost = result != occlSuccess;
  if (isLost)
    return checkFailure(trial, result, occlCommGetLastError(comm));
  if (trial.kind == Kind::Corrupt && leadsToData(*trial.record))
    return {};
  const std::string wrong = checkAll(work.jobs, rank);
  return wrong.empty() ? work.epochs.wrong() : wrong;
}

/// Shrinks until a group works; a rank may be lost in the middle of it.
std::string goOn(const Trial &trial, occlComm_t comm) {
  // Who had no error comes at once, the others after their deadline.
  occlConfig_t config = configOf(trial);
  config.timeoutMs *= 3;
  occlComm_t smaller = nullptr;
  if (occlCommShrink(comm, nullptr, 0, &config, &smaller) != occlSuccess)
    return trial.kind == Kind::Corrupt ? "" : lastError("occlCommShrink");
  uint32_t numRanks = 0;
  occlCommSize(smaller, &numRanks);
  Work work(numRanks);
  work.jobs.emplace_back(9, handleOf(ringAllReduce(numRanks)), 30);
  bool isLost = false;
  std::string wrong = runWork(trial, smaller, work, isLost);
  if (trial.kind == Kind::Delay && numRanks != kRanks)
    wrong = "the group has " + std::to_string(numRanks) + " ranks";
  if (wrong.empty() && isLost && trial.losesARank() && numRanks > 1)
    wrong = goOn(trial, smaller);
  occlCommDestroy(smaller);
  return wrong;
}

std::string live(const Trial &trial, uint32_t rank) {
  occlConfig_t config = configOf(trial);
  occlComm_t comm = nullptr;
  occlResult_t result = occlCommInitRank(&comm, kRanks, rank, trial.name.c_str(), &config);
  if (result != occlSuccess)
    return checkError(trial, result, occlGetLastError(), {"group '", "rank"}, false);
  // Who waits so long looks whether its peers are alive.
  if (trial.kind == Kind::Exhaust && rank == (trial.victim + 1) % kRanks)
    std::this_thread::sleep_for(80ms);
  Work work(kRanks);
  work.jobs.emplace_back(0, handleOf(ringAllReduce(kRanks)), 30);
  work.jobs.emplace_back(1, handleOf(twoShotAllReduce(kRanks)), 30);
  work.jobs.emplace_back(2, handleOf(inLines(oneShotAllReduce(kRanks))), 30);
  bool isLost = false;
  std::string wrong = runWork(trial, comm, work, isLost);
  if (wrong.empty() && trial.kind != Kind::Exhaust) // a smaller one takes descriptors
    wrong = goOn(trial, comm);
  occlCommDestroy(comm);
  return wrong;
}

std::string liveAndLeaveNothing(const Trial &trial, uint32_t rank, faults::Record *record) {
  const int64_t files = countEntries("/proc/self/fd");
  std::thread([] {}).join(); // a sanitizer starts one of its own with the first
  const std::set<std::string> threads = listThreads();
  if (rank == trial.victim) {
    faults::watch(kFilesOfData);
    faults::arm(trial.kind, trial.point, record);
  }
  std::string wrong = live(trial, rank);
  if (rank == trial.victim) {
    record->ended.store(true);
    if (trial.kind == Kind::Exhaust)
      faults::relieve();
  }
  if (int64_t left = countEntries("/proc/self/fd") - files; wrong.empty() && left != 0)
    wrong = std::to_string(left) + " files are left open";
  // A thread that has ended may be listed for a moment longer.
  for (auto end = std::chrono::steady_clock::now() + 5s;
       wrong.empty() && !std::ranges::includes(threads, listThreads());)
    if (std::chrono::steady_clock::now() > end)
      wrong = "threads are left";
  return wrong;
}

/// Another program that starts may just have its lock.
bool staysInSharedMemory(const std::string &name) {
  for (auto end = std::chrono::steady_clock::now() + 5s; std::chrono::steady_clock::now() < end;) {
    if (!std::filesystem::exists(meetingPath(name)))
      return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// False if the victim's life has no such point.
bool run(Trial trial) {
  InSharedMemory<faults::Record> record;
  trial.record = record.get();
  Processes processes(
      kRanks, [&](uint32_t rank) { return liveAndLeaveNothing(trial, rank, record.get()); });
  for (uint32_t r = 0; r < kRanks; ++r)
    if (r != trial.victim) {
      EXPECT_EQ(processes.join(r), 0)
          << "rank " << r << ", victim " << trial.victim << " at point " << trial.point << ", "
          << record->where << ": " << processes.wrong(r);
    }
  while (!record->hit.load() && !record->ended.load())
    std::this_thread::sleep_for(1ms);
  if (trial.kind == Kind::Stop && record->hit.load())
    processes.kill(trial.victim);
  int victim = processes.join(trial.victim);
  if (!record->hit.load() || trial.kind == Kind::Delay || trial.kind == Kind::Exhaust) {
    EXPECT_EQ(victim, 0) << "the victim, point " << trial.point << ", " << record->where << ": "
                         << processes.wrong(trial.victim);
  }
  // Who is stopped while it holds the object's lock leaves it to the next start.
  if (trial.kind != Kind::Stop) {
    EXPECT_FALSE(staysInSharedMemory(trial.name))
        << "victim " << trial.victim << " at point " << trial.point << ", " << record->where;
  }
  if (!record->hit.load() && trial.kind == Kind::Delay) // others may run into their deadlines
    expectAllFiles(*record.get());
  return record->hit.load();
}

void runFrom(uint64_t point, uint64_t stride, Trial trial) {
  trial.name = jobName("every-step");
  uint64_t trials = 0;
  bool isHit = true;
  for (; isHit && !::testing::Test::HasFailure(); point += stride, ++trials) {
    trial.point = point;
    isHit = run(trial);
  }
  EXPECT_FALSE(staysInSharedMemory(trial.name)); // the last trial has no fault
  std::printf("%llu trials with victim %u\n", static_cast<unsigned long long>(trials),
              trial.victim);
}

void runAtEachPoint(Kind kind, uint32_t victim, uint64_t stride, uint32_t timeoutMs) {
  if (const char *given = std::getenv("OCCL_FAULTS_STRIDE"))
    stride = std::max(1ull, std::strtoull(given, nullptr, 10));
  const Trial trial{kind, victim, 0, timeoutMs, {}, nullptr};
  const uint64_t first = 1 + victim % stride;
  // The others wait for their deadlines, or at first for a while, with nothing to do.
  const uint32_t atOnce = kind == Kind::Stop ? 8 : kind == Kind::Exhaust ? 4 : 1;
  faults::runAtOnce(atOnce,
                    [&](uint32_t i) { runFrom(first + i * stride, atOnce * stride, trial); });
}

class EveryStep : public ::testing::TestWithParam<uint32_t> {};

// Ranks pass much the same steps; each victim has the fault at others.
TEST_P(EveryStep, Killed) { runAtEachPoint(Kind::Kill, GetParam(), 6, 2000); }
TEST_P(EveryStep, Stopped) { runAtEachPoint(Kind::Stop, GetParam(), 70, 500); }
TEST_P(EveryStep, Delayed) { runAtEachPoint(Kind::Delay, GetParam(), 8, 20000); }
TEST_P(EveryStep, Corrupted) { runAtEachPoint(Kind::Corrupt, GetParam(), 8, 1000); }
TEST_P(EveryStep, WithoutDescriptors) { runAtEachPoint(Kind::Exhaust, GetParam(), 20, 1000); }

INSTANTIATE_TEST_SUITE_P(Victim, EveryStep, ::testing::Range(0u, kRanks),
                         ::testing::PrintToStringParamName());

} // namespace
} // namespace occl::communicator::testing
