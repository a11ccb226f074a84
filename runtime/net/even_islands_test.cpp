#include "runtime/net/even_islands.h"

#include <gtest/gtest.h>

namespace occl::net {
namespace {

using Hosts = std::vector<int>;

TEST(EvenIslands, AreCounted) {
  EXPECT_EQ(evenIslands(Hosts{0, 0, 1, 1}), 2u);
  EXPECT_EQ(evenIslands(Hosts{5, 5, 5, 2, 2, 2}), 2u);
  EXPECT_EQ(evenIslands(Hosts{0, 0, 1, 1, 2, 2}), 3u);
}

TEST(EvenIslands, OfOtherSizesAreNone) {
  EXPECT_EQ(evenIslands(Hosts{0, 0, 0, 1}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0, 1, 1}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0, 0, 1}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0, 0, 1, 1, 1, 1}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0, 0, 1, 1, 2, 3}), 1u);
}

TEST(EvenIslands, OfOneRankEachOrOneInAllAreNone) {
  EXPECT_EQ(evenIslands(Hosts{0, 1, 2}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0, 0, 0}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0}), 1u);
}

TEST(EvenIslands, IslandsWithMixedRanksAreNotEven) {
  EXPECT_EQ(evenIslands(Hosts{0, 1, 0, 1}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0, 0, 1, 1, 0, 0}), 1u);
  EXPECT_EQ(evenIslands(Hosts{0, 0, 1, 2, 1, 2}), 1u);
}

} // namespace
} // namespace occl::net
