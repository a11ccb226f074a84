#include "runtime/cuda/arena_space.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint32_t kRanks = 3;
constexpr uint64_t kBegin = 4096, kBytes = 1 << 20;

class Space : public testing::Test {
protected:
  std::unique_ptr<SlotBoard> board = std::make_unique<SlotBoard>();
  SlotTable tables[kRanks] = {{*board, 0, kRanks}, {*board, 1, kRanks}, {*board, 2, kRanks}};
  transport::CollectiveTraits traits{7, 100, 5, 0};
  ArenaSpace space{kBegin, kBytes, tables[0]}; // rank 0's

  uint32_t claim(uint32_t rank, uint64_t id) { return *tables[rank].claim({id}, traits); }
  void retire(uint32_t rank, uint32_t slot) {
    if (*tables[rank].retire(slot)) {
      ASSERT_TRUE(tables[rank].release(slot).ok());
    }
  }
  /// Rank 0 deregisters.
  void leave(uint32_t slot, const std::vector<ArenaSpace::Piece> &pieces) {
    space.releaseWithSlot(slot, pieces);
    retire(0, slot);
  }
};

TEST_F(Space, IsReusedOnlyWhenAllRanksHaveDeregistered) {
  uint32_t slot = claim(0, 1);
  claim(1, 1);
  auto piece = space.allocate(kBytes);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->offset, kBegin);
  leave(slot, {*piece});
  // Rank 1 may still store there, and rank 2 has not even registered.
  EXPECT_FALSE(space.allocate(128).has_value());
  retire(1, slot);
  EXPECT_FALSE(space.allocate(128).has_value());
  claim(2, 1);
  EXPECT_FALSE(space.lend(128).has_value());
  retire(2, slot);
  EXPECT_TRUE(space.allocate(kBytes).has_value());
}

TEST_F(Space, TheNextCollectiveInTheSlotHoldsNothingOfTheOneBefore) {
  uint32_t first = claim(0, 1);
  claim(1, 1), claim(2, 1);
  auto a = space.allocate(kBytes / 2), b = space.allocate(kBytes / 2);
  leave(first, {*a});
  retire(1, first), retire(2, first);
  // The slot is another one's before rank 0 has looked.
  ASSERT_EQ(claim(1, 2), first);
  ASSERT_EQ(claim(0, 2), first);
  leave(first, {*b});
  EXPECT_EQ(space.allocate(kBytes / 2)->offset, a->offset);
  EXPECT_FALSE(space.allocate(128).has_value());
  retire(1, first);
  claim(2, 2);
  retire(2, first);
  EXPECT_EQ(space.allocate(kBytes / 2)->offset, b->offset);
}

TEST_F(Space, WhatIsLentComesBackOnce) {
  auto offset = space.lend(1000);
  ASSERT_TRUE(offset.has_value());
  EXPECT_EQ(*offset % 128, 0u);
  EXPECT_FALSE(space.takeBack(*offset + 128));
  EXPECT_TRUE(space.takeBack(*offset));
  EXPECT_FALSE(space.takeBack(*offset));
  auto piece = space.allocate(1000);
  EXPECT_FALSE(space.takeBack(piece->offset)) << "it is nobody's to give back";
}

/// Ranks come, go and are slow at random: no piece is handed out that a slower rank may write to.
TEST_F(Space, NoRangeHasTwoOwners) {
  constexpr uint32_t kSeed = 20261122;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  struct Open {
    uint32_t slot;
    ArenaSpace::Piece piece;
    std::set<uint32_t> left; // ranks that have not retired it
  };
  std::vector<Open> open;
  uint64_t nextId = 1;
  for (uint32_t step = 0; step < 20000; ++step) {
    if (random() % 3 == 0) {
      auto piece = space.allocate(128 + random() % (kBytes / 6));
      if (!piece)
        continue;
      for (const Open &other : open)
        ASSERT_TRUE(piece->offset + piece->bytes <= other.piece.offset ||
                    other.piece.offset + other.piece.bytes <= piece->offset)
            << "step " << step;
      uint32_t slot = claim(0, nextId);
      claim(1, nextId), claim(2, nextId++);
      open.push_back({slot, *piece, {0, 1, 2}});
    } else if (!open.empty()) {
      Open &one = open[random() % open.size()];
      auto rank = one.left.begin();
      std::advance(rank, random() % one.left.size());
      if (*rank == 0)
        leave(one.slot, {one.piece});
      else
        retire(*rank, one.slot);
      one.left.erase(rank);
      std::erase_if(open, [](const Open &o) { return o.left.empty(); });
    }
  }
}

} // namespace
} // namespace occl::cuda
