// Whole communicators under made-up schedules: what users do, in few steps.
#include "runtime/api/testing/harness.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;
TEST_F(Daemon, OppositeOrders) {
  for (const PlanHandle &plan : {ring, twoShot}) {
    std::vector<Job> jobs = makeJobs(2, plan);
    exploreRanks(150, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
      occlRequest_t requests[2];
      for (uint32_t i = 0; i < 2; ++i)
        require(jobs[(i + r) % 2].submit(ranks[r], r, &requests[i]) == occlSuccess, "submit");
      for (occlRequest_t request : requests)
        require(occlWait(ranks[r], request) == occlSuccess, "wait");
      expectRight(jobs, r);
    });
  }
}

TEST_F(Daemon, SeveralThreadsOfARankWait) {
  std::vector<Job> jobs = makeJobs(2, twoShot);
  for (uint32_t workers : {1, 2})
    exploreRanks(150, withWorkers(workers), jobs, [&](Ranks &ranks, uint32_t r) {
      auto runOne = [&](Job &job) {
        occlRequest_t request;
        require(job.submit(ranks[r], r, &request) == occlSuccess, "submit");
        require(occlWait(ranks[r], request) == occlSuccess, "wait");
      };
      Thread other([&] { runOne(jobs[r]); });
      runOne(jobs[1 - r]);
      other.join();
      expectRight(jobs, r);
    });
}

void runJob(Job &job, occlComm_t comm, uint32_t rank) {
  require(job.run(comm, rank) == occlSuccess, "run");
}

TEST_F(Daemon, SubmittedAndWaitedForInOne) {
  for (const PlanHandle &plan : plansOfOneBlock()) {
    std::vector<Job> jobs = makeJobs(1, plan);
    exploreRanks(150, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
      for (uint32_t i = 0; i < 3; ++i)
        runJob(jobs[0], ranks[r], r);
      expectRight(jobs, r);
    });
  }
}

/// One rank has something else in flight, the other submits that afterwards.
TEST_F(Daemon, RunBesideWhatIsInFlight) {
  for (const PlanHandle &plan : plansOfOneBlock()) {
    std::vector<Job> jobs = makeJobs(2, plan);
    exploreRanks(150, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
      occlRequest_t request;
      if (r == 0)
        require(jobs[1].submit(ranks[r], r, &request) == occlSuccess, "submit");
      runJob(jobs[0], ranks[r], r);
      if (r == 1)
        require(jobs[1].submit(ranks[r], r, &request) == occlSuccess, "submit");
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
      expectRight(jobs, r);
    });
  }
}

/// The second thread submits while the first has claimed all that is there, or the other way round.
TEST_F(Daemon, SeveralThreadsOfARankRun) {
  for (const PlanHandle &plan : plansOfOneBlock()) {
    std::vector<Job> jobs = makeJobs(1, plan); // calls that are alike: their order does not matter
    exploreRanks(150, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
      Thread other([&] { runJob(jobs[0], ranks[r], r); });
      runJob(jobs[0], ranks[r], r);
      other.join();
      expectRight(jobs, r);
    });
  }
}

/// One rank sleeps and is woken by the other one's announcement; while it goes to sleep again the
/// data is sent, in lines.
TEST_F(Daemon, DataWakesWhoWasWokenByItsAnnouncement) {
  for (const PlanHandle &plan : plansOfOneBlock()) {
    std::vector<Job> jobs = makeJobs(1, plan);
    exploreWhoSleeps(jobs, [&](occlComm_t comm, uint32_t r) {
      occlRequest_t request;
      require(jobs[0].submit(comm, r, &request) == occlSuccess, "submit");
      require(occlWait(comm, request) == occlSuccess, "wait");
      expectRight(jobs, r);
    });
  }
}

/// One rank sleeps; the other one runs the collective, with the first look of which it announces
/// the invocation and sends, and rings for both at once.
TEST_F(Daemon, RunWakesWhoWaits) {
  for (const PlanHandle &plan : plansOfOneBlock()) {
    std::vector<Job> jobs = makeJobs(1, plan);
    exploreWhoSleeps(jobs, [&](occlComm_t comm, uint32_t r) {
      runJob(jobs[0], comm, r);
      expectRight(jobs, r);
    });
  }
}

/// Two more are submitted while an executor decides to sleep. The second one, which the peer waits
/// for, has no turn in the pass that is under way.
TEST_F(Daemon, AThreadThatGoesToSleepLooksAtAllThatIsThere) {
  for (const PlanHandle &plan : plansOfOneBlock())
    for (uint32_t yields = 0; yields < 10; ++yields) {
      std::vector<Job> jobs = makeJobs(3, plan);
      Outcome outcome = explore(allWithOneDelay(), [&] {
        Ranks ranks(kRanks, withWorkers(1));
        bindAll(ranks, jobs);
        runRanks([&](uint32_t r) {
          std::vector<occlRequest_t> requests(3);
          auto submit = [&](uint32_t j) {
            require(jobs[j].submit(ranks[r], r, &requests[j]) == occlSuccess, "submit");
          };
          auto wait = [&](uint32_t j) {
            require(occlWait(ranks[r], requests[j]) == occlSuccess, "wait");
          };
          if (r == 1) {
            for (uint32_t j : {2, 1, 0}) {
              submit(j);
              wait(j);
            }
            return;
          }
          sleepFor(40ms); // the workers sleep for good
          exploreFromHere();
          Thread other([&] {
            for (uint32_t i = 0; i < yields; ++i)
              yieldProcessor();
            submit(1);
            submit(2);
          });
          submit(0);
          wait(0);
          other.join();
          wait(1);
          wait(2);
        });
        for (uint32_t r = 0; r < kRanks; ++r)
          expectRight(jobs, r);
      });
      EXPECT_EQ(outcome.defect, "") << yields << " yields";
      EXPECT_TRUE(outcome.all);
    }
}

/// Who asks whether a request is complete looks at the tasks, too, while a worker goes to sleep,
/// and then does something else.
TEST_F(Daemon, AThreadThatAsksLeavesNoTaskUnseen) {
  std::vector<Job> jobs = makeJobs(1, ring);
  expectNoDefect(400, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    Mutex mutex;
    ConditionVariable changed;
    bool isOver = false;
    runRanks([&](uint32_t r) {
      occlRequest_t request;
      require(jobs[0].submit(ranks[r], r, &request) == occlSuccess, "submit");
      if (r == 0) {
        for (uint32_t i = 0; i < 6; ++i) {
          occlResult_t result = occlTest(ranks[r], request);
          require(result == occlSuccess || result == occlInProgress, "test");
          if (result == occlSuccess)
            return;
        }
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return isOver; });
      }
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
      std::lock_guard lock(mutex);
      isOver = true;
      changed.notify_all();
    });
    for (uint32_t r = 0; r < kRanks; ++r)
      expectRight(jobs, r);
  });
}

/// Several workers and threads that wait, which poll before they leave a task.
TEST_F(Daemon, SeveralExecutorsThatPoll) {
  std::vector<Job> jobs = makeJobs(3, twoShot);
  for (uint32_t budget : {occlBudgetFrontHeavy, occlBudgetFlat})
    for (uint32_t workers : {1, 3}) {
      occlConfig_t config = withWorkers(workers);
      config.budgetPolicy = budget;
      exploreRanks(30, config, jobs, [&](Ranks &ranks, uint32_t r) {
        std::vector<occlRequest_t> requests(3);
        for (uint32_t i = 0; i < 3; ++i) {
          const uint32_t j = r == 0 ? i : 2 - i;
          require(jobs[j].submit(ranks[r], r, &requests[j]) == occlSuccess, "submit");
        }
        for (occlRequest_t request : requests)
          require(occlWait(ranks[r], request) == occlSuccess, "wait");
        expectRight(jobs, r);
      });
    }
}

TEST_F(Daemon, AbortWhileOthersRun) {
  std::vector<Job> jobs = makeJobs(2, plansOfOneBlock()[1]);
  expectNoDefect(200, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    Thread aborter([&] { require(occlCommAbort(ranks[0]) == occlSuccess, "abort"); });
    runRanks([&](uint32_t r) {
      for (Job &job : jobs) {
        occlResult_t result = job.run(ranks[r], r);
        require(result == occlSuccess || result == occlAborted, "run after abort");
      }
    });
    aborter.join();
  });
}

TEST_F(Daemon, WorkersQuitAndComeBack) {
  std::vector<Job> jobs = makeJobs(1, ring);
  exploreRanks(100, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
    for (uint32_t i = 0; i < 2; ++i) {
      occlRequest_t request;
      require(jobs[0].submit(ranks[r], r, &request) == occlSuccess, "submit");
      while (occlTest(ranks[r], request) == occlInProgress)
        sleepFor(r == 0 ? 3ms : 20ms); // the workers linger meanwhile, or sleep for good
    }
  });
}

TEST_F(Daemon, AbortAtAnyTime) {
  std::vector<Job> jobs = makeJobs(2, twoShot);
  expectNoDefect(200, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    Thread aborter([&] { require(occlCommAbort(ranks[0]) == occlSuccess, "abort"); });
    runRanks([&](uint32_t r) {
      std::vector<occlRequest_t> requests;
      for (uint32_t i = 0; i < 2; ++i) {
        occlRequest_t request;
        occlResult_t result = jobs[(i + r) % 2].submit(ranks[r], r, &request);
        require(result == occlSuccess || result == occlAborted, "submit after abort");
        if (result == occlSuccess)
          requests.push_back(request);
      }
      for (occlRequest_t request : requests) {
        occlResult_t result = occlWait(ranks[r], request);
        require(result == occlSuccess || result == occlAborted, "wait after abort");
      }
    });
    aborter.join();
  });
}

TEST_F(Daemon, AbortEndsWhatThePeerNeverSubmits) {
  std::vector<Job> jobs = makeJobs(1, ring);
  expectNoDefect(100, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    Thread waiter([&] {
      occlRequest_t request;
      occlResult_t result = jobs[0].submit(ranks[0], 0, &request);
      if (result == occlSuccess)
        result = occlWait(ranks[0], request);
      require(result == occlAborted, "not aborted");
    });
    require(occlCommAbort(ranks[1]) == occlSuccess, "abort");
    waiter.join();
  });
}

TEST_F(Daemon, AgainUntilThePeerHasFinished) {
  std::vector<Job> jobs = makeJobs(3, ring);
  occlConfig_t config = withWorkers(1);
  config.maxInFlight = 2;
  exploreRanks(100, config, jobs, [&](Ranks &ranks, uint32_t r) {
    std::vector<occlRequest_t> requests;
    for (uint32_t i = 0; i < 3; ++i) {
      occlRequest_t request;
      occlResult_t result;
      while ((result = jobs[(i + r) % 3].submit(ranks[r], r, &request)) == occlAgain) {
        for (occlRequest_t former : requests)
          require(occlTest(ranks[r], former) <= occlInProgress, "test");
        yieldProcessor();
      }
      require(result == occlSuccess, "submit");
      requests.push_back(request);
    }
    for (occlRequest_t request : requests)
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
    expectRight(jobs, r);
  });
}

/// Its invocations have data and buffers of their own: each has to have its own result.
TEST_F(Daemon, OneCollectiveInFlightThrice) {
  for (const PlanHandle &plan : {ring, twoShot, plansOfOneBlock()[0], plansOfOneBlock()[1]}) {
    std::vector<Job> jobs = makeJobs(3, plan);
    for (uint32_t j = 0; j < 3; ++j)
      jobs[j].fill(100 + j);
    expectNoDefect(200, [&] {
      for (uint32_t j = 0; j < 3; ++j)
        jobs[j].fill(100 + j); // what the schedule before has left would be right as well
      Ranks ranks(kRanks, withWorkers(1));
      bindAll(ranks, {jobs[0]});
      runRanks([&](uint32_t r) {
        occlRequest_t requests[3];
        for (uint32_t j = 0; j < 3; ++j)
          require(jobs[0].submitOn(ranks[r], jobs[j].input(r), jobs[j].output(r), &requests[j]) ==
                      occlSuccess,
                  "submit");
        for (uint32_t j : {2, 0, 1})
          require(occlWait(ranks[r], requests[j]) == occlSuccess, "wait");
        expectRight(jobs, r);
      });
    });
  }
}

TEST_F(Daemon, ForgottenAndCalledAgainWhileOthersRun) {
  std::vector<Job> jobs = makeJobs(3, ring);
  exploreRanks(100, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
    occlRequest_t longer, shorter;
    keepOnly(ranks[r], 1);
    require(jobs[0].submit(ranks[r], r, &longer) == occlSuccess, "submit");
    for (uint32_t i = 0; i < 4; ++i) {
      shorter = submitWhenFree(jobs[1 + i % 2], ranks[r], r);
      require(occlWait(ranks[r], shorter) == occlSuccess, "wait");
    }
    require(occlWait(ranks[r], longer) == occlSuccess, "wait");
    expectRight(jobs, r);
  });
}

/// Without preemption the same orders are a deadlock, and the explorer's schedules reach it.
TEST_F(Daemon, WithoutPreemptionOppositeOrdersAreADeadlock) {
  std::vector<Job> jobs = makeJobs(2, ring);
  occlConfig_t config = withWorkers(1);
  config.preemption = 2;
  std::atomic<uint32_t> deadlocks = 0;
  Settings settings;
  settings.schedules = 40;
  settings.lostWakeUps = false; // the deadlock is found by looking again and again
  settings.mostSteps = 5000000;
  Outcome outcome = explore(settings, [&] {
    Ranks ranks(kRanks, config);
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) {
      occlRequest_t requests[2];
      for (uint32_t i = 0; i < 2; ++i)
        if (jobs[(i + r) % 2].submit(ranks[r], r, &requests[i]) != occlSuccess)
          return;
      for (occlRequest_t request : requests) {
        occlResult_t result = occlWait(ranks[r], request);
        require(result == occlSuccess || result == occlDeadlock, "wait");
        deadlocks += result == occlDeadlock;
      }
    });
  });
  EXPECT_TRUE(outcome.defect.empty()) << outcome.defect;
  EXPECT_GT(deadlocks, 0u);
}

} // namespace
} // namespace occl::explore
