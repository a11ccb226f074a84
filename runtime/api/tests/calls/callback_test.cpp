// Callbacks may block, submit, wait and throw, and stop nobody by it.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 2;

/// A callback that is a function object; it must outlive its call.
using Body = std::function<void(occlResult_t)>;

occlResult_t submit(Job &job, occlComm_t comm, uint32_t rank, Body &body) {
  return job.submit(
      comm, rank, nullptr,
      [](occlRequest_t, occlResult_t result, void *user) { (*static_cast<Body *>(user))(result); },
      &body);
}

class Counter {
public:
  void increment() {
    std::lock_guard lock(mutex);
    ++count;
    changed.notify_all();
  }
  /// False if that takes longer than a minute.
  bool reach(uint32_t goal) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 60s, [&] { return count >= goal; });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t count = 0;
};

std::vector<Job> makeJobs(uint32_t number, CallbackKind kind) {
  PlanHandle handle = handleOf(ringAllReduce(kRanks));
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < number; ++j) {
    jobs.emplace_back(j, handle, 100);
    jobs.back().setCallbackKind(kind);
  }
  return jobs;
}

/// What one rank does; it destroys itself at the end, which waits for the callbacks, so what they
/// refer to may be the body's own.
using RankBody = std::function<void(Ranks &, std::vector<Job> &, uint32_t rank)>;

/// Runs body on all ranks of a new communicator, on which so many jobs are registered.
void onEachRank(uint32_t numJobs, CallbackKind kind, const RankBody &body) {
  Ranks ranks(kRanks);
  std::vector<Job> jobs = makeJobs(numJobs, kind);
  ranks.run([&](uint32_t r) { body(ranks, jobs, r); });
}

void withBothKinds(uint32_t numJobs, const RankBody &body) {
  for (CallbackKind kind : {CallbackKind::MayBlock, CallbackKind::NeverBlocks})
    onEachRank(numJobs, kind, body);
}

TEST(Callback, OneThatBlocksStopsNeitherItsRankNorOtherCallbacks) {
  onEachRank(12, CallbackKind::MayBlock, [&](Ranks &ranks, std::vector<Job> &jobs, uint32_t r) {
    Counter gate, others;
    Body blocking = [&](occlResult_t) { EXPECT_TRUE(gate.reach(1)); };
    Body counting = [&](occlResult_t) { others.increment(); };
    ASSERT_EQ(submit(jobs[0], ranks[r], r, blocking), occlSuccess);
    for (uint32_t j = 1; j < 6; ++j)
      ASSERT_EQ(submit(jobs[j], ranks[r], r, counting), occlSuccess);
    for (uint32_t j = 6; j < 12; ++j) {
      occlRequest_t request = 0;
      ASSERT_EQ(jobs[j].submit(ranks[r], r, &request), occlSuccess);
      EXPECT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
    }
    EXPECT_TRUE(others.reach(5)) << "callbacks behind the blocked one";
    gate.increment();
    ranks.destroy(r); // waits for the callbacks
  });
}

TEST(Callback, EachMayWaitForTheNextOne) {
  constexpr uint32_t kChain = 10;
  onEachRank(kChain, CallbackKind::MayBlock, [&](Ranks &ranks, std::vector<Job> &jobs, uint32_t r) {
    std::vector<Counter> done(kChain + 1);
    std::vector<Body> bodies;
    for (uint32_t j = 0; j < kChain; ++j)
      bodies.emplace_back([&, j](occlResult_t) {
        EXPECT_TRUE(done[j + 1].reach(1));
        done[j].increment();
      });
    for (uint32_t j = 0; j < kChain; ++j)
      ASSERT_EQ(submit(jobs[j], ranks[r], r, bodies[j]), occlSuccess);
    done[kChain].increment();
    EXPECT_TRUE(done[0].reach(1));
    ranks.destroy(r); // waits for the callbacks
  });
}

TEST(Callback, MaySubmitAndWaitForIt) {
  withBothKinds(2, [&](Ranks &ranks, std::vector<Job> &jobs, uint32_t r) {
    Counter done;
    Body waiting = [&](occlResult_t) {
      occlRequest_t request = 0;
      EXPECT_EQ(jobs[1].submit(ranks[r], r, &request), occlSuccess);
      EXPECT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
      done.increment();
    };
    ASSERT_EQ(submit(jobs[0], ranks[r], r, waiting), occlSuccess);
    EXPECT_TRUE(done.reach(1));
    ranks.destroy(r); // waits for the callbacks
  });
}

TEST(Callback, AChainOfSubmissionsFromCallbacks) {
  constexpr uint32_t kLength = 300 / kSlowness;
  withBothKinds(1, [&](Ranks &ranks, std::vector<Job> &jobs, uint32_t r) {
    Counter done;
    std::atomic<uint32_t> left{kLength};
    Body next = [&](occlResult_t) {
      while (left.load() > 0) {
        occlResult_t result = submit(jobs[0], ranks[r], r, next);
        if (result == occlAgain)
          continue;
        EXPECT_EQ(result, occlSuccess) << occlGetLastError();
        left.fetch_sub(1);
        break;
      }
      done.increment();
    };
    next(occlSuccess);
    EXPECT_TRUE(done.reach(kLength));
    ranks.destroy(r); // waits for the callbacks
  });
}

TEST(Callback, BeginInTheOrderOfCompletion) {
  constexpr uint32_t kJobs = 8;
  onEachRank(kJobs, CallbackKind::NeverBlocks,
             [&](Ranks &ranks, std::vector<Job> &jobs, uint32_t r) {
               Counter done;
               std::vector<uint32_t> order; // callbacks that never block run one at a time
               std::vector<Body> bodies;
               for (uint32_t j = 0; j < kJobs; ++j)
                 bodies.emplace_back([&, j](occlResult_t) {
                   order.push_back(j);
                   done.increment();
                 });
               for (uint32_t j = 0; j < kJobs; ++j) {
                 ASSERT_EQ(submit(jobs[j], ranks[r], r, bodies[j]), occlSuccess);
                 if (j % 2 == 0)
                   continue; // two may end in either order, but those before have ended
                 EXPECT_TRUE(done.reach(j + 1));
               }
               for (uint32_t j = 0; j < kJobs; ++j)
                 EXPECT_EQ(order[j] / 2, j / 2);
               ranks.destroy(r); // waits for the callbacks
             });
}

TEST(Callback, AnExceptionFailsTheCommunicatorAndNothingElse) {
  for (CallbackKind kind : {CallbackKind::MayBlock, CallbackKind::NeverBlocks}) {
    Ranks ranks(kRanks);
    std::vector<Job> jobs = makeJobs(2, kind);
    Counter ended;
    ranks.run([&](uint32_t r) {
      Body throwing = [&](occlResult_t) {
        ended.increment();
        throw std::runtime_error("out of paper");
      };
      Body counting = [&](occlResult_t) { ended.increment(); };
      ASSERT_EQ(submit(jobs[0], ranks[r], r, r == 1 ? throwing : counting), occlSuccess);
      EXPECT_TRUE(ended.reach(kRanks));
      // Rank 1 has failed or is about to; what comes now ends with its error.
      occlResult_t result = occlSuccess;
      for (auto end = std::chrono::steady_clock::now() + 60s;
           result == occlSuccess && std::chrono::steady_clock::now() < end;) {
        occlRequest_t request = 0;
        result = jobs[1].submit(ranks[r], r, &request);
        if (result == occlSuccess)
          result = occlWait(ranks[r], request);
      }
      EXPECT_EQ(result, occlCallbackFailed);
      EXPECT_EQ(std::string(occlCommGetLastError(ranks[r])),
                "the callback of collective 'ring_allreduce of 100' (id 0), invocation 0, threw an "
                "exception on rank 1: out of paper");
      ranks.destroy(r); // waits for the callbacks
    });
  }
}

TEST(Callback, DestroyingItsCommunicatorIsRefused) {
  withBothKinds(1, [&](Ranks &ranks, std::vector<Job> &jobs, uint32_t r) {
    Counter done;
    Body destroying = [&](occlResult_t) {
      EXPECT_EQ(occlCommDestroy(ranks[r]), occlInvalidArgument);
      done.increment();
    };
    ASSERT_EQ(submit(jobs[0], ranks[r], r, destroying), occlSuccess);
    EXPECT_TRUE(done.reach(1));
    ranks.destroy(r); // waits for the callbacks
  });
}

} // namespace
} // namespace occl::communicator::testing
