// Collectives of ranks of several islands: processes of this machine with host ids of their own,
// which meet over 127.0.0.1.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

/// Nothing, less than a part for each rank, small ones, and many messages of a connection.
std::string runSizes(occlComm_t comm) {
  std::string wrong;
  for (uint64_t count : {0u, 1u, 7u, 1000u, 65537u, 400000u})
    if (wrong.empty())
      wrong = runCollectives(comm, count);
  return wrong;
}

class Islands : public ::testing::TestWithParam<std::vector<uint32_t>> {};

TEST_P(Islands, AllCollectives) {
  onIslands(GetParam(), [](occlComm_t comm, uint32_t) { return runSizes(comm); });
}

/// Ids in other orders on each rank, several plans, sizes and invocations in flight.
TEST_P(Islands, ConflictingOrders) {
  const auto numRanks = static_cast<uint32_t>(GetParam().size());
  onIslands(GetParam(), [numRanks](occlComm_t comm, uint32_t rank) -> std::string {
    PlanHandle ring = handleOf(ringAllReduce(numRanks)),
               twoShot = handleOf(twoShotAllReduce(numRanks));
    std::vector<Job> jobs;
    for (uint32_t j = 0; j < 4; ++j)
      jobs.emplace_back(j, j % 2 ? ring : twoShot, 100u << (3 * j));
    std::string wrong;
    for (uint32_t i = 0; i < 50 && wrong.empty(); ++i)
      wrong = runInOrder(comm, jobs, rank, latinOrder(4, rank, i));
    return wrong;
  });
}

/// Small blocks of the arena are used again and again, by shapes that lie in it differently.
TEST_P(Islands, ManyCallsReuseMemory) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = 4 << 20;
  onIslands(
      GetParam(),
      [](occlComm_t comm, uint32_t) {
        std::string wrong;
        for (uint32_t i = 0; i < 300 && wrong.empty(); ++i)
          wrong = runCollectives(comm, 1 + i * 37 % 5000);
        return wrong;
      },
      config);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Islands,
    ::testing::Values(std::vector<uint32_t>{0, 1}, std::vector<uint32_t>{0, 0, 1, 1},
                      std::vector<uint32_t>{0, 0, 0, 1}, std::vector<uint32_t>{0, 0, 0, 1, 1, 1},
                      std::vector<uint32_t>{0, 0, 1, 1, 2, 2}, std::vector<uint32_t>{0, 1, 1, 0, 2},
                      std::vector<uint32_t>{0, 1, 0, 1, 0, 1, 0, 1}));

/// What the library says that an all-reduce of many elements has.
std::string planSaid(occlComm_t comm) {
  const std::vector<int32_t> input(1 << 16, 1);
  std::vector<int32_t> output(input.size());
  ::testing::internal::CaptureStderr();
  const occlResult_t result =
      occlAllReduce(input.data(), output.data(), input.size(), occlInt32, occlSum, comm, nullptr);
  const std::string said = ::testing::internal::GetCapturedStderr();
  return result == occlSuccess ? said : lastError("occlAllReduce") + said;
}

std::string expectPlan(occlComm_t comm, const std::string &shape, const std::string &algorithm) {
  const std::string said = planSaid(comm);
  return said.find("allreduce of " + shape + ",") != std::string::npos &&
                 said.find(algorithm) != std::string::npos
             ? ""
             : "expected " + algorithm + " for " + shape + ": " + said;
}

/// The library says what it chooses, in the processes that a test starts.
class PlansOfIslands : public ::testing::Test {
protected:
  void SetUp() override { setenv("OCCL_DEBUG", "info", 1); }
  void TearDown() override { unsetenv("OCCL_DEBUG"); }
};

TEST_F(PlansOfIslands, AreGroupWiseForEvenIslands) {
  onIslands({0, 0, 1, 1}, [](occlComm_t comm, uint32_t) {
    return expectPlan(comm, "4 ranks on 2 islands", "two_level");
  });
  onIslands({4, 4, 1, 1, 3, 3}, [](occlComm_t comm, uint32_t) {
    return expectPlan(comm, "6 ranks on 3 islands", "two_level");
  });
}

TEST_F(PlansOfIslands, AreFlatForOthers) {
  for (const std::vector<uint32_t> &hosts :
       {std::vector<uint32_t>{0, 1, 0, 1}, {0, 0, 0, 1}, {0, 1, 2, 3}})
    onIslands(hosts,
              [](occlComm_t comm, uint32_t) { return expectPlan(comm, "4 ranks", "all_pairs"); });
}

TEST_F(PlansOfIslands, FollowADivision) {
  onIslands({0, 0, 0, 1, 1, 1}, [](occlComm_t comm, uint32_t rank) {
    occlComm_t child = nullptr;
    const bool isAlone = rank % 3 == 2;
    if (occlCommSplit(comm, isAlone, 0, nullptr, &child) != occlSuccess)
      return lastError("occlCommSplit");
    std::string wrong = isAlone ? expectPlan(child, "2 ranks", "all_pairs")
                                : expectPlan(child, "4 ranks on 2 islands", "two_level");
    occlCommDestroy(child);
    return wrong;
  });
}

} // namespace
} // namespace occl::communicator::testing
