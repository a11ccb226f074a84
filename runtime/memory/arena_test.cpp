#include "runtime/memory/arena.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace occl::transport {
namespace {

TEST(Arena, HandsOutTheBlockFreedLast) {
  Arena arena(1 << 20);
  uint64_t a = *arena.allocate(1000), b = *arena.allocate(1000), c = *arena.allocate(5000);
  EXPECT_NE(a, b);
  arena.release(a, 1000);
  arena.release(c, 5000);
  arena.release(b, 1000);
  EXPECT_EQ(*arena.allocate(1000), b);
  EXPECT_EQ(*arena.allocate(1000), a);
  EXPECT_EQ(*arena.allocate(5000), c);
}

TEST(Arena, MergesFreedBlocksForALargerOne) {
  Arena arena(1 << 16);
  std::vector<uint64_t> blocks;
  while (auto block = arena.allocate(1024))
    blocks.push_back(*block);
  EXPECT_EQ(blocks.size(), 64u);
  EXPECT_FALSE(arena.allocate(1).has_value());
  for (uint64_t block : blocks)
    arena.release(block, 1024);
  EXPECT_EQ(arena.bytesInUse(), 0u);
  EXPECT_TRUE(arena.allocate(1 << 16).has_value());
}

TEST(Arena, HandsOutTheBlockThatIsAskedFor) {
  Arena arena(1 << 16);
  const uint64_t a = *arena.allocate(1024), b = *arena.allocate(1024);
  EXPECT_FALSE(arena.allocateAt(a, 1024));
  EXPECT_FALSE(arena.allocateAt(b, 4096)) << "its begin is taken";
  EXPECT_FALSE(arena.allocateAt((1 << 16) - 1024, 2048)) << "it would end behind the arena";
  arena.release(b, 1024);
  EXPECT_TRUE(arena.allocateAt(b, 4096)) << "of a freed block and what is behind it";
  EXPECT_TRUE(arena.allocateAt((1 << 16) - 1024, 1024));
  EXPECT_TRUE(arena.allocateAt(8192, 1024)) << "in the middle of what is free";
  EXPECT_FALSE(arena.allocateAt(7168, 2048)) << "its end is taken";
  EXPECT_TRUE(arena.allocateAt(7168, 1024));
  EXPECT_EQ(arena.bytesInUse(), 8192u);
  arena.release(a, 1024);
  arena.release(b, 4096);
  arena.release(8192, 1024);
  arena.release(7168, 1024);
  arena.release((1 << 16) - 1024, 1024);
  EXPECT_TRUE(arena.allocate(1 << 16).has_value());
}

TEST(Arena, RefusesWhatNeverFits) {
  Arena arena(1 << 16);
  EXPECT_TRUE(arena.canEverFit(1 << 16));
  EXPECT_FALSE(arena.canEverFit((1 << 16) + 1));
  EXPECT_FALSE(arena.allocate((1 << 16) + 1).has_value());
  EXPECT_FALSE(arena.allocate(~0ull).has_value());
}

TEST(Arena, ClassesWasteAtMostAQuarter) {
  for (uint64_t bytes = 4 * Arena::kAlignment; bytes < 1 << 20; bytes += 77) {
    uint64_t rounded = Arena::roundToClass(bytes);
    EXPECT_GE(rounded, bytes);
    EXPECT_LE(rounded, bytes + bytes / 4);
    EXPECT_EQ(rounded % Arena::kAlignment, 0u);
    EXPECT_EQ(Arena::roundToClass(rounded), rounded);
  }
}

TEST(Arena, RandomBlocksNeverOverlap) {
  constexpr uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  Arena arena(1 << 18);
  struct Block {
    uint64_t offset, bytes;
  };
  std::vector<Block> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 2) {
      uint64_t bytes = 1 + random() % 20000;
      auto offset = arena.allocate(bytes);
      if (!offset)
        continue;
      ASSERT_EQ(*offset % Arena::kAlignment, 0u);
      ASSERT_LE(*offset + bytes, arena.size());
      for (const Block &other : live)
        ASSERT_TRUE(*offset + bytes <= other.offset || other.offset + other.bytes <= *offset)
            << "seed " << kSeed << " step " << i;
      live.push_back({*offset, bytes});
    } else {
      size_t victim = random() % live.size();
      arena.release(live[victim].offset, live[victim].bytes);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
    }
  }
}

} // namespace
} // namespace occl::transport
