// What the workers of a device do while its programs wait.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 4;

std::set<std::string> threadsOfProcess() {
  std::set<std::string> threads;
  DIR *folder = opendir("/proc/self/task");
  while (dirent *entry = readdir(folder))
    if (entry->d_name[0] != '.')
      threads.insert(entry->d_name);
  closedir(folder);
  return threads;
}

/// Nanoseconds of processor time.
uint64_t timeOf(const std::set<std::string> &threads) {
  uint64_t sum = 0;
  for (const std::string &thread : threads) {
    uint64_t time = 0;
    std::ifstream("/proc/self/task/" + thread + "/schedstat") >> time;
    sum += time;
  }
  return sum;
}

uint64_t timeOfThisThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

struct Times {
  uint64_t workers = 0;
  std::atomic<uint64_t> programs{0};
};

/// RunAtOnce: occlCall, which waits from before the collective is announced on.
enum class Call { SubmitAndWait, RunAtOnce };

occlResult_t make(Call call, occlComm_t comm, Job &job, uint32_t rank) {
  if (call == Call::RunAtOnce)
    return job.run(comm, rank);
  occlRequest_t request;
  occlResult_t result = job.submit(comm, rank, &request);
  return result == occlSuccess ? occlWait(comm, request) : result;
}

/// Every rank makes a two-shot all-reduce, of one thread block for each rank, some times.
void measure(uint32_t workers, uint64_t count, uint32_t rounds, Call call, Times &times) {
  const auto before = threadsOfProcess();
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.workers = workers;
  Ranks ranks(kRanks, config);
  std::set<std::string> threads;
  for (const std::string &thread : threadsOfProcess())
    if (!before.count(thread))
      threads.insert(thread);
  std::vector<Job> jobs;
  jobs.emplace_back(1, handleOf(twoShotAllReduce(kRanks)), count);
  ranks.run([&](uint32_t r) {
    const uint64_t begin = timeOfThisThread();
    for (uint32_t round = 0; round < rounds; ++round)
      ASSERT_EQ(make(call, ranks[r], jobs[0], r), occlSuccess) << occlGetLastError();
    times.programs += timeOfThisThread() - begin;
    EXPECT_EQ(jobs[0].check(r), "");
  });
  times.workers = timeOf(threads);
}

/// Somebody waits whenever something is open, so that none would come if all stood down. On a busy
/// machine they may come late: so in one of a few measurements.
TEST(Workers, AllButTheFirstHelpWhoWaitsWithLargeCollectives) {
  std::string said;
  for (int tries = 0; tries < 5; ++tries) {
    Times times;
    measure(3, 4 << 20, 10, Call::RunAtOnce, times);
    if (times.workers > times.programs / 4)
      return;
    said +=
        std::to_string(times.workers) + " and " + std::to_string(times.programs) + " nanoseconds; ";
  }
  ADD_FAILURE() << said;
}

/// Whether workers take less than 1 / part of the programs' time. Where other processes keep a
/// program from its processor between starting and waiting, workers take over, as they should: so
/// in one of a few measurements.
void expectIdleWorkers(uint32_t workers, uint64_t count, uint32_t rounds, uint64_t part) {
  std::string said;
  for (int tries = 0; tries < 5; ++tries) {
    Times times;
    measure(workers, count, rounds, Call::SubmitAndWait, times);
    if (times.workers < times.programs / part)
      return;
    said +=
        std::to_string(times.workers) + " and " + std::to_string(times.programs) + " nanoseconds; ";
  }
  ADD_FAILURE() << said;
}

TEST(Workers, TheFirstStandsDownForWhoWaits) { expectIdleWorkers(1, 4 << 20, 10, 10); }

TEST(Workers, StandDownForWhoWaitsForSmallCollectives) {
  expectIdleWorkers(3, 64, 20000 / kSlowness, 4);
}

/// A program waits, and runs what is open meanwhile; until a callback keeps it that was declared
/// never to block, and does.
TEST(Workers, GoOnWhenWhoWaitsIsInsideACallback) {
  constexpr uint32_t kPair = 2;
  for (uint32_t workers : {1, 2}) {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.workers = workers;
    Ranks ranks(kPair, config);
    std::vector<Job> jobs;
    for (uint32_t j = 0; j < 2; ++j) {
      jobs.emplace_back(j, handleOf(twoShotAllReduce(kPair)), 1000);
      jobs.back().setCallbackKind(CallbackKind::NeverBlocks);
    }
    struct State {
      std::atomic<bool> isInside{false}, isOver{false}, sawTheEnd{false};
    } state;
    const auto block = [](occlRequest_t, occlResult_t, void *user) {
      auto &state = *static_cast<State *>(user);
      state.isInside = true;
      for (auto end = std::chrono::steady_clock::now() + 15s;
           !state.isOver && std::chrono::steady_clock::now() < end;)
        std::this_thread::sleep_for(1ms);
      state.sawTheEnd = state.isOver.load();
    };
    ranks.run([&](uint32_t r) {
      occlRequest_t kept, other;
      if (r == 1) {
        ASSERT_EQ(jobs[0].submit(ranks[r], r, &kept), occlSuccess);
        while (!state.isInside)
          std::this_thread::sleep_for(1ms);
        ASSERT_EQ(jobs[1].submit(ranks[r], r, &other), occlSuccess);
        EXPECT_EQ(occlWait(ranks[r], other), occlSuccess) << occlGetLastError();
        state.isOver = true;
        EXPECT_EQ(occlWait(ranks[r], kept), occlSuccess) << occlGetLastError();
        return;
      }
      ASSERT_EQ(jobs[1].submit(ranks[r], r, &other), occlSuccess);
      ASSERT_EQ(jobs[0].submit(ranks[r], r, nullptr, block, &state), occlSuccess);
      EXPECT_EQ(occlWait(ranks[r], other), occlSuccess) << occlGetLastError();
    });
    EXPECT_TRUE(state.sawTheEnd) << workers << " workers";
  }
}

} // namespace
} // namespace occl::communicator::testing
