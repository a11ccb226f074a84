// A sequence that had no room for a pre-posted ring gets one later, while a rank is behind.
#include "plan/testing/example_plans.h"
#include "runtime/rank/testing/manual_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace occl::daemon::testing {
namespace {

constexpr uint64_t kMostIds = 40;

class LateRing : public ManualRanks {
protected:
  void SetUp() override {
    make(true);
    plan::Plan plan = plan::testing::oneShotAllReduce(kRanks);
    plan.protocol = plan::Protocol::LL128;
    for (uint64_t id = 1; id <= kMostIds; ++id)
      add(id, {0, 0, 0}, plan);
  }
  void callOnAll(uint64_t id) {
    for (uint32_t r = 0; r < kRanks; ++r)
      submit(r, {id});
    passAll();
  }
};

/// Rank 0 begins a call that rank 1 has published before it had a ring, and finds the ring.
TEST_F(LateRing, ACallBeforeItIsWhereItsDescriptorSays) {
  uint64_t id = 1;
  for (callOnAll(id); ranks[1]->ringBytes(id) != 0; callOnAll(id))
    ASSERT_LT(++id, kMostIds / 2) << "there is room for all rings";
  submit(1, {id});
  ranks[1]->pass();
  EXPECT_EQ(ranks[1]->ringBytes(id), 0u);
  for (auto &rank : ranks)
    rank->keepOne();
  for (uint64_t other = kMostIds / 2; other <= kMostIds; ++other) {
    callOnAll(other);
    for (auto &rank : ranks)
      rank->tidy();
  }
  submit(1, {id});
  ASSERT_NE(ranks[1]->ringBytes(id), 0u) << "the others have kept theirs";
  for (uint32_t r : {0, 2})
    submit(r, {id, id});
  finish();
  for (auto &rank : ranks) {
    EXPECT_TRUE(rank->failure().ok()) << rank->failure().message();
    for (uint64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(rank->buffers[id][i], 27.0f) << "three sums of three ranks";
  }
}

} // namespace
} // namespace occl::daemon::testing
