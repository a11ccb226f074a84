// For tests that explore whole communicators, whose ranks are threads.
#pragma once

#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/testing/harness.h"
#include "runtime/sched/policy/calibration.h"
#include "runtime/sync/thread.h"
#include "test/explore/explorer/explore.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace occl::explore {

using communicator::testing::handleOf;
using communicator::testing::Job;
using communicator::testing::PlanHandle;
using communicator::testing::Ranks;

constexpr uint32_t kRanks = 2;

/// What all schedules of a test have in common, and what a process does once.
class Daemon : public ::testing::Test {
protected:
  Daemon() {
    ring = handleOf(plan::testing::ringAllReduce(kRanks));
    twoShot = handleOf(plan::testing::twoShotAllReduce(kRanks));
    Settings once;
    once.schedules = 1;
    explore(once, [] { scheduler::flagRoundTrip(); });
  }

  std::vector<Job> makeJobs(uint32_t number, const PlanHandle &plan) {
    std::vector<Job> jobs;
    for (uint32_t j = 0; j < number; ++j)
      jobs.emplace_back(j, plan, 4, DataType::Int32);
    return jobs;
  }

  void expectNoDefect(uint64_t schedules, const std::function<void()> &body) {
    Settings settings;
    settings.schedules = schedules;
    Outcome outcome = explore(settings, body);
    EXPECT_TRUE(outcome.defect.empty()) << outcome.defect;
  }

  /// body(ranks, rank) on a thread for each rank of a communicator that has bound all jobs.
  void exploreRanks(uint64_t schedules, const occlConfig_t &config, const std::vector<Job> &jobs,
                    const std::function<void(Ranks &, uint32_t)> &body);

  PlanHandle ring, twoShot;
};

/// Plans of one thread block, with lines and without: who submits begins with them.
inline std::vector<PlanHandle> plansOfOneBlock() {
  plan::Plan lines = plan::testing::oneShotAllReduce(kRanks);
  lines.protocol = plan::Protocol::LL128;
  return {handleOf(plan::testing::oneShotAllReduce(kRanks)), handleOf(std::move(lines))};
}

inline occlConfig_t withWorkers(uint32_t workers) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.workers = workers;
  config.arenaBytes = 1 << 16;
  return config;
}

/// All schedules with one delay, from the mark on.
inline Settings allWithOneDelay() {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.boundsDelays = true;
  settings.fromMark = true;
  settings.schedules = 1000000;
  return settings;
}

/// Runs body(rank) on a thread for each rank.
inline void runRanks(const std::function<void(uint32_t)> &body) {
  std::vector<Thread> threads;
  for (uint32_t r = 0; r < kRanks; ++r)
    threads.emplace_back(body, r);
  for (Thread &thread : threads)
    thread.join();
}

/// Binds the jobs' shapes ahead, which takes many steps: a call that is refused for its buffers has
/// looked its shape up.
inline void bindAll(const Ranks &ranks, const std::vector<Job> &jobs) {
  for (uint32_t r = 0; r < kRanks; ++r)
    for (const Job &job : jobs) {
      char none = 0;
      occlRequest_t request;
      require(job.submitOn(ranks[r], nullptr, &none, &request) == occlInvalidArgument, "bind");
    }
}

/// All schedules with one delay from when rank 1 comes to body(comm, rank), long after rank 0.
inline void exploreWhoSleeps(const std::vector<Job> &jobs,
                             const std::function<void(occlComm_t, uint32_t)> &body) {
  Outcome outcome = explore(allWithOneDelay(), [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) {
      if (r == 1) {
        sleepFor(std::chrono::milliseconds(40)); // the workers sleep for good
        exploreFromHere();
      }
      body(ranks[r], r);
    });
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

/// From now on the rank forgets ids that are not in flight once it has called so many others.
inline void keepOnly(occlComm_t comm, size_t ids) { comm->daemon->setMostActiveSequences(ids); }

/// Submits again as long as that is refused for want of room.
inline occlRequest_t submitWhenFree(Job &job, occlComm_t comm, uint32_t rank) {
  occlRequest_t request;
  occlResult_t result;
  while ((result = job.submit(comm, rank, &request)) == occlAgain)
    yieldProcessor();
  require(result == occlSuccess, "submit");
  return request;
}

inline void expectRight(const std::vector<Job> &jobs, uint32_t rank) {
  for (const Job &job : jobs)
    require(job.check(rank).empty(), job.check(rank));
}

inline void Daemon::exploreRanks(uint64_t schedules, const occlConfig_t &config,
                                 const std::vector<Job> &jobs,
                                 const std::function<void(Ranks &, uint32_t)> &body) {
  expectNoDefect(schedules, [&] {
    Ranks ranks(kRanks, config);
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) { body(ranks, r); });
  });
}

} // namespace occl::explore
