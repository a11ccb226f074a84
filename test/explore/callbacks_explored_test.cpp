// Callbacks under made-up schedules: they submit again, wait for each other, and throw.
#include "runtime/queue/callback_threads.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/mutex.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace occl::explore {
namespace {

using communicator::testing::CallbackKind;

class Callbacks : public Daemon {};

/// What a rank's callback needs to submit the next invocation.
struct Chain {
  occlComm_t comm = nullptr;
  Job *job = nullptr;
  uint32_t rank = 0, left = 0;
  Atomic<uint32_t> run{0};
};

void submitNext(occlRequest_t, occlResult_t result, void *user) {
  auto &chain = *static_cast<Chain *>(user);
  require(result == occlSuccess, "an invocation of the chain failed");
  chain.run.fetch_add(1);
  if (chain.left-- == 0)
    return;
  require(chain.job->submit(chain.comm, chain.rank, nullptr, submitNext, user) == occlSuccess,
          "submit from a callback");
}

/// Two invocations of each rank, the second one from the callback of the first.
void runChains(std::vector<Job> &jobs) {
  std::array<Chain, kRanks> chains;
  {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    for (uint32_t r = 0; r < kRanks; ++r) {
      chains[r].comm = ranks[r];
      chains[r].job = &jobs[0];
      chains[r].rank = r;
      chains[r].left = 1;
    }
    runRanks([&](uint32_t r) {
      require(jobs[0].submit(ranks[r], r, nullptr, submitNext, &chains[r]) == occlSuccess,
              "submit");
    });
    // A rank that is destroyed first would wait for what the other's callback has to submit.
    for (Chain &chain : chains)
      while (chain.run.load() != 2)
        sleepFor(std::chrono::milliseconds(1));
  }
  expectRight(jobs, 0);
  expectRight(jobs, 1);
}

TEST_F(Callbacks, SubmitAgain) {
  std::vector<PlanHandle> plans = plansOfOneBlock();
  plans.push_back(twoShot);
  for (const PlanHandle &plan : plans)
    for (CallbackKind kind : {CallbackKind::MayBlock, CallbackKind::NeverBlocks}) {
      std::vector<Job> jobs = makeJobs(1, plan);
      jobs[0].setCallbackKind(kind);
      expectNoDefect(200, [&] { runChains(jobs); });
    }
}

/// The callbacks of some invocations of a rank wait for each other.
struct Meeting {
  static constexpr uint32_t kMembers = 3;
  Mutex mutex;
  ConditionVariable changed;
  uint32_t inside = 0;

  void join() {
    std::unique_lock lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [&] { return inside >= kMembers; });
  }
};

void meet(occlRequest_t, occlResult_t, void *user) { static_cast<Meeting *>(user)->join(); }

/// Twice: the second time there are threads that have nothing to do. A job of which nobody is told
/// would begin when one of them looks whether it is left over.
TEST_F(Callbacks, WaitForEachOther) {
  std::vector<Job> jobs = makeJobs(Meeting::kMembers, ring);
  expectNoDefect(100, [&] {
    std::array<std::array<Meeting, 2>, kRanks> meetings;
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) {
      for (Meeting &meeting : meetings[r]) {
        const auto begin = SteadyClock::now();
        for (uint32_t i = 0; i < Meeting::kMembers; ++i) {
          Job &job = jobs[(i + r) % Meeting::kMembers];
          require(job.submit(ranks[r], r, nullptr, meet, &meeting) == occlSuccess, "submit");
        }
        std::unique_lock lock(meeting.mutex);
        meeting.changed.wait(lock, [&] { return meeting.inside == Meeting::kMembers; });
        require(SteadyClock::now() - begin < std::chrono::milliseconds(100),
                "nobody was told of a job");
      }
    });
  });
}

/// Each of some jobs waits for the one after it.
struct Waiting {
  Mutex mutex;
  ConditionVariable changed;
  uint32_t lastEnded = 0; // jobs end from the last to the first

  static void run(void *owner, uint32_t entry) {
    auto &waiting = *static_cast<Waiting *>(owner);
    std::unique_lock lock(waiting.mutex);
    waiting.await(lock, entry + 1);
    waiting.lastEnded = entry;
    waiting.changed.notify_all();
  }
  void await(std::unique_lock<Mutex> &lock, uint32_t entry) {
    changed.wait(lock, [&] { return lastEnded == entry; });
  }
};

/// At first threads come as they are needed. Then those wait, for whatever they wait for, and all
/// jobs are begun by them.
TEST_F(Callbacks, AreBegunByThreadsThatWaitForDifferentThings) {
  constexpr uint32_t kJobs = 3;
  expectNoDefect(1000, [] {
    Waiting waiting;
    daemon::CallbackThreads threads(kJobs + 1);
    require(threads.ensureThread().ok(), "no thread");
    for (uint32_t round = 0; round < 2; ++round) {
      std::unique_lock lock(waiting.mutex);
      waiting.lastEnded = kJobs;
      for (uint32_t entry = 0; entry < kJobs; ++entry)
        threads.add({Waiting::run, &waiting, entry});
      waiting.await(lock, 0);
      lock.unlock();
      sleepFor(std::chrono::milliseconds(1)); // they are idle by then
    }
  });
}

void count(occlRequest_t, occlResult_t, void *user) {
  static_cast<Atomic<uint32_t> *>(user)->fetch_add(1);
}

/// Two threads each end an invocation, in their submissions: one of them runs both callbacks, or
/// each its own.
TEST_F(Callbacks, OfWhatEndsAtTheSameTime) {
  std::vector<Job> jobs = makeJobs(2, handleOf(plan::testing::chainBroadcast(kRanks, 1)));
  for (Job &job : jobs)
    job.setCallbackKind(CallbackKind::NeverBlocks);
  Outcome outcome = explore(allWithOneDelay(), [&] {
    occlConfig_t config = withWorkers(1);
    config.maxInFlight = 2; // little to set up
    Atomic<uint32_t> called{0};
    Ranks ranks(kRanks, config);
    bindAll(ranks, jobs);
    exploreFromHere();
    auto submit = [&](Job &job) { // rank 0 only sends
      require(job.submit(ranks[0], 0, nullptr, count, &called) == occlSuccess, "submit");
    };
    Thread first([&] { submit(jobs[0]); }), second([&] { submit(jobs[1]); });
    first.join();
    second.join();
    for (Job &job : jobs)
      require(occlWait(ranks[1], submitWhenFree(job, ranks[1], 1)) == occlSuccess, "wait");
    for (int look = 0; look < 10 && called.load() != 2; ++look)
      sleepFor(std::chrono::milliseconds(1));
    require(called.load() == 2, "a callback was not called");
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

void throwAlways(occlRequest_t, occlResult_t, void *) { throw std::runtime_error("no"); }

TEST_F(Callbacks, ThatThrowFailAllRanks) {
  std::vector<Job> jobs = makeJobs(2, twoShot);
  exploreRanks(100, withWorkers(1), jobs, [&](Ranks &ranks, uint32_t r) {
    occlRequest_t request;
    occlResult_t result = r == 0 ? jobs[0].submit(ranks[r], r, nullptr, throwAlways)
                                 : jobs[0].submit(ranks[r], r, &request);
    require(result == occlSuccess || result == occlCallbackFailed, "submit");
    if (r == 1)
      return; // it never submits the other
    result = jobs[1].submit(ranks[r], r, &request);
    require(result == occlSuccess || result == occlCallbackFailed, "submit");
    if (result == occlSuccess)
      require(occlWait(ranks[r], request) == occlCallbackFailed, "it can only fail");
  });
}

} // namespace
} // namespace occl::explore
