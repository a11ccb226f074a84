#include "runtime/cuda/device/arena_space.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint64_t kBegin = 4096, kBytes = 1 << 20;

TEST(ArenaSpace, LendsWhatComesBackOnce) {
  ArenaSpace space(kBegin, kBytes);
  auto offset = space.lend(1000);
  ASSERT_TRUE(offset.has_value());
  EXPECT_EQ(*offset % 128, 0u);
  EXPECT_FALSE(space.takeBack(*offset + 128));
  EXPECT_TRUE(space.takeBack(*offset));
  EXPECT_FALSE(space.takeBack(*offset));
  auto piece = space.allocate(1000);
  EXPECT_FALSE(space.takeBack(piece->offset)) << "it is nobody's to give back";
}

TEST(ArenaSpace, GivesAllOfItAndNoMore) {
  ArenaSpace space(kBegin, kBytes);
  auto all = space.allocate(kBytes);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->offset, kBegin);
  EXPECT_FALSE(space.allocate(1).has_value());
  EXPECT_FALSE(space.lend(1).has_value());
  space.release(*all);
  EXPECT_TRUE(space.lend(kBytes).has_value());
}

/// What is added may lie before the arena, and is for what others do not access.
TEST(ArenaSpace, HasMoreForPiecesThatAreNotLent) {
  constexpr uint64_t kMore = -(uint64_t{1} << 40);
  std::vector<uint64_t> asked;
  ArenaSpace space(kBegin, kBytes, [&](uint64_t bytes) {
    asked.push_back(bytes);
    return asked.size() == 1 ? std::optional(ArenaSpace::Piece{kMore, 2 * kBytes}) : std::nullopt;
  });
  const auto all = space.allocate(kBytes);
  ASSERT_TRUE(all.has_value());
  EXPECT_FALSE(space.lend(128).has_value());
  EXPECT_TRUE(asked.empty());
  const auto more = space.allocate(kBytes), rest = space.allocate(kBytes);
  ASSERT_TRUE(more.has_value() && rest.has_value());
  EXPECT_EQ(more->offset, kMore);
  EXPECT_EQ(rest->offset, kMore + kBytes);
  EXPECT_FALSE(space.allocate(kBytes).has_value()) << "there is no more";
  EXPECT_EQ(asked, (std::vector<uint64_t>{kBytes, kBytes}));
  space.release(*more);
  EXPECT_FALSE(space.lend(128).has_value());
  EXPECT_EQ(space.allocate(kBytes)->offset, kMore);
  space.release(*all);
  EXPECT_EQ(space.lend(kBytes), kBegin);
}

TEST(ArenaSpace, HasMoreTwiceAtMost) {
  constexpr uint64_t kMore = uint64_t{1} << 40;
  uint32_t given = 0;
  ArenaSpace space(kBegin, kBytes, [&](uint64_t bytes) {
    return std::optional(ArenaSpace::Piece{kMore + bytes * given++, bytes});
  });
  for (uint32_t i = 0; i < 3; ++i)
    EXPECT_TRUE(space.allocate(kBytes).has_value());
  EXPECT_FALSE(space.allocate(kBytes).has_value()) << "nothing would ever be forgotten";
  EXPECT_EQ(given, 2u);
}

TEST(ArenaSpace, NoRangeHasTwoOwners) {
  constexpr uint32_t kSeed = 20261122;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  ArenaSpace space(kBegin, kBytes);
  std::vector<ArenaSpace::Piece> open;
  for (uint32_t step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const auto piece = space.allocate(128 + random() % (kBytes / 6));
      if (!piece)
        continue;
      ASSERT_GE(piece->offset, kBegin);
      ASSERT_LE(piece->offset + piece->bytes, kBegin + kBytes);
      for (const ArenaSpace::Piece &other : open)
        ASSERT_TRUE(piece->offset + piece->bytes <= other.offset ||
                    other.offset + other.bytes <= piece->offset)
            << "step " << step;
      open.push_back(*piece);
    } else if (!open.empty()) {
      std::swap(open[random() % open.size()], open.back());
      space.release(open.back());
      open.pop_back();
    }
  }
}

} // namespace
} // namespace occl::cuda
