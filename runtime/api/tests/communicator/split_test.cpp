// Communicators divided into smaller ones, on ranks that are threads and on ranks that are
// processes.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

/// Ranks on a grid, as tensor, data and pipeline parallel training uses them: along each axis, the
/// ranks that differ in this coordinate only are a group.
struct Grid {
  std::array<uint32_t, 3> sizes;

  uint32_t numRanks() const { return sizes[0] * sizes[1] * sizes[2]; }
  uint32_t stride(uint32_t axis) const {
    return axis == 0 ? 1 : stride(axis - 1) * sizes[axis - 1];
  }
  uint32_t coordinate(uint32_t rank, uint32_t axis) const {
    return rank / stride(axis) % sizes[axis];
  }
  /// The lowest rank of the group: the same number for all its ranks.
  uint32_t colour(uint32_t rank, uint32_t axis) const {
    return rank - coordinate(rank, axis) * stride(axis);
  }
};

constexpr uint32_t kJobsPerGroup = 3;

/// The jobs of all groups along all axes: [axis][colour].
using GridJobs = std::array<std::vector<std::vector<Job>>, 3>;

GridJobs jobsOn(const Grid &grid) {
  GridJobs jobs;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    PlanHandle plans[] = {handleOf(ringAllReduce(grid.sizes[axis])),
                          handleOf(twoShotAllReduce(grid.sizes[axis]))};
    for (uint32_t colour = 0; colour < grid.numRanks(); ++colour) {
      jobs[axis].emplace_back();
      if (grid.colour(colour, axis) == colour)
        for (uint32_t j = 0; j < kJobsPerGroup; ++j)
          jobs[axis].back().emplace_back(j, plans[j % 2], 40u << (3 * j));
    }
  }
  return jobs;
}

/// A job on one of the rank's groups.
struct Placed {
  occlComm_t comm;
  Job *job;
  uint32_t rank; // in the group
  occlRequest_t request = 0;
};

/// All jobs in random orders; "" or what is wrong.
std::string submitAtRandom(std::vector<Placed> &placed, std::mt19937 &random) {
  std::shuffle(placed.begin(), placed.end(), random);
  for (Placed &one : placed) {
    *static_cast<char *>(one.job->output(one.rank)) ^= 0x55; // not yet right
    if (one.job->submit(one.comm, one.rank, &one.request) != occlSuccess)
      return lastError("occlStart");
  }
  std::shuffle(placed.begin(), placed.end(), random);
  for (Placed &one : placed) {
    if (occlWait(one.comm, one.request) != occlSuccess)
      return lastError("occlWait");
    if (std::string wrong = one.job->check(one.rank); !wrong.empty())
      return wrong;
  }
  return {};
}

/// What one rank does: its three groups, and all their collectives at the same time.
std::string runOnGrid(const Grid &grid, occlComm_t world, uint32_t rank, GridJobs &jobs,
                      uint32_t iterations) {
  std::array<occlComm_t, 3> groups{};
  std::vector<Placed> placed;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    auto colour = static_cast<int32_t>(grid.colour(rank, axis));
    auto key = static_cast<int32_t>(grid.coordinate(rank, axis));
    if (occlCommSplit(world, colour, key, nullptr, &groups[axis]) != occlSuccess)
      return lastError("occlCommSplit");
    uint32_t ownRank = 0, size = 0;
    occlCommRank(groups[axis], &ownRank);
    occlCommSize(groups[axis], &size);
    if (ownRank != grid.coordinate(rank, axis) || size != grid.sizes[axis])
      return "rank " + std::to_string(ownRank) + " of " + std::to_string(size);
    for (Job &job : jobs[axis][grid.colour(rank, axis)]) {
      placed.push_back({groups[axis], &job, ownRank});
    }
  }
  std::mt19937 random(rank);
  std::string wrong;
  for (uint32_t i = 0; i < iterations && wrong.empty(); ++i)
    wrong = submitAtRandom(placed, random);
  for (occlComm_t group : groups)
    occlCommDestroy(group);
  return wrong;
}

TEST(Split, SixteenThreadsAsAGridInRandomOrders) {
  const Grid grid{{4, 2, 2}};
  GridJobs jobs = jobsOn(grid);
  Ranks ranks(grid.numRanks());
  ranks.run([&](uint32_t r) {
    EXPECT_EQ(runOnGrid(grid, ranks[r], r, jobs, 20 / kSlowness + 1), "") << "rank " << r;
  });
}

/// A cycle within one group is reported, one that leads through several ends at the deadline. Who
/// hears of neither hears that another one has given up.
std::string deadlockOnGrid(const Grid &grid, occlComm_t world, uint32_t rank, GridJobs &jobs) {
  std::string text = runOnGrid(grid, world, rank, jobs, 20);
  for (const char *part :
       {"preemption is off", "before its deadline", "has destroyed its communicator"})
    if (text.find(part) != std::string::npos)
      return {};
  return "no deadlock: " + text;
}

occlConfig_t withoutPreemption() {
  occlConfig_t config = withTimeout(1000);
  config.preemption = 2;
  return config;
}

TEST(Split, TheSameGridWithoutPreemptionIsADeadlock) {
  const Grid grid{{4, 2, 2}};
  GridJobs jobs = jobsOn(grid);
  Ranks ranks(grid.numRanks(), withoutPreemption());
  ranks.run([&](uint32_t r) { EXPECT_EQ(deadlockOnGrid(grid, ranks[r], r, jobs), ""); });
}

/// One group that all are in, and the same orders: the cycle is named.
TEST(Split, OneGroupOfSixteenWithoutPreemptionIsADeadlockThatIsNamed) {
  const Grid grid{{16, 1, 1}};
  GridJobs jobs = jobsOn(grid);
  occlConfig_t config = withTimeout(10 * 60 * 1000);
  config.preemption = 2;
  Ranks ranks(grid.numRanks(), config);
  ranks.run([&](uint32_t r) {
    std::string text = runOnGrid(grid, ranks[r], r, jobs, 20);
    for (const char *part : {"preemption is off", "waits for rank"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  });
}

TEST(Split, SixteenProcessesAsAGridWithoutPreemptionAreADeadlock) {
  const Grid grid{{4, 2, 2}};
  GridJobs jobs = jobsOn(grid);
  inProcesses(
      grid.numRanks(), "split-deadlock",
      [&](occlComm_t world, uint32_t rank) { return deadlockOnGrid(grid, world, rank, jobs); },
      withoutPreemption());
}

TEST(Split, SixteenProcessesAsAGridInRandomOrders) {
  const Grid grid{{4, 2, 2}};
  GridJobs jobs = jobsOn(grid);
  inProcesses(grid.numRanks(), "split-grid", [&](occlComm_t world, uint32_t rank) {
    return runOnGrid(grid, world, rank, jobs, 5);
  });
}

TEST(Split, KeysOrderAndNegativeColoursLeaveOut) {
  constexpr uint32_t kRanks = 5;
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    occlComm_t divided = ranks[r];
    int32_t colour = r == 2 ? OCCL_NO_COLOUR : 7;
    int32_t key = r == 4 ? -1 : 3; // 4 comes first, then 0, 1, 3 as they were
    ASSERT_EQ(occlCommSplit(ranks[r], colour, key, nullptr, &divided), occlSuccess);
    if (r == 2) {
      EXPECT_EQ(divided, nullptr);
      return;
    }
    uint32_t rank = 0, size = 0;
    occlCommRank(divided, &rank);
    occlCommSize(divided, &size);
    EXPECT_EQ(size, 4u);
    EXPECT_EQ(rank, (std::array<uint32_t, 5>{1, 2, 0, 3, 0})[r]);
    occlCommDestroy(divided);
  });
}

/// One all-reduce on a communicator of two ranks; "" or what is wrong.
std::string reduceOnce(occlComm_t comm, Job &job) {
  uint32_t rank = 0;
  occlRequest_t request = 0;
  occlCommRank(comm, &rank);
  if (job.submit(comm, rank, &request) != occlSuccess || occlWait(comm, request) != occlSuccess)
    return lastError("all-reduce");
  return job.check(rank);
}

TEST(Split, TheParentsMayGoFirst) {
  std::string name = jobName("split-parents");
  constexpr uint32_t kRanks = 8;
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t world = nullptr, half = nullptr, pair = nullptr;
    if (occlCommInitRank(&world, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    if (occlCommSplit(world, rank / 4, 0, nullptr, &half) != occlSuccess)
      return lastError("occlCommSplit");
    occlCommDestroy(world);
    if (occlCommSplit(half, rank / 2 % 2, 0, nullptr, &pair) != occlSuccess)
      return lastError("occlCommSplit");
    occlCommDestroy(half);
    Job job(3, handleOf(ringAllReduce(2)), 1000);
    std::string wrong = reduceOnce(pair, job);
    occlCommDestroy(pair);
    return wrong;
  });
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(processes.join(r), 0);
}

TEST(Split, AFailedGroupLeavesTheOthersAlone) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  Job onWorld(1, handleOf(ringAllReduce(kRanks)), 100), onTwin(1, handleOf(ringAllReduce(2)), 50);
  ranks.run([&](uint32_t r) {
    occlComm_t failing = nullptr, twin = nullptr;
    ASSERT_EQ(occlCommSplit(ranks[r], 0, 0, nullptr, &failing), occlSuccess);
    ASSERT_EQ(occlCommSplit(ranks[r], 0, 0, nullptr, &twin), occlSuccess);
    if (r == 0) {
      EXPECT_EQ(occlCommAbort(failing), occlSuccess);
    }
    EXPECT_EQ(reduceOnce(twin, onTwin), "");
    EXPECT_EQ(reduceOnce(ranks[r], onWorld), "");
    occlCommDestroy(failing);
    occlCommDestroy(twin);
  });
}

TEST(Split, MissingRanksAreNamedAndAllMayTryAgain) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  std::atomic<uint32_t> gaveUp{0};
  ranks.run([&](uint32_t r) {
    occlComm_t divided = nullptr;
    if (r == 2) {
      while (gaveUp.load() != 2)
        std::this_thread::yield();
      EXPECT_EQ(occlCommSplit(ranks[r], 0, 0, nullptr, &divided), occlPeerFailed);
      EXPECT_NE(std::string(occlGetLastError()).find("given up"), std::string::npos);
    } else {
      occlConfig_t config = withTimeout(r == 0 ? 50 : 30000);
      occlResult_t result = occlCommSplit(ranks[r], 0, 0, &config, &divided);
      std::string text = occlGetLastError();
      EXPECT_EQ(result, r == 0 ? occlTimeout : occlPeerFailed) << text;
      const char *expected = r == 0 ? "2 of 3 did not call occlCommSplit in time" : "given up";
      EXPECT_NE(text.find(expected), std::string::npos) << text;
      ++gaveUp;
    }
    EXPECT_EQ(divided, nullptr);
    EXPECT_EQ(occlCommSplit(ranks[r], 0, 0, nullptr, &divided), occlSuccess) << occlGetLastError();
    occlCommDestroy(divided);
  });
}

TEST(Split, ASecondThreadIsRefused) {
  Ranks ranks(2);
  std::atomic<bool> refused{false};
  // Rank 1 never calls, so whoever is inside stays there for a while.
  auto attempt = [&] {
    while (!refused.load()) {
      occlComm_t divided = nullptr;
      occlConfig_t config = withTimeout(100);
      occlResult_t result = occlCommSplit(ranks[0], 0, 0, &config, &divided);
      if (result == occlInvalidArgument) {
        EXPECT_NE(std::string(occlGetLastError()).find("another thread is dividing"),
                  std::string::npos);
        refused.store(true);
      } else {
        EXPECT_EQ(result, occlTimeout);
      }
    }
  };
  std::thread other(attempt);
  attempt();
  other.join();
}

TEST(Split, RanksOfOneColourMustAskForTheSameMemory) {
  Ranks ranks(2);
  ranks.run([&](uint32_t r) {
    occlConfig_t config = withTimeout(20000);
    config.arenaBytes = (r + 1) << 20;
    occlComm_t divided = nullptr;
    EXPECT_EQ(occlCommSplit(ranks[r], 0, 0, &config, &divided), occlMismatch);
    EXPECT_NE(std::string(occlGetLastError()).find("use the same arenaBytes"), std::string::npos);
  });
}

} // namespace
} // namespace occl::communicator::testing
