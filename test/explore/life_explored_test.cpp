// Whole communicators under made-up schedules: what the daemon does when nobody waits, and what
// comes back, ends and begins anew.
#include "runtime/sync/clock.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <mutex>
#include <vector>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;
using communicator::testing::CallbackKind;

PlanHandle inLines(plan::Plan plan) {
  plan.protocol = plan::Protocol::LL;
  return handleOf(std::move(plan));
}

/// Counts completions; whoever waits for them runs no collective meanwhile.
struct Ended {
  Mutex mutex;
  ConditionVariable changed;
  uint32_t number = 0;

  static void count(occlRequest_t, occlResult_t result, void *user) {
    require(result == occlSuccess, "an invocation failed");
    auto &ended = *static_cast<Ended *>(user);
    std::lock_guard lock(ended.mutex);
    ++ended.number;
    ended.changed.notify_all();
  }
  void await(uint32_t atLeast) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return number >= atLeast; });
    // Long before a thread looks again by itself.
    require(SteadyClock::now() - begin < 400ms, "a callback was late");
  }
  const SteadyClock::time_point begin = SteadyClock::now();
};

using Endeds = std::array<Ended, kRanks>;

void submitCounted(const Ranks &ranks, uint32_t r, Job &job, Endeds &ended) {
  require(job.submit(ranks[r], r, nullptr, Ended::count, &ended[r]) == occlSuccess, "submit");
}

class Unattended : public Daemon, public ::testing::WithParamInterface<CallbackKind> {
protected:
  std::vector<Job> makeUnattended(uint32_t number, const PlanHandle &plan) {
    std::vector<Job> jobs = makeJobs(number, plan);
    for (Job &job : jobs)
      job.setCallbackKind(GetParam());
    return jobs;
  }
};

/// The first is stuck on rank 0 until rank 1 has seen the end of the second.
TEST_P(Unattended, WorkersComeBackForEachSubmission) {
  std::vector<Job> jobs = makeUnattended(2, ring);
  for (auto pause : {0ms, 1ms, 40ms}) // the worker looks out, lingers, sleeps for good
    expectNoDefect(100, [&] {
      Endeds ended;
      Ranks ranks(kRanks, withWorkers(1));
      bindAll(ranks, jobs);
      runRanks([&](uint32_t r) {
        if (r == 0)
          submitCounted(ranks, r, jobs[0], ended);
        sleepFor(pause);
        submitCounted(ranks, r, jobs[1], ended);
        ended[r].await(1);
        sleepFor(pause);
        if (r == 1)
          submitCounted(ranks, r, jobs[0], ended);
        ended[r].await(2);
        expectRight(jobs, r);
      });
    });
}

TEST_P(Unattended, WorkersTakeOverWhatAHelperLeaves) {
  std::vector<Job> jobs = makeUnattended(2, twoShot);
  for (auto pause : {0ms, 40ms})
    expectNoDefect(100, [&] {
      Endeds ended;
      Ranks ranks(kRanks, withWorkers(1));
      bindAll(ranks, jobs);
      runRanks([&](uint32_t r) {
        occlRequest_t request;
        sleepFor(pause);
        require(jobs[1].submit(ranks[r], r, &request) == occlSuccess, "submit");
        if (r == 0) // while it waits, so that no worker is told
          Thread([&] { submitCounted(ranks, r, jobs[0], ended); }).join();
        require(occlWait(ranks[r], request) == occlSuccess, "wait");
        sleepFor(pause);
        if (r == 1)
          submitCounted(ranks, r, jobs[0], ended);
        ended[r].await(1);
      });
    });
}

TEST_P(Unattended, TwoWorkersCompleteAtATime) {
  std::vector<Job> jobs = makeUnattended(3, ring);
  expectNoDefect(200, [&] {
    Endeds ended;
    {
      Ranks ranks(kRanks, withWorkers(2));
      bindAll(ranks, jobs);
      runRanks([&](uint32_t r) {
        for (Job &job : jobs)
          submitCounted(ranks, r, job, ended);
        ended[r].await(3);
      });
    }
    for (const Ended &each : ended)
      require(each.number == 3, "a callback was called twice");
  });
}

INSTANTIATE_TEST_SUITE_P(Callbacks, Unattended,
                         ::testing::Values(CallbackKind::MayBlock, CallbackKind::NeverBlocks));

class Life : public Daemon {};

/// A rank goes right after it has submitted.
TEST_F(Life, DestroyedWithoutWaiting) {
  std::vector<Job> jobs = makeJobs(2, ring);
  expectNoDefect(200, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) {
      occlRequest_t request;
      for (Job &job : jobs)
        require(job.submit(ranks[r], r, &request) == occlSuccess, "submit");
      if (r == 0)
        ranks.destroy(r);
    });
    ranks.destroy(1);
    expectRight(jobs, 0);
    expectRight(jobs, 1);
  });
}

/// More of one collective than there are records, while the worker completes what was before.
TEST_F(Life, ManyOfOneCollectiveInFlight) {
  constexpr uint32_t kInvocations = 11;
  for (const PlanHandle &plan : {ring, twoShot, inLines(plan::testing::oneShotAllReduce(kRanks)),
                                 inLines(plan::testing::chainBroadcast(kRanks))}) {
    std::vector<Job> jobs = makeJobs(1, plan);
    exploreRanks(100, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
      std::vector<occlRequest_t> requests;
      for (uint32_t i = 0; i < kInvocations; ++i)
        requests.push_back(submitWhenFree(jobs[0], ranks[r], r));
      for (occlRequest_t request : requests)
        require(occlWait(ranks[r], request) == occlSuccess, "wait");
      expectRight(jobs, r);
    });
  }
}

/// The root, which waits for nobody, goes around its ring once; then the reader has to come first.
TEST_F(Life, ARingIsNotUsedAgainWhileItIsRead) {
  constexpr uint32_t kRecords = 8; // transport::AnnounceCell has so many
  Job job(0, inLines(plan::testing::chainBroadcast(kRanks, 1)), 4, DataType::Int32);
  expectNoDefect(3, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    auto run = [&](uint32_t r) {
      occlRequest_t request;
      const occlResult_t result = job.submit(ranks[r], r, &request);
      return result == occlSuccess ? occlWait(ranks[r], request) : result;
    };
    for (uint32_t i = 0; i < kRecords; ++i)
      require(run(0) == occlSuccess, "run of the root");
    require(run(0) == occlAgain, "one more than there are blocks");
    require(run(1) == occlSuccess, "run of the reader");
    require(run(0) == occlSuccess, "run of the root, where the first was");
    for (uint32_t i = 0; i < kRecords; ++i)
      require(run(1) == occlSuccess, "run of the reader");
    require(job.check(1).empty(), job.check(1));
  });
}

/// The root runs ahead until it needs what its reader holds, who has left meanwhile.
TEST_F(Life, ARootWithoutRoomLearnsThatItsReaderHasLeft) {
  for (const PlanHandle &plan : {handleOf(plan::testing::chainBroadcast(kRanks, 1)),
                                 inLines(plan::testing::chainBroadcast(kRanks, 1))}) {
    std::vector<Job> jobs;
    jobs.emplace_back(0, plan, 4, DataType::Int32);
    Settings settings;
    settings.schedules = 30;
    settings.lostWakeUps = false; // only time goes on while it waits
    Outcome outcome = explore(settings, [&] {
      Ranks ranks(kRanks, withWorkers(1));
      bindAll(ranks, jobs);
      runRanks([&](uint32_t r) {
        if (r == 1) {
          require(jobs[0].run(ranks[r], r) == occlSuccess, "run of the reader");
          ranks.destroy(r);
          return;
        }
        occlResult_t result = occlSuccess;
        for (uint32_t i = 0; i < 20 && result == occlSuccess; ++i)
          result = jobs[0].run(ranks[r], r);
        require(result == occlPeerFailed, "the root has not learned it");
      });
    });
    EXPECT_EQ(outcome.defect, "");
  }
}

/// Its peers may give their rings back as soon as it has retired the id, and others may have them
/// when it comes again.
TEST_F(Life, RetiringAnIdForgetsThePeersRings) {
  std::vector<Job> jobs = makeJobs(2, inLines(plan::testing::oneShotAllReduce(kRanks)));
  expectNoDefect(3, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    const auto known = [&](uint32_t r) {
      size_t rings = 0;
      ranks[r]->daemon->inspect(0, [&](const daemon::IdState &sequence) {
        for (const auto &ring : sequence.peerRings)
          rings += ring.load() != 0;
      });
      return rings;
    };
    const auto runAll = [&](Job &job) {
      runRanks([&](uint32_t r) {
        for (uint32_t i = 0; i < 2; ++i)
          require(occlWait(ranks[r], submitWhenFree(job, ranks[r], r)) == occlSuccess, "wait");
      });
    };
    runAll(jobs[0]);
    require(known(0) == 1 && known(1) == 1, "nothing is known of the peer's ring");
    keepOnly(ranks[1], 1);
    runAll(jobs[1]);
    require(known(0) == 1 && known(1) == 0, "what is retired is known, or what is not is not");
  });
}

/// Ids whose cells go from one to the other: each rank keeps one at a time.
TEST_F(Life, IdsComeAndGo) {
  for (const PlanHandle &plan : {ring, inLines(plan::testing::oneShotAllReduce(kRanks))}) {
    std::vector<Job> jobs = makeJobs(2, plan);
    expectNoDefect(300, [&] {
      Ranks ranks(kRanks, withWorkers(1));
      bindAll(ranks, jobs);
      runRanks([&](uint32_t r) {
        keepOnly(ranks[r], 1);
        for (uint32_t i = 0; i < 6; ++i) {
          Job &job = jobs[i % 3 == 2];
          occlRequest_t request = submitWhenFree(job, ranks[r], r);
          require(occlWait(ranks[r], request) == occlSuccess, "wait");
          require(job.check(r).empty(), job.check(r));
          if ((i + r) % 2 == 0)
            sleepFor(6ms); // the watchdog goes on with it
        }
      });
    });
  }
}

/// An invocation is had back after its id has been called with a larger count: its memory is not
/// used for one of those, for behind it lies what is in flight.
TEST_F(Life, CalledWithMore) {
  const PlanHandle plan = handleOf(plan::testing::chainBroadcast(kRanks, 1));
  Job less(0, plan, 4, DataType::Int32), more(0, plan, 1000, DataType::Int32);
  Job beside(1, plan, 100, DataType::Int32);
  expectNoDefect(3, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    auto run = [&](Job &job, uint32_t r) {
      occlRequest_t request = submitWhenFree(job, ranks[r], r);
      require(occlWait(ranks[r], request) == occlSuccess, "run");
      require(job.check(r).empty(), "wrong result");
    };
    run(less, 0); // the root waits for nobody
    run(more, 0);
    run(beside, 0);
    run(less, 1);
    run(less, 0);
    run(more, 1);
    run(beside, 1);
    run(less, 1);
  });
}

TEST_F(Life, AgainWhileTheArenaIsFull) {
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < 3; ++j)
    jobs.emplace_back(j, ring, 3000, DataType::Int32);
  exploreRanks(100, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
    std::vector<occlRequest_t> requests;
    for (uint32_t i = 0; i < 6; ++i)
      requests.push_back(submitWhenFree(jobs[(i + r) % 3], ranks[r], r));
    for (occlRequest_t request : requests)
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
  });
}

/// With successors that have not begun, and executors that sleep for good.
TEST_F(Life, AbortEndsWhatWaitsForItsPredecessor) {
  std::vector<Job> jobs = makeJobs(1, twoShot);
  for (auto pause : {0ms, 40ms})
    expectNoDefect(100, [&] {
      Ranks ranks(kRanks, withWorkers(1));
      bindAll(ranks, jobs);
      Thread aborter([&] {
        sleepFor(pause);
        require(occlCommAbort(ranks[1]) == occlSuccess, "abort");
      });
      runRanks([&](uint32_t r) {
        std::vector<occlRequest_t> requests;
        for (uint32_t i = 0; i < 3 - r; ++i) {
          occlRequest_t request;
          if (jobs[0].submit(ranks[r], r, &request) == occlSuccess)
            requests.push_back(request);
        }
        for (occlRequest_t request : requests) {
          occlResult_t result = occlWait(ranks[r], request);
          require(result == occlSuccess || result == occlAborted, "wait after abort");
        }
        std::array<int32_t, 4> output, later;
        std::memcpy(output.data(), jobs[0].output(r), sizeof output);
        sleepFor(1ms);
        std::memcpy(later.data(), jobs[0].output(r), sizeof later);
        require(output == later, "a buffer is written after its collective has ended");
      });
      aborter.join();
    });
}

} // namespace
} // namespace occl::explore
