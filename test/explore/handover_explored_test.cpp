// Whole communicators under made-up schedules: what a helper hands over when it leaves, and what a
// submission that is refused gives back.
#include "runtime/api/capi/handles.h"
#include "runtime/sched/executor.h"
#include "runtime/sched/inside_wait.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/thread.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;

class HandOver : public Daemon {};

occlRequest_t submit(const Ranks &ranks, uint32_t r, Job &job) {
  occlRequest_t request = 0;
  require(job.submit(ranks[r], r, &request) == occlSuccess, "submit");
  return request;
}

void wait(const Ranks &ranks, uint32_t r, occlRequest_t request) {
  require(occlWait(ranks[r], request) == occlSuccess, "wait");
}

/// Of the one invocation that is open: claims its thread block, and no other.
daemon::BlockTask *claimBlock(daemon::TaskBoard &board, uint32_t block) {
  daemon::BlockTask *found = nullptr;
  std::vector<daemon::BlockTask *> others;
  daemon::InvocationList complete;
  scheduler::Visit visit;
  scheduler::Round round;
  while (daemon::BlockTask *task = board.claim(visit, complete, ticks(), round))
    if (task->block == block)
      found = task;
    else
      others.push_back(task);
  for (daemon::BlockTask *task : others)
    board.release(*task, {});
  require(found, "no such thread block is open");
  return found;
}

/// While a helper of rank 0 waits for rank 1, the worker goes to sleep for good. Then another
/// thread submits what nobody on that rank waits for, and the helper leaves.
TEST_F(HandOver, AHelperThatLeavesWakesTheWorker) {
  std::vector<Job> jobs = makeJobs(2, twoShot);
  expectNoDefect(200, [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) {
      if (r == 1) {
        sleepFor(40ms);
        wait(ranks, r, submit(ranks, r, jobs[0]));
        const auto begin = SteadyClock::now();
        wait(ranks, r, submit(ranks, r, jobs[1]));
        require(SteadyClock::now() - begin < 100ms, "nobody ran it on rank 0");
        return;
      }
      occlRequest_t unattended = 0;
      Thread submitter([&] {
        sleepFor(40ms);
        unattended = submit(ranks, r, jobs[1]);
      });
      wait(ranks, r, submit(ranks, r, jobs[0]));
      sleepFor(400ms); // computes
      submitter.join();
      wait(ranks, r, unattended);
    });
  });
}

/// Two helpers of rank 0. One visits a thread block that another one waits for, while the other
/// helper finds everything else blocked, and sleeps. Then the first one's own wait is over. Blocks
/// of a rank do not ring for each other: who leaves does.
TEST_F(HandOver, AHelperThatLeavesWakesWhoIsStuck) {
  constexpr uint32_t kReduces = 1; // this block of the plan, for which the two behind it wait
  std::vector<Job> jobs = makeJobs(1, twoShot);
  Outcome outcome = explore(allWithOneDelay(), [&] {
    Ranks ranks(kRanks, withWorkers(1));
    bindAll(ranks, jobs);
    Thread stays([&] { wait(ranks, 0, submit(ranks, 0, jobs[0])); });
    sleepFor(40ms); // the workers sleep for good, and the helper has looked in vain
    daemon::Device &device = *ranks[0]->daemon->device();
    occlRequest_t request = 0;
    {
      daemon::InsideWait leaves(device);
      daemon::BlockTask *reduces = claimBlock(device.board, kReduces);
      request = submit(ranks, 1, jobs[0]);
      sleepFor(1ms); // its data comes, and the helper that stays looks
      exploreFromHere();
      daemon::Executor(device).goOnClaimed(*reduces, ticks());
    }
    stays.join();
    wait(ranks, 1, request);
  });
  EXPECT_EQ(outcome.defect, "");
}

/// What is refused for want of memory has taken no request: all that there are can be used later.
TEST_F(HandOver, ARefusedCallHoldsNoRequest) {
  constexpr uint32_t kInFlight = 2; // ids below are of small ones
  std::vector<Job> jobs = makeJobs(kInFlight, ring);
  for (uint32_t j = 0; j < 2; ++j)
    jobs.emplace_back(kInFlight + j, ring, 10000, DataType::Int32);
  std::atomic<uint32_t> numRefused = 0;
  expectNoDefect(50, [&] {
    occlConfig_t config = withWorkers(1);
    config.maxInFlight = kInFlight;
    Ranks ranks(kRanks, config);
    bindAll(ranks, jobs);
    runRanks([&](uint32_t r) {
      occlRequest_t first = submit(ranks, r, jobs[kInFlight]), second = 0;
      for (occlResult_t result = occlAgain; result == occlAgain;) {
        result = jobs[kInFlight + 1].submit(ranks[r], r, &second);
        numRefused += result == occlAgain;
        wait(ranks, r, first);
      }
      wait(ranks, r, second);
      std::array<occlRequest_t, kInFlight> requests{};
      for (uint32_t j = 0; j < kInFlight; ++j)
        while (jobs[j].submit(ranks[r], r, &requests[j]) == occlAgain)
          yieldProcessor();
      for (occlRequest_t request : requests)
        wait(ranks, r, request);
    });
  });
  EXPECT_GT(numRefused, 0u) << "nothing was refused";
}

/// Two executors each look at everything. If one has left out what the other one held, that one
/// says that it has to look again.
TEST_F(HandOver, TasksThatALastLookLeavesOutAreLookedAtAgain) {
  std::vector<Job> jobs = makeJobs(1, handleOf(plan::testing::chainBroadcast(kRanks, 1)));
  uint32_t numLeftOut = 0;
  Outcome outcome = explore(allWithOneDelay(), [&] {
    occlConfig_t config = withWorkers(1);
    config.maxInFlight = 2; // little to set up
    Ranks ranks(kRanks, config);
    bindAll(ranks, jobs);
    occlRequest_t request = submit(ranks, 1, jobs[0]);
    sleepFor(1ms); // the worker has looked at it in vain, and sleeps
    exploreFromHere();
    daemon::Device &device = *ranks[1]->daemon->device();
    std::array<bool, 2> hasLooked{}, looksAgain{};
    auto look = [&](uint32_t i) {
      daemon::Executor executor(device);
      looksAgain[i] = executor.lookAtAll();
      hasLooked[i] = executor.countClaims() != 0;
    };
    Thread one(look, 0), other(look, 1);
    one.join();
    other.join();
    for (uint32_t i : {0, 1}) {
      require(hasLooked[i] || looksAgain[1 - i], "nobody looks again at what was left out");
      numLeftOut += !hasLooked[i];
    }
    wait(ranks, 0, submit(ranks, 0, jobs[0]));
    wait(ranks, 1, request);
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
  EXPECT_GT(numLeftOut, 0u) << "nothing was left out in " << outcome.schedules << " schedules";
}

} // namespace
} // namespace occl::explore
