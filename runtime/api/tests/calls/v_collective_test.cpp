// Collectives with counts by rank, against what their definitions say of each element.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/transfer_graph.h"
#include "runtime/api/testing/v_collectives.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace occl::communicator::testing {
namespace {

class VCollectiveOf : public ::testing::TestWithParam<uint32_t> {};

TEST_P(VCollectiveOf, Threads) {
  const uint64_t seed = printedSeed();
  Ranks ranks(GetParam());
  ranks.run([&](uint32_t r) { EXPECT_EQ(runVCollectives(ranks[r], GetParam(), r, seed), ""); });
}

TEST_P(VCollectiveOf, Processes) {
  const uint64_t seed = printedSeed();
  inProcesses(GetParam(), "v", [&](occlComm_t comm, uint32_t rank) {
    return runVCollectives(comm, GetParam(), rank, seed);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, VCollectiveOf, ::testing::Values(1u, 2u, 3u, 8u));

/// They are transfers like others, so that a group may have several, and sends between them.
TEST(VCollective, InAGroup) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    const std::vector<uint64_t> counts{1, 2, 3}, places{0, 1, 3};
    std::vector<int32_t> mine(counts[r], static_cast<int32_t>(r));
    std::vector<int32_t> first(6, -1), second(6, -1);
    int32_t passed = -1, own = static_cast<int32_t>(10 + r);
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    for (auto *to : {&first, &second}) {
      ASSERT_EQ(occlAllGatherv(mine.data(), mine.size(), to->data(), counts.data(), places.data(),
                               occlInt32, ranks[r], nullptr),
                occlSuccess);
      if (to == &first) {
        ASSERT_EQ(occlSend(&own, 1, occlInt32, (r + 1) % kRanks, ranks[r], nullptr), occlSuccess);
        ASSERT_EQ(occlRecv(&passed, 1, occlInt32, (r + 2) % kRanks, ranks[r], nullptr),
                  occlSuccess);
      }
    }
    ASSERT_EQ(occlGroupEnd(), occlSuccess) << occlGetLastError();
    EXPECT_EQ(first, (std::vector<int32_t>{0, 1, 1, 2, 2, 2}));
    EXPECT_EQ(second, first);
    EXPECT_EQ(passed, static_cast<int32_t>(10 + (r + 2) % kRanks));
  });
}

} // namespace
} // namespace occl::communicator::testing
