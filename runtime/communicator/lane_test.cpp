// The straight lane of small collectives: that it is taken, what it counts, and that ranks in it,
// on their way out of it and beside it get on with each other.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/handles.h"
#include "runtime/communicator/testing/harness.h"
#include "runtime/communicator/testing/steps.h"

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

occlResult_t runJob(Job &job, occlComm_t comm, uint32_t rank) {
  return occlRun(comm, job.id(), job.input(rank), job.output(rank));
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
        ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
        for (uint32_t i = 0; i < kIterations; ++i)
          ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
        EXPECT_EQ(job.check(r), "");
        EXPECT_GE(entries(ranks[r]), kIterations - kFirst);
        occlStats_t stats{};
        stats.size = sizeof stats;
        ASSERT_EQ(occlCommGetStats(ranks[r], &stats), occlSuccess);
        EXPECT_EQ(stats.submitted, kIterations);
        EXPECT_EQ(stats.completed, kIterations);
        occlCollectiveStats_t counters{};
        counters.size = sizeof counters;
        ASSERT_EQ(occlCollectiveGetStats(ranks[r], 7, &counters), occlSuccess);
        EXPECT_EQ(counters.submitted, kIterations);
        EXPECT_EQ(counters.completed, kIterations);
        occlBlockStats_t block{};
        block.size = sizeof block;
        ASSERT_EQ(occlCollectiveGetBlockStats(ranks[r], 7, 0, &block), occlSuccess);
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
      {inLines(oneShotAllReduce(2)), 0, 1},
      {inLines(oneShotAllReduce(2)), 16, 2},
  };
  for (const auto &[plan, count, preemption] : cases) {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.preemption = preemption;
    Ranks ranks(2, config);
    Job job(7, plan, count, DataType::Int32);
    ranks.run([&, count = count](uint32_t r) {
      ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
      for (uint32_t i = 0; i < kIterations; ++i)
        ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
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
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
    auto *output = static_cast<char *>(job.output(r));
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
      EXPECT_EQ(occlRun(ranks[r], 7, nullptr, output), occlInvalidArgument);
      EXPECT_EQ(occlRun(ranks[r], 7, job.input(r), nullptr), occlInvalidArgument);
      EXPECT_EQ(occlRun(ranks[r], 7, output + 4, output), occlInvalidArgument);
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
  occlResult_t run(uint64_t id) { return occlRun(comm, id, input.data(), output.data()); }
  occlResult_t submitAndWait(uint64_t id) {
    occlRequest_t request = 0;
    occlResult_t result =
        occlSubmit(comm, id, input.data(), output.data(), nullptr, nullptr, &request);
    return result == occlSuccess ? occlWait(comm, request) : result;
  }
  occlResult_t submitWithCallback(uint64_t id) {
    std::atomic<int> result{-1};
    occlCallback_t store = [](occlRequest_t, occlResult_t ended, void *user) {
      static_cast<std::atomic<int> *>(user)->store(ended, std::memory_order_release);
    };
    occlResult_t submitted =
        occlSubmit(comm, id, input.data(), output.data(), store, &result, nullptr);
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
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
    for (int i = 0; i < 5; ++i)
      ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
  });
  const uint64_t before = entries(ranks[0]);
  EXPECT_EQ(runJob(job, ranks[0], 0), occlTimeout);
  EXPECT_EQ(entries(ranks[0]), before + 1);
  const std::string text = occlCommGetLastError(ranks[0]);
  EXPECT_NE(text.find("invocation 5 did not end on rank 0 before its deadline"), std::string::npos)
      << text;
  EXPECT_NE(text.find("waits for rank 1, which has not submitted it"), std::string::npos) << text;
}

/// Each rank goes its own way at each invocation, and some are late enough for the others to leave.
TEST(Lane, RanksInItAndBesideIt) {
  constexpr uint32_t kIterations = 1000 / kSlowness, kSeed = 5;
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::LL128})
    for (bool gathers : {false, true}) {
      Ranks ranks(3);
      Job job(7, inLines(gathers ? ringAllGather(3) : oneShotAllReduce(3), protocol), Sums::kCount,
              DataType::Int32);
      ranks.run([&](uint32_t r) {
        ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
        std::mt19937 random(kSeed + r);
        Sums sums(ranks, r, gathers);
        for (uint32_t i = 0; i < kIterations; ++i) {
          if (random() % 30 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
          sums.begin(i);
          const uint32_t way = random() % 8;
          ASSERT_EQ(way == 0   ? sums.submitWithCallback(7)
                    : way == 1 ? sums.submitAndWait(7)
                               : sums.run(7),
                    occlSuccess)
              << occlGetLastError();
          ASSERT_TRUE(sums.isRight()) << "rank " << r << ", iteration " << i << ", seed " << kSeed;
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
    ASSERT_EQ(registerAll(ranks[r], jobs), "");
    auto repeat = [&](uint64_t id) {
      std::mt19937 random(kSeed + r * 2 + static_cast<uint32_t>(id));
      Sums sums(ranks, r);
      for (uint32_t i = 0; i < kIterations; ++i) {
        sums.begin(i);
        ASSERT_EQ(random() % 4 == 0 ? sums.submitAndWait(id) : sums.run(id), occlSuccess)
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

/// The second invocation of the same collective is submitted while the first one is in the lane; a
/// worker finds it, and may have to wait for the first.
TEST(Lane, AnInvocationAfterTheOneInTheLane) {
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
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
    for (uint32_t i = 0; i < kIterations; ++i) {
      if (r == 1)
        std::this_thread::sleep_for(30us);
      std::thread second([&] {
        ASSERT_EQ(
            occlSubmit(ranks[r], 7, input.data(), outputs[r].data(), count, &numCalled, nullptr),
            occlSuccess)
            << occlGetLastError();
      });
      ASSERT_EQ(runJob(job, ranks[r], r), occlSuccess) << occlGetLastError();
      second.join();
      while (numCalled.load() < 2 * i)
        std::this_thread::yield();
    }
  });
  while (numCalled.load() < 2 * kIterations)
    std::this_thread::yield();
}

/// How many invocations rank 0's arena has room for at once.
uint64_t roomOf(const Ranks &ranks) {
  constexpr uint32_t kMost = 4000;
  const PlanHandle plan = handleOf(oneShotAllReduce(2));
  std::vector<Job> jobs;
  std::vector<occlRequest_t> requests[2];
  for (uint64_t j = 0; j < kMost; ++j)
    jobs.emplace_back(100000 + j, plan, 16, DataType::Int32);
  for (uint32_t r : {0, 1})
    EXPECT_EQ(registerAll(ranks[r], jobs), "");
  for (uint32_t r : {0, 1})
    for (Job &job : std::span(jobs).first(r == 0 ? kMost : requests[0].size())) {
      occlRequest_t request = 0;
      const occlResult_t result = job.submit(ranks[r], r, &request);
      if (r == 0 && result == occlAgain)
        break;
      EXPECT_EQ(result, occlSuccess) << occlGetLastError();
      requests[r].push_back(request);
    }
  ranks.run([&](uint32_t r) {
    EXPECT_EQ(waitForAll(ranks[r], requests[r]), "");
    for (const Job &job : jobs)
      EXPECT_EQ(occlDeregister(ranks[r], job.id()), occlSuccess) << occlGetLastError();
  });
  EXPECT_LT(requests[0].size(), kMost) << "something else was short";
  return requests[0].size();
}

/// All that deregistered collectives hold comes back: each deregistration goes on with some of it.
void recycle(const Ranks &ranks) {
  Job job(200000, handleOf(oneShotAllReduce(2)), 16, DataType::Int32);
  for (int i = 0; i < 4; ++i)
    ranks.run([&](uint32_t r) {
      for (int j = 0; j < 1000; ++j) {
        ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess) << occlGetLastError();
        ASSERT_EQ(occlDeregister(ranks[r], 200000), occlSuccess) << occlGetLastError();
      }
    });
}

/// A collective that comes when blocks of its own are not to be had gets some later, and the
/// invocation before, whose memory the next one would take over, gives back what it has reserved.
TEST(Lane, ACollectiveBecomesResident) {
  constexpr uint32_t kMany = 1300; // the half is a multiple of 50
  constexpr uint32_t kLate = 20;   // few enough for each to keep the invocation before
  const PlanHandle plan = inLines(oneShotAllReduce(2));
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = (1 << 20) + (256 << 10);
  config.maxInFlight = 1 << 13;
  Ranks ranks(2, config);
  recycle(ranks);
  const uint64_t room = roomOf(ranks);
  std::vector<Job> jobs;
  for (uint64_t id = 0; id < kMany; ++id)
    jobs.emplace_back(id, plan, 16, DataType::Int32);
  ranks.run([&](uint32_t r) {
    auto runAll = [&](uint32_t from, uint32_t to) {
      for (uint32_t j = from; j < to; ++j)
        ASSERT_EQ(runJob(jobs[j], ranks[r], r), occlSuccess) << occlGetLastError();
    };
    auto remove = [&](uint32_t from, uint32_t to) {
      for (uint32_t j = from; j < to; ++j)
        ASSERT_EQ(occlDeregister(ranks[r], jobs[j].id()), occlSuccess) << occlGetLastError();
    };
    ASSERT_EQ(registerAll(ranks[r], jobs), "");
    runAll(0, kMany);
    for (int i = 0; i < 10; ++i)
      runAll(kMany - kLate, kMany);
    EXPECT_EQ(entries(ranks[r]), 0u) << "resident from the begin";
    for (uint32_t j = 0; j < kMany / 2; j += 50) { // each time some blocks come back
      remove(j, j + 50);
      runAll(kMany - kLate, kMany);
    }
    for (int i = 0; i < 10; ++i)
      runAll(kMany - kLate, kMany);
    EXPECT_GT(entries(ranks[r]), kLate) << "not resident in the end";
    EXPECT_EQ(checkAll(std::span(jobs).last(kLate), r), "");
    remove(kMany / 2, kMany);
  });
  recycle(ranks);
  EXPECT_EQ(roomOf(ranks), room);
}

} // namespace
} // namespace occl::communicator::testing
