#include "runtime/cuda/slot_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint32_t kRanks = 3;

class Slots : public testing::Test {
protected:
  std::unique_ptr<SlotBoard> board = std::make_unique<SlotBoard>();
  SlotTable tables[kRanks] = {{*board, 0, kRanks}, {*board, 1, kRanks}, {*board, 2, kRanks}};
  transport::CollectiveTraits traits{7, 100, 5, 0};

  uint32_t claim(uint32_t rank, SlotKey key) {
    auto slot = tables[rank].claim(key, traits);
    EXPECT_TRUE(slot.ok()) << slot.status().message();
    return slot.ok() ? *slot : kSlots;
  }
};

TEST_F(Slots, AreTheSameInWhateverOrderRanksRegister) {
  uint32_t a = claim(0, {11}), b = claim(1, {22}), captured = claim(2, {11, 1});
  EXPECT_NE(a, b);
  EXPECT_NE(a, captured);
  EXPECT_EQ(claim(1, {11}), a);
  EXPECT_EQ(claim(0, {22}), b);
  EXPECT_EQ(claim(2, {22}), b);
  EXPECT_EQ(claim(2, {11}), a);
  EXPECT_EQ(claim(0, {11, 1}), captured);
}

TEST_F(Slots, NobodyWaitsForALockWhoseRankIsGone) {
  board->lock = 2; // rank 1 has died with it
  Status failure;
  SlotTable table(*board, 0, kRanks, [&] { return failure; });
  failure = {StatusCode::PeerFailed, "the process of rank 1 is gone"};
  const auto begin = std::chrono::steady_clock::now();
  auto slot = table.claim({11}, traits);
  EXPECT_EQ(slot.status().code(), StatusCode::PeerFailed);
  EXPECT_EQ(slot.status().message(), "the process of rank 1 is gone");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST_F(Slots, ComeBackWhenAllRanksHaveDeregistered) {
  uint32_t slot = claim(0, {5});
  EXPECT_FALSE(*tables[0].retire(slot));
  EXPECT_EQ(tables[0].claim({5}, traits).status().code(), StatusCode::Again);
  EXPECT_EQ(claim(1, {5}), slot);
  EXPECT_EQ(claim(2, {5}), slot);
  EXPECT_FALSE(*tables[2].retire(slot));
  EXPECT_TRUE(*tables[1].retire(slot));
  // The last one is still clearing what others may look at.
  EXPECT_EQ(tables[1].claim({5}, traits).status().code(), StatusCode::Again);
  EXPECT_NE(claim(0, {6}), slot);
  ASSERT_TRUE(tables[1].release(slot).ok());
  EXPECT_EQ(claim(0, {5}), slot);
}

TEST_F(Slots, RanksThatDisagreeAreTold) {
  claim(0, {5});
  auto other = traits;
  other.count = 101;
  Status status = tables[1].claim({5}, other).status();
  EXPECT_EQ(status.code(), StatusCode::Mismatch);
  EXPECT_EQ(status.message(),
            "collective 5: rank 0 has registered it with count 100, rank 1 with 101");
}

TEST_F(Slots, AreLimited) {
  for (uint32_t i = 0; i < kSlots; ++i)
    claim(0, {i});
  EXPECT_EQ(tables[0].claim({kSlots}, traits).status().code(), StatusCode::Again);
}

TEST_F(Slots, AreClaimedByAllRanksAtOnce) {
  std::vector<uint32_t> slots[kRanks];
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      for (uint64_t i = 0; i < 200; ++i) {
        uint64_t id = (i * (r == 2 ? 7 : 2 * r + 1)) % 200; // each in an order of its own
        slots[r].resize(200);
        slots[r][id] = claim(r, {id});
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(slots[0], slots[1]);
  EXPECT_EQ(slots[0], slots[2]);
}

} // namespace
} // namespace occl::cuda
