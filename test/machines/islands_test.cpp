// Collectives of ranks of several islands: processes of this machine with host ids of their own,
// which meet over 127.0.0.1.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(Shapes, Islands,
                         ::testing::Values(std::vector<uint32_t>{0, 1},
                                           std::vector<uint32_t>{0, 0, 1, 1},
                                           std::vector<uint32_t>{0, 0, 0, 1},
                                           std::vector<uint32_t>{0, 1, 1, 0, 2},
                                           std::vector<uint32_t>{0, 1, 0, 1, 0, 1, 0, 1}));

} // namespace
} // namespace occl::communicator::testing
