#include "runtime/memory/homes.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace occl::transport {
namespace {

constexpr uint64_t kBytes = 1 << 16, kQuarter = kBytes / 4;

TEST(Homes, FillTheArenaFromItsEnd) {
  Arena arena(kBytes);
  Homes homes(arena);
  for (uint64_t i = 1; i <= 4; ++i) {
    const Home *home = homes.make(kQuarter);
    ASSERT_NE(home, nullptr);
    EXPECT_EQ(home->offset, kBytes - i * kQuarter);
  }
  EXPECT_EQ(homes.bytes(), kBytes);
  EXPECT_EQ(homes.make(1), nullptr);
}

/// What others have of the arena is no reason to refuse one: ranks differ in that.
TEST(Homes, LieWhereTheyDoWhateverOthersHave) {
  Arena arena(kBytes), other(kBytes);
  Homes homes(arena), others(other);
  ASSERT_TRUE(other.allocate(kBytes));
  std::mt19937 random(printedSeed());
  std::vector<std::pair<Home *, Home *>> live;
  for (int i = 0; i < 2000; ++i)
    if (random() % 3 != 0) {
      const uint64_t bytes = 1 + random() % kQuarter;
      Home *mine = homes.make(bytes), *theirs = others.make(bytes);
      ASSERT_EQ(mine == nullptr, theirs == nullptr);
      if (!mine)
        continue;
      ASSERT_EQ(mine->offset, theirs->offset);
      for (const auto &[home, twin] : live)
        ASSERT_TRUE(home->offset + home->bytes <= mine->offset ||
                    mine->offset + mine->bytes <= home->offset);
      live.emplace_back(mine, theirs);
    } else if (!live.empty()) {
      // Two are given up, in an order of each rank's own.
      const size_t n = std::min<size_t>(live.size(), 2);
      std::ranges::shuffle(live, random);
      for (size_t k = 0; k < n; ++k) {
        homes.giveUp(*live[k].first);
        others.giveUp(*live[n - 1 - k].second);
      }
      live.erase(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(n));
    }
}

TEST(Homes, AreEnteredOnceAtATime) {
  Arena arena(kBytes);
  Homes homes(arena);
  Home &home = *homes.make(kQuarter);
  EXPECT_TRUE(homes.enter(home));
  EXPECT_FALSE(homes.enter(home)) << "its last use goes on";
  homes.leave(home);
  EXPECT_TRUE(homes.enter(home));
}

TEST(Homes, WaitForWhoWasThereBefore) {
  Arena arena(kBytes);
  Homes homes(arena);
  const uint64_t block = *arena.allocate(kBytes);
  Home &home = *homes.make(kQuarter);
  EXPECT_FALSE(homes.enter(home));
  arena.release(block, kBytes);
  EXPECT_TRUE(homes.enter(home));
  EXPECT_EQ(arena.bytesInUse(), kQuarter);
}

/// Others come there when there is nothing else, and not again as soon as there is.
TEST(Homes, AreLentLast) {
  Arena arena(kBytes);
  Homes homes(arena);
  Home &home = *homes.make(kQuarter);
  Home &busy = *homes.make(kQuarter);
  ASSERT_TRUE(homes.enter(busy));
  homes.recall();
  const uint64_t low = *arena.allocate(2 * kQuarter);
  EXPECT_FALSE(arena.allocate(kQuarter));
  EXPECT_TRUE(homes.lend());
  const uint64_t lent = *arena.allocate(kQuarter);
  EXPECT_EQ(lent, home.offset);
  EXPECT_TRUE(homes.isLent(lent, kQuarter));
  EXPECT_FALSE(homes.isLent(low, 2 * kQuarter));
  EXPECT_FALSE(homes.lend());
  EXPECT_FALSE(homes.enter(home));
  EXPECT_FALSE(homes.recall());
  arena.release(lent, kQuarter);
  arena.release(low, 2 * kQuarter);
  EXPECT_TRUE(homes.recall());
  EXPECT_NE(*arena.allocate(kQuarter), home.offset) << "though that was freed last";
  EXPECT_TRUE(homes.enter(home));
}

/// The next one may lie there at once; it is entered when the last use is over.
TEST(Homes, GivenUpInUseAreLeftLater) {
  Arena arena(kBytes);
  Homes homes(arena);
  Home &old = *homes.make(kBytes);
  ASSERT_TRUE(homes.enter(old));
  homes.giveUp(old);
  Home *next = homes.make(kBytes);
  ASSERT_NE(next, nullptr);
  EXPECT_FALSE(homes.enter(*next));
  EXPECT_FALSE(homes.lend());
  homes.leave(old);
  EXPECT_TRUE(homes.enter(*next));
  homes.leave(*next);
  homes.giveUp(*next);
  EXPECT_EQ(arena.bytesInUse(), 0u);
}

/// The next home will be there.
TEST(Homes, GivenUpAreNotWhatIsHandedOutNext) {
  Arena arena(kBytes);
  Homes homes(arena);
  Home &home = *homes.make(kQuarter);
  ASSERT_TRUE(homes.enter(home));
  homes.leave(home);
  homes.giveUp(home);
  EXPECT_EQ(*arena.allocate(kQuarter), 0u);
}

} // namespace
} // namespace occl::transport
