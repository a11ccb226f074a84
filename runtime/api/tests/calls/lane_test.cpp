// The straight lane of small collectives: that it is taken, what it counts, and that ranks in it,
// on their way out of it and beside it get on with each other.
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

PlanHandle inLines(plan::Plan plan, plan::Protocol protocol = plan::Protocol::LL128) {
  plan.protocol = protocol;
  return handleOf(std::move(plan));
}

uint64_t completedInLane(occlComm_t comm) { return comm->daemon->stats().completedInLane.load(); }
/// How often it was entered.
uint64_t entries(occlComm_t comm) {
  return completedInLane(comm) + comm->daemon->stats().leftLane.load();
}

/// The first invocations find out where the peers' blocks lie.
constexpr uint32_t kFirst = 2;

TEST(Lane, IsTakenAndCountsAsTheUsualWayDoes) {
  constexpr uint32_t kIterations = 300;
  for (uint32_t n : {2u, 3u})
    for (auto make : {oneShotAllReduce, ringAllGather, allToAll}) {
      Ranks ranks(n);
      Job job(7, inLines(make(n)), 16, DataType::Int32);
      ranks.run([&](uint32_t r) {
        for (uint32_t i = 0; i < kIterations; ++i)
          ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
        EXPECT_EQ(job.check(r), "");
        EXPECT_GE(entries(ranks[r]), kIterations - kFirst);
        occlStats_t stats{};
        stats.size = sizeof stats;
        ASSERT_EQ(occlCommGetStats(ranks[r], &stats), occlSuccess);
        EXPECT_EQ(stats.submitted, kIterations);
        EXPECT_EQ(stats.completed, kIterations);
        occlCollectiveStats_t counters{};
        counters.size = sizeof counters;
        ASSERT_EQ(occlCollectiveGetStats(ranks[r], OCCL_CALLS, &counters), occlSuccess);
        EXPECT_EQ(counters.submitted, kIterations);
        EXPECT_EQ(counters.completed, kIterations);
        occlBlockStats_t block{};
        block.size = sizeof block;
        ASSERT_EQ(occlCollectiveGetBlockStats(ranks[r], OCCL_CALLS, 0, &block), occlSuccess);
        EXPECT_EQ(block.contextLoads, stats.contextLoads);
        EXPECT_EQ(block.contextSaves, stats.contextSaves);
        EXPECT_GE(block.contextLoads, kIterations);
        EXPECT_GE(block.contextSaves, kIterations);
        EXPECT_EQ(block.slices % kIterations, 0u);
        EXPECT_EQ(block.bytesSent, stats.bytesSent);
        EXPECT_EQ(block.bytesReceived, stats.bytesReceived);
      });
    }
}

TEST(Lane, IsTakenByARankWithoutInput) {
  constexpr uint32_t kIterations = 100;
  Ranks ranks(2);
  plan::Plan broadcast = chainBroadcast(2, 1);
  broadcast.ranks[1].inputChunks = 0;
  Job job(7, inLines(std::move(broadcast)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    const void *input = r == 0 ? job.input(r) : nullptr;
    for (uint32_t i = 0; i < kIterations; ++i)
      ASSERT_EQ(job.runOn(ranks[r], input, job.output(r)), occlSuccess) << occlGetLastError();
    EXPECT_EQ(job.check(r), "");
    EXPECT_GT(entries(ranks[r]), kIterations / 2) << "rank " << r;
  });
}

/// Nothing but flags goes from rank to rank, and the buffers may be null.
TEST(Lane, IsTakenByNothing) {
  Ranks ranks(2);
  Job job(7, inLines(oneShotAllReduce(2)), 0, DataType::Int32);
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < 20; ++i)
      ASSERT_EQ(job.runOn(ranks[r], nullptr, nullptr), occlSuccess) << occlGetLastError();
    EXPECT_GT(entries(ranks[r]), 0u);
  });
}

/// Shapes in turn, up to one less than a sequence remembers; now and then a large one goes between.
TEST(Lane, IsTakenByShapesInTurn) {
  constexpr uint32_t kIterations = 200;
  for (uint32_t numShapes : {2u, 7u}) {
    Ranks ranks(2);
    std::vector<Job> jobs;
    for (uint32_t i = 0; i < numShapes; ++i)
      jobs.emplace_back(7, inLines(oneShotAllReduce(2)), 16 + 30 * i, DataType::Int32);
    Job large(7, handleOf(twoShotAllReduce(2)), 10000, DataType::Int32);
    ranks.run([&](uint32_t r) {
      for (uint32_t i = 0; i < kIterations; ++i)
        for (Job &job : jobs) {
          job.clear(r);
          ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
          ASSERT_EQ(job.check(r), "") << "call " << i;
          if (i % 50 == 20) {
            ASSERT_EQ(large.run(ranks[r], r), occlSuccess) << occlGetLastError();
          }
        }
      EXPECT_EQ(large.check(r), "");
      // Where a large one has come between, a shape's last invocation may be more than eight back.
      EXPECT_GE(entries(ranks[r]), kIterations * numShapes * 3 / 4) << numShapes << " shapes";
    });
  }
}

/// More shapes than a sequence remembers: each finds its last invocation's record used again.
TEST(Lane, IsNotTakenByMoreShapesThanRecords) {
  constexpr uint32_t kShapes = 9;
  Ranks ranks(2);
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < kShapes; ++i)
    jobs.emplace_back(7, inLines(oneShotAllReduce(2)), 16 + i, DataType::Int32);
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < 20; ++i)
      for (Job &job : jobs) {
        job.clear(r);
        ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
        ASSERT_EQ(job.check(r), "") << "call " << i;
      }
    EXPECT_EQ(entries(ranks[r]), 0u);
  });
}

/// Everything that keeps it out of the lane.
TEST(Lane, IsLeftAlone) {
  constexpr uint32_t kIterations = 10;
  const struct {
    PlanHandle plan;
    uint64_t count;
    uint32_t preemption;
  } cases[] = {
      {handleOf(oneShotAllReduce(2)), 16, 1},
      {inLines(oneShotAllReduce(2)), 100000, 1},
      {inLines(oneShotAllReduce(2)), 16, 2},
  };
  for (const auto &[plan, count, preemption] : cases) {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.preemption = preemption;
    Ranks ranks(2, config);
    Job job(7, plan, count, DataType::Int32);
    ranks.run([&, count = count](uint32_t r) {
      for (uint32_t i = 0; i < kIterations; ++i)
        ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
      EXPECT_EQ(job.check(r), "");
      EXPECT_EQ(entries(ranks[r]), 0u) << count;
    });
  }
}

/// The buffers that it refuses are refused as elsewhere.
TEST(Lane, WrongBuffers) {
  Ranks ranks(2);
  Job job(7, inLines(oneShotAllReduce(2)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    auto *output = static_cast<char *>(job.output(r));
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
      EXPECT_EQ(job.runOn(ranks[r], nullptr, output), occlInvalidArgument);
      EXPECT_EQ(job.runOn(ranks[r], job.input(r), nullptr), occlInvalidArgument);
      EXPECT_EQ(job.runOn(ranks[r], output + 4, output), occlInvalidArgument);
    }
    EXPECT_EQ(job.check(r), "");
  });
}

/// All-reduces or all-gathers of a rank whose invocations have different results.
class Sums {
public:
  static constexpr uint32_t kCount = 20; // of a part

  Sums(const Ranks &ranks, uint32_t rank, bool gathers = false)
      : comm(ranks[rank]), n(ranks.size()), rank(rank), gathers(gathers) {}

  void begin(uint32_t iteration) {
    input.assign(kCount, int32_t(iteration + rank));
    output.assign(gathers ? kCount * n : kCount, -1);
    expected.assign(output.size(), int32_t(iteration * n + n * (n - 1) / 2));
    for (uint32_t i = 0; gathers && i < expected.size(); ++i)
      expected[i] = int32_t(iteration + i / kCount);
  }
  bool isRight() const { return output == expected; }
  occlResult_t run(Job &job) { return job.runOn(comm, input.data(), output.data()); }
  occlResult_t submit(Job &job, occlRequest_t *request) {
    return job.submitOn(comm, input.data(), output.data(), request);
  }
  occlResult_t submitAndWait(Job &job) {
    occlRequest_t request = 0;
    occlResult_t result = submit(job, &request);
    return result == occlSuccess ? occlWait(comm, request) : result;
  }
  occlResult_t submitWithCallback(Job &job) {
    std::atomic<int> result{-1};
    occlCallback_t store = [](occlRequest_t, occlResult_t ended, void *user) {
      static_cast<std::atomic<int> *>(user)->store(ended, std::memory_order_release);
    };
    occlResult_t submitted =
        job.submitOn(comm, input.data(), output.data(), nullptr, store, &result);
    if (submitted != occlSuccess)
      return submitted;
    while (result.load(std::memory_order_acquire) < 0)
      std::this_thread::yield();
    return static_cast<occlResult_t>(result.load());
  }

private:
  const occlComm_t comm;
  const uint32_t n, rank;
  const bool gathers;
  std::vector<int32_t> input, output, expected;
};

/// The peer does not come, and the one that has left the lane says what it waits for.
TEST(Lane, EndsAtItsDeadline) {
  occlConfig_t config = withTimeout(200);
  Ranks ranks(2, config);
  Job job(7, inLines(oneShotAllReduce(2)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    for (int i = 0; i < 5; ++i)
      ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
  });
  const uint64_t before = entries(ranks[0]);
  EXPECT_EQ(job.run(ranks[0], 0), occlTimeout);
  EXPECT_EQ(entries(ranks[0]), before + 1);
  const std::string text = occlCommGetLastError(ranks[0]);
  EXPECT_NE(text.find("call 5 did not end on rank 0 before its deadline"), std::string::npos)
      << text;
  EXPECT_NE(text.find("waits for rank 1, which has not submitted it"), std::string::npos) << text;
}

/// Two that take themselves for the root need nothing of each other: whoever is later sees what the
/// other one has called, and says so instead of succeeding; in the lane, and elsewhere.
TEST(Lane, TwoRootsDisagree) {
  for (plan::Protocol protocol : {plan::Protocol::LL128, plan::Protocol::Simple})
    for (bool isStarted : {false, true}) {
      Ranks ranks(2);
      std::vector<Job> jobs;
      for (uint32_t root : {0, 1})
        jobs.emplace_back(7, inLines(chainBroadcast(2, 1, root), protocol), 16, DataType::Int32);
      const auto run = [&](Job &job, uint32_t r) {
        occlRequest_t request = 0;
        if (!isStarted)
          return job.run(ranks[r], r);
        const occlResult_t started = job.submit(ranks[r], r, &request);
        return started == occlSuccess ? occlWait(ranks[r], request) : started;
      };
      ranks.run([&](uint32_t r) {
        for (int i = 0; i < 10; ++i)
          for (Job &job : jobs)
            ASSERT_EQ(run(job, r), occlSuccess) << occlGetLastError();
      });
      const uint64_t before = entries(ranks[1]);
      EXPECT_EQ(run(jobs[0], 0), occlSuccess);
      EXPECT_EQ(run(jobs[1], 1), occlMismatch);
      EXPECT_EQ(entries(ranks[1]), before + (before != 0)) << "whether it was in the lane";
      EXPECT_EQ(before != 0, protocol == plan::Protocol::LL128 && !isStarted);
      for (uint32_t r : {0, 1}) {
        EXPECT_EQ(run(jobs[0], r), occlMismatch);
        const std::string text = occlCommGetLastError(ranks[r]);
        EXPECT_NE(text.find("root 0"), std::string::npos) << text;
        EXPECT_NE(text.find("root 1"), std::string::npos) << text;
      }
    }
}

/// In some rounds each rank has something else open while it calls, or not, and some are late
/// enough for the others to leave: ranks in the lane call together with ranks that are not.
TEST(Lane, RanksInItAndBesideIt) {
  constexpr uint32_t kIterations = 1000 / kSlowness, kSeed = 5;
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::LL128})
    for (bool gathers : {false, true}) {
      Ranks ranks(3);
      Job job(7, inLines(gathers ? ringAllGather(3) : oneShotAllReduce(3), protocol), Sums::kCount,
              DataType::Int32);
      ranks.run([&](uint32_t r) {
        std::mt19937 random(kSeed + r), common(kSeed);
        Sums sums(ranks, r, gathers), beside(ranks, r, gathers);
        for (uint32_t i = 0; i < kIterations; ++i) {
          if (random() % 30 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
          const bool hasOther = common() % 4 == 0, isAsync = common() % 2 == 0;
          const bool isBefore = hasOther && random() % 2 == 0;
          sums.begin(i);
          beside.begin(i + 1);
          occlRequest_t request = 0;
          if (isBefore) {
            ASSERT_EQ(beside.submit(job, &request), occlSuccess) << occlGetLastError();
          }
          ASSERT_EQ(sums.run(job), occlSuccess) << occlGetLastError();
          if (isBefore) {
            ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
          } else if (hasOther) {
            ASSERT_EQ(isAsync ? beside.submitWithCallback(job) : beside.submitAndWait(job),
                      occlSuccess)
                << occlGetLastError();
          }
          ASSERT_TRUE(sums.isRight() && (!hasOther || beside.isRight()))
              << "rank " << r << ", iteration " << i << ", seed " << kSeed;
        }
        EXPECT_GT(completedInLane(ranks[r]), 0u);
        EXPECT_GT(ranks[r]->daemon->stats().leftLane.load(), 0u);
      });
    }
}

/// Of two threads of each rank one is mostly in the lane when the other one submits.
TEST(Lane, TwoThreadsOfARank) {
  constexpr uint32_t kIterations = 1000 / kSlowness, kSeed = 9;
  Ranks ranks(2);
  std::vector<Job> jobs;
  for (uint64_t id : {0, 1})
    jobs.emplace_back(id, inLines(oneShotAllReduce(2)), Sums::kCount, DataType::Int32);
  ranks.run([&](uint32_t r) {
    auto repeat = [&](uint64_t id) { // 0 calls, and starts an id of its own
      std::mt19937 random(kSeed + r * 2 + static_cast<uint32_t>(id)), common(kSeed);
      Sums sums(ranks, r);
      for (uint32_t i = 0; i < kIterations; ++i) {
        sums.begin(i);
        ASSERT_EQ(id == 1 || common() % 4 == 0 ? sums.submitAndWait(jobs[id]) : sums.run(jobs[id]),
                  occlSuccess)
            << occlGetLastError();
        ASSERT_TRUE(sums.isRight()) << "rank " << r << ", iteration " << i << ", seed " << kSeed;
        if (random() % 8 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
      }
    };
    std::thread other(repeat, 1);
    repeat(0);
    other.join();
    EXPECT_GT(entries(ranks[r]), 0u);
  });
}

/// Another collective is started while a call is in the lane; a worker finds it.
TEST(Lane, AnotherBesideTheOneInTheLane) {
  constexpr uint32_t kIterations = 200;
  Ranks ranks(2);
  Job job(7, inLines(oneShotAllReduce(2)), Sums::kCount, DataType::Int32);
  std::atomic<uint32_t> numCalled{0};
  std::vector<int32_t> input(Sums::kCount, 1);
  std::vector<std::vector<int32_t>> outputs(2, std::vector<int32_t>(Sums::kCount));
  occlCallback_t count = [](occlRequest_t, occlResult_t result, void *user) {
    EXPECT_EQ(result, occlSuccess);
    static_cast<std::atomic<uint32_t> *>(user)->fetch_add(1);
  };
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < kIterations; ++i) {
      if (r == 1)
        std::this_thread::sleep_for(30us);
      std::thread second([&] {
        ASSERT_EQ(
            job.submitOn(ranks[r], input.data(), outputs[r].data(), nullptr, count, &numCalled),
            occlSuccess)
            << occlGetLastError();
      });
      ASSERT_EQ(job.run(ranks[r], r), occlSuccess) << occlGetLastError();
      second.join();
      while (numCalled.load() < 2 * i)
        std::this_thread::yield();
    }
  });
  while (numCalled.load() < 2 * kIterations)
    std::this_thread::yield();
}

/// Whatever has come before: ids in lines that have taken all the blocks that there are for them,
/// and what fills the rest of the arena.
TEST(Lane, TheCallsFindRoomForBlocksOfTheirOwn) {
  constexpr uint32_t kIds = 200;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 256 << 10;
  Ranks ranks(2, config);
  Job call(0, inLines(oneShotAllReduce(2)), 16, DataType::Int32);
  std::vector<Job> jobs;
  for (uint32_t id = 1; id < kIds; ++id)
    jobs.emplace_back(id, inLines(oneShotAllReduce(2)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    for (Job &job : jobs) {
      occlRequest_t request = 0;
      ASSERT_EQ(submitOnceFree(job, ranks[r], r, &request), occlSuccess) << occlGetLastError();
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
    }
    ASSERT_EQ(checkAll(jobs, r), "");
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(call.run(ranks[r], r), occlSuccess) << occlGetLastError();
    EXPECT_EQ(call.check(r), "");
    EXPECT_GT(entries(ranks[r]), 0u);
  });
}

/// Ids come and go beside calls: those are used whenever they are made, also in the lane.
TEST(Lane, IsKeptWhileIdsComeAndGo) {
  constexpr uint32_t kIterations = 300;
  Ranks ranks(2);
  for (uint32_t r : {0, 1})
    ranks[r]->daemon->setMostActiveSequences(3);
  const PlanHandle plan = handleOf(oneShotAllReduce(2));
  Job call(0, inLines(oneShotAllReduce(2)), 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < kIterations; ++i) {
      Job visitor(1 + i, plan, 16, DataType::Int32);
      occlRequest_t request = 0;
      ASSERT_EQ(submitOnceFree(visitor, ranks[r], r, &request), occlSuccess) << occlGetLastError();
      ASSERT_EQ(occlWait(ranks[r], request), occlSuccess) << occlGetLastError();
      ASSERT_EQ(call.run(ranks[r], r), occlSuccess) << occlGetLastError();
    }
    EXPECT_EQ(call.check(r), "");
    EXPECT_GT(entries(ranks[r]), kIterations / 2);
  });
}

} // namespace
} // namespace occl::communicator::testing
