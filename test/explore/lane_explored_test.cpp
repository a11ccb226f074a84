// Small collectives that their callers run in the lane, under made-up schedules: it is left at each
// look, for whatever reason, and nobody else can tell the difference.
#include "runtime/api/capi/handles.h"
#include "runtime/sync/thread.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;

class Lane : public Daemon {
protected:
  Lane() : jobs(makeJobs(2, plansOfOneBlock()[1])) {}

  void TearDown() override {
    if (!HasFailure()) {
      EXPECT_GT(numCompleted, 0u) << "nothing was completed in the lane";
    }
  }

  occlResult_t run(occlComm_t comm, uint32_t rank, uint32_t job = 0) {
    return jobs[job].run(comm, rank);
  }
  void runWell(occlComm_t comm, uint32_t rank, uint32_t job = 0) {
    require(run(comm, rank, job) == occlSuccess, "run");
  }
  /// Until the next run is for the lane, if nothing else is open.
  void prepare(const Ranks &ranks) {
    runRanks([&](uint32_t r) {
      for (uint32_t j = 0; j < jobs.size(); ++j)
        for (uint32_t i = 0; i < 2; ++i)
          runWell(ranks[r], r, j);
    });
  }
  void count(const Ranks &ranks) {
    for (uint32_t r = 0; r < kRanks; ++r) {
      while (ranks[r]->daemon->device()->submissions.areOpen())
        yieldProcessor(); // who completes a request counts it as ended a little later
      const auto &stats = ranks[r]->daemon->stats();
      require(stats.completed.load() + stats.failed.load() == stats.submitted.load(),
              "something has ended twice, or not at all");
      numCompleted += ranks[r]->daemon->stats().completedInLane.load();
      numLeft += ranks[r]->daemon->stats().leftLane.load();
    }
  }
  /// body(ranks, rank) on a thread for each rank, once all is prepared, under random schedules and
  /// then under all with one delay.
  template <class Body> void exploreAll(uint64_t schedules, const Body &body) {
    Settings random;
    random.schedules = schedules;
    for (const Settings &settings : {random, allWithOneDelay()}) {
      Outcome outcome = explore(settings, [&] {
        Ranks ranks(kRanks, withWorkers(1));
        bindAll(ranks, jobs);
        prepare(ranks);
        exploreFromHere();
        runRanks([&](uint32_t r) { body(ranks, r); });
        count(ranks);
      });
      EXPECT_EQ(outcome.defect, "");
      if (settings.strategy == Settings::Strategy::Exhaustive) {
        EXPECT_TRUE(outcome.all);
      }
    }
  }

  std::vector<Job> jobs;
  uint64_t numCompleted = 0, numLeft = 0;
};

TEST_F(Lane, OneAfterTheOther) {
  exploreAll(200, [&](Ranks &ranks, uint32_t r) {
    for (uint32_t i = 0; i < 2; ++i)
      runWell(ranks[r], r);
    expectRight(jobs, r);
  });
}

/// The other rank sleeps when the data comes, or comes long after this one has left and sleeps.
TEST_F(Lane, LatePeer) {
  exploreAll(100, [&](Ranks &ranks, uint32_t r) {
    if (r == 1)
      sleepFor(10ms);
    runWell(ranks[r], r);
    if (r == 0)
      sleepFor(10ms);
    runWell(ranks[r], r);
    expectRight(jobs, r);
  });
  EXPECT_GT(numLeft, 0u);
}

/// In place a step that is done again, because nobody knows that it was done, adds up twice.
TEST_F(Lane, LeftBetweenStepsInPlace) {
  constexpr size_t kCount = 128; // no chunk is empty
  plan::Plan plan = plan::testing::ringAllReduce(kRanks);
  plan.protocol = plan::Protocol::LL128;
  const PlanHandle handle = handleOf(std::move(plan));
  jobs.clear();
  for (uint64_t id : {0, 1})
    jobs.emplace_back(id, handle, kCount, DataType::Int32);
  exploreAll(300, [&](Ranks &ranks, uint32_t r) {
    Thread other([&] {
      occlRequest_t request = submitWhenFree(jobs[1], ranks[r], r);
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
    });
    std::array<int32_t, kCount> data;
    data.fill(static_cast<int32_t>(r + 1));
    require(jobs[0].runOn(ranks[r], data.data(), data.data()) == occlSuccess, "run");
    other.join();
    for (int32_t sum : data)
      require(sum == 1 + 2, "wrong sum");
  });
  EXPECT_GT(numLeft, 0u);
}

/// An id is started by another thread of the rank.
TEST_F(Lane, AnotherIsStarted) {
  exploreAll(200, [&](Ranks &ranks, uint32_t r) {
    Thread other([&] {
      occlRequest_t request = submitWhenFree(jobs[1], ranks[r], r);
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
    });
    runWell(ranks[r], r);
    other.join();
    expectRight(jobs, r);
  });
  EXPECT_GT(numLeft, 0u);
}

/// The data of both is there. While one thread completes the first one in the lane, the other one
/// may have found it claimed, and sleep.
TEST_F(Lane, TheNextOneSleepsMeanwhile) {
  exploreAll(1500, [&](Ranks &ranks, uint32_t r) {
    if (r == 1) {
      const occlRequest_t first = submitWhenFree(jobs[1], ranks[r], r);
      runWell(ranks[r], r);
      require(occlWait(ranks[r], first) == occlSuccess, "wait");
      return;
    }
    sleepFor(1ms);
    Thread other([&] {
      const occlRequest_t request = submitWhenFree(jobs[1], ranks[r], r);
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
    });
    runWell(ranks[r], r);
    other.join();
    expectRight(jobs, r);
  });
}

/// Nobody waits for the second one: a worker has to run it.
TEST_F(Lane, SubmissionForTheWorker) {
  exploreAll(200, [&](Ranks &ranks, uint32_t r) {
    occlRequest_t request = 0;
    Thread other([&] { request = submitWhenFree(jobs[1], ranks[r], r); });
    runWell(ranks[r], r);
    other.join();
    while (occlTest(ranks[r], request) == occlInProgress)
      sleepFor(1ms);
    expectRight(jobs, r);
  });
}

TEST_F(Lane, TwoThreadsRun) {
  exploreAll(100, [&](Ranks &ranks, uint32_t r) {
    Thread other([&] { runWell(ranks[r], r); }); // alike, so their order does not matter
    runWell(ranks[r], r);
    other.join();
    expectRight(jobs, r);
  });
}

TEST_F(Lane, Abort) {
  uint64_t numAborted = 0;
  exploreAll(200, [&](Ranks &ranks, uint32_t r) {
    if (r == 1) {
      require(occlCommAbort(ranks[r]) == occlSuccess, "abort");
      return;
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const occlResult_t result = run(ranks[r], r);
      require(result == occlAborted, "not aborted, and the peer has not run it");
      ++numAborted;
    }
  });
  EXPECT_GT(numAborted, 0u);
  EXPECT_GT(numLeft, 0u);
}

TEST_F(Lane, AbortWhileBothRun) {
  exploreAll(1000, [&](Ranks &ranks, uint32_t r) {
    Thread aborter([&] {
      if (r == 0)
        require(occlCommAbort(ranks[r]) == occlSuccess, "abort");
    });
    for (uint32_t i = 0; i < 2; ++i) {
      const occlResult_t result = run(ranks[r], r);
      require(result == occlSuccess || result == occlAborted, "run");
    }
    aborter.join();
    require(occlCommAbort(ranks[r]) == occlSuccess, "abort"); // ends what may be left
  });
}

/// The peer never comes: whoever has left the lane ends at its deadline.
TEST_F(Lane, Deadline) {
  Settings settings;
  settings.schedules = 20;
  settings.lostWakeUps = false; // nothing but time ends it
  settings.mostSteps = 5000000;
  occlConfig_t config = withWorkers(1);
  config.timeoutMs = 1000;
  Outcome outcome = explore(settings, [&] {
    Ranks ranks(kRanks, config);
    bindAll(ranks, jobs);
    prepare(ranks);
    require(run(ranks[0], 0) == occlTimeout, "not ended by the deadline");
    count(ranks);
  });
  EXPECT_EQ(outcome.defect, "");
}

/// One rank keeps no id but the last: the calls' sequence stays all the same.
TEST_F(Lane, BesideIdsThatAreForgotten) {
  exploreAll(100, [&](Ranks &ranks, uint32_t r) {
    if (r == 1)
      keepOnly(ranks[r], 1);
    occlRequest_t request = submitWhenFree(jobs[1], ranks[r], r);
    require(occlWait(ranks[r], request) == occlSuccess, "wait");
    for (uint32_t i = 0; i < 2; ++i)
      runWell(ranks[r], r);
    expectRight(jobs, r);
  });
}

/// The same while another thread of the rank starts an id.
TEST_F(Lane, BesideAnIdThatComes) {
  exploreAll(100, [&](Ranks &ranks, uint32_t r) {
    if (r == 0)
      keepOnly(ranks[r], 1);
    Thread other([&] {
      occlRequest_t request = submitWhenFree(jobs[1], ranks[r], r);
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
    });
    runWell(ranks[r], r);
    other.join();
    runWell(ranks[r], r);
    expectRight(jobs, r);
  });
}

} // namespace
} // namespace occl::explore
