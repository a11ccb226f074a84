// Whole communicators under made-up schedules: what has ended on a rank is its user's, and what has
// been given back is somebody else's.
#include "plan/testing/direct_plans.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <utility>
#include <vector>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;

class Ends : public Daemon {};

/// Set by a callback, or otherwise.
struct Flag {
  Mutex mutex;
  ConditionVariable changed;
  bool isSet = false;

  static void set(occlRequest_t, occlResult_t result, void *user) {
    require(result == occlSuccess, "an invocation failed");
    static_cast<Flag *>(user)->set();
  }
  void set() {
    std::lock_guard lock(mutex);
    isSet = true;
    changed.notify_all();
  }
  void await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return isSet; });
  }
};

void submitAndWait(Job &job, occlComm_t comm, uint32_t rank) {
  require(occlWait(comm, submitWhenFree(job, comm, rank)) == occlSuccess, "wait");
}

/// Another thread completes an invocation without callback; who waits for it submits one with a
/// callback at once, which takes the same memory.
TEST_F(Ends, AnInvocationIsUsedAgainAtOnce) {
  std::vector<Job> jobs = makeJobs(2, ring);
  for (Job &job : jobs)
    job.setCallbackKind(communicator::testing::CallbackKind::NeverBlocks);
  expectNoDefect(400, [&] {
    Flag flags[kRanks];
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) {
      Thread helper([&] { submitAndWait(jobs[1], ranks[r], r); });
      submitAndWait(jobs[0], ranks[r], r);
      require(jobs[0].submit(ranks[r], r, nullptr, Flag::set, &flags[r]) == occlSuccess, "submit");
      flags[r].await();
      helper.join();
      expectRight(jobs, r);
    });
  });
}

/// One thread is receiving when another one aborts, and learns that the collective has ended.
TEST_F(Ends, AfterAFailureNothingIsWritten) {
  PlanHandle broadcast = handleOf(plan::testing::chainBroadcast(kRanks, 1, 1)); // of rank 1
  constexpr uint64_t kCount = 16;
  std::vector<Job> jobs;
  jobs.emplace_back(0, broadcast, kCount, DataType::Int32);
  uint32_t numAborted = 0;
  Outcome outcome = explore(allWithOneDelay(), [&] {
    jobs[0].fill(1);
    occlConfig_t config = withWorkers(1);
    config.maxInFlight = 2; // little to set up
    Ranks ranks(kRanks, config);
    bindAll(ranks, jobs);
    submitAndWait(jobs[0], ranks[1], 1);
    exploreFromHere();
    occlRequest_t request = submitWhenFree(jobs[0], ranks[0], 0);
    auto isAborted = [&] { return occlTest(ranks[0], request) == occlAborted; };
    std::vector<char> output(kCount * sizeof(int32_t));
    Thread aborter([&] {
      require(occlCommAbort(ranks[0]) == occlSuccess, "abort");
      if (isAborted()) {
        ++numAborted;
      } else {
        sleepFor(1ms);
        (void)isAborted(); // it has ended, and what it wrote may be read
      }
      std::memcpy(output.data(), jobs[0].output(0), output.size());
    });
    (void)isAborted();
    aborter.join();
    sleepFor(1ms);
    require(std::memcmp(output.data(), jobs[0].output(0), output.size()) == 0,
            "a buffer is written after its collective has ended");
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
  EXPECT_GT(numAborted, 0u) << "nothing was aborted in " << outcome.schedules << " schedules";
}

/// A submission that has found the communicator well while another thread aborts it and ends what
/// is open: the submitter ends it, not the watchdog's next round.
TEST_F(Ends, SubmissionsDuringAFailureEnd) {
  std::vector<Job> jobs = makeJobs(1, ring);
  for (bool isRun : {false, true}) {
    uint32_t numAdmitted = 0;
    Outcome outcome = explore(allWithOneDelay(), [&] {
      occlConfig_t config = withWorkers(1);
      config.maxInFlight = 2; // little to set up
      Ranks ranks(kRanks, config);
      bindAll(ranks, jobs);
      Job &job = jobs[0];
      occlRequest_t request = submitWhenFree(job, ranks[0], 0);
      require(occlTest(ranks[0], request) == occlInProgress, "complete alone"); // makes a round
      submitAndWait(job, ranks[1], 1);
      require(occlWait(ranks[0], request) == occlSuccess, "wait");
      exploreFromHere();
      const auto begin = SteadyClock::now();
      Thread aborter([&] { require(occlCommAbort(ranks[0]) == occlSuccess, "abort"); });
      occlResult_t result = isRun ? job.run(ranks[0], 0) : job.submit(ranks[0], 0, &request);
      if (!isRun && result == occlSuccess) {
        ++numAdmitted;
        result = occlWait(ranks[0], request);
      }
      require(result == occlAborted, "not aborted");
      require(SteadyClock::now() - begin < 1ms, "nobody ended it but the watchdog");
      aborter.join();
    });
    EXPECT_EQ(outcome.defect, "");
    EXPECT_TRUE(outcome.all);
    EXPECT_EQ(numAdmitted != 0, !isRun) << outcome.schedules << " schedules";
  }
}

/// Each rank stores to the other's output. Who has an error uses its buffers again at once.
class Direct {
public:
  /// isOnTime: who does not learn of the end at once has not been told.
  Direct(const Job &job, bool isOnTime)
      : job(job), isOnTime(isOnTime), ranks(kRanks, littleToSetUp()) {
    bindAll(ranks, {job});
    exploreFromHere();
  }

  void run(uint32_t r) {
    occlResult_t result = job.runOn(ranks[r], inputs[r], outputs[r]);
    require(result == occlSuccess || result == occlAborted, "run beside an abort");
    require(result == occlSuccess || !isOnTime || SteadyClock::now() - aborted < 500us,
            "nobody has told that the buffers are free");
    std::ranges::fill(outputs[r], 77);
  }
  void abort() {
    aborted = SteadyClock::now();
    require(occlCommAbort(ranks[0]) == occlSuccess, "abort");
  }
  /// After all calls have returned.
  void expectKept() const {
    for (const auto &output : outputs)
      require(std::ranges::count(output, 77) == 4, "stored to after the call had returned");
  }

private:
  static occlConfig_t littleToSetUp() {
    occlConfig_t config = withWorkers(1);
    config.maxInFlight = 2;
    return config;
  }

  const Job &job;
  const bool isOnTime;
  int32_t inputs[kRanks][4] = {}, outputs[kRanks][4] = {};
  SteadyClock::time_point aborted{};
  Ranks ranks;
};

void joinAll(std::initializer_list<Thread *> threads) {
  for (Thread *thread : threads)
    thread->join();
}

TEST_F(Ends, NobodyStoresToTheBuffersOfWhatHasFailed) {
  const Job job(0, handleOf(plan::testing::directAllReduce(kRanks)), 4, DataType::Int32);
  expectNoDefect(600, [&] {
    Direct direct(job, false);
    Thread one([&] { direct.run(1); }), zero([&] { direct.run(0); });
    Thread aborter([&] { direct.abort(); });
    joinAll({&one, &zero, &aborter});
    direct.expectKept();
  });
  Outcome outcome = explore(allWithOneDelay(), [&] {
    Direct direct(job, true);
    // Rank 1 sleeps, then rank 0 stores to its output, in the middle of which there may be the
    // delay. Then rank 1 is told of the failure, and goes on first.
    Thread one([&] { direct.run(1); });
    Thread zero([&] {
      sleepFor(1ms);
      direct.run(0);
    });
    Thread aborter([&] {
      sleepFor(1ms);
      direct.abort();
    });
    joinAll({&one, &zero, &aborter});
    direct.expectKept();
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

/// Who aborts is stopped before it has told rank 1, which begins when rank 0 has its error.
TEST_F(Ends, NobodyWhoHasNotHeardOfAFailureStoresToTheBuffersOfWhatHasFailed) {
  const Job job(0, handleOf(plan::testing::directAllReduce(kRanks)), 4, DataType::Int32);
  Outcome outcome = explore(allWithOneDelay(), [&] {
    Direct direct(job, true);
    Flag isOver;
    Thread zero([&] {
      direct.run(0);
      isOver.set();
    });
    Thread one([&] {
      isOver.await();
      direct.run(1);
    });
    Thread aborter([&] { direct.abort(); });
    joinAll({&zero, &one, &aborter});
    direct.expectKept();
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

} // namespace
} // namespace occl::explore
