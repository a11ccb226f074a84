#include "runtime/cuda/tables/awaited_peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace occl::cuda {
namespace {

using interpreter::BlockReason;
using interpreter::Obstacle;

constexpr uint32_t kRank = 1;
constexpr Obstacle kNothing, kOwn = {BlockReason::Dependency, 1, kRank};

/// What an adopter says that finds these one after the other.
Obstacle saidOf(const std::vector<Obstacle> &found) {
  Obstacle said;
  for (const Obstacle &obstacle : found)
    if (saysMore(obstacle, said, kRank))
      said = obstacle;
  return said;
}

TEST(AwaitedPeer, WhicheverThreadBlockAdoptsTheOtherRankIsSaid) {
  const Obstacle late = {BlockReason::Data, 5, 0};
  std::vector<Obstacle> found = {kNothing, late, kOwn, late};
  for (size_t adopter = 0; adopter < found.size(); ++adopter) {
    EXPECT_EQ(saidOf(found), late) << adopter;
    std::rotate(found.begin(), found.begin() + 1, found.end());
  }
}

TEST(AwaitedPeer, TheFirstOfSeveralStays) {
  const Obstacle first = {BlockReason::Data, 5, 0}, second = {BlockReason::Credit, 6, 2};
  EXPECT_EQ(saidOf({kOwn, first, second}), first);
  EXPECT_EQ(saidOf({first, kNothing, kOwn}), first);
}

TEST(AwaitedPeer, WithoutAnotherRankTheOwnOneIsSaid) {
  const Obstacle other = {BlockReason::Dependency, 2, kRank};
  EXPECT_EQ(saidOf({kNothing, kOwn, other, kNothing}), kOwn);
  EXPECT_EQ(saidOf({kNothing, kNothing}), kNothing);
}

} // namespace
} // namespace occl::cuda
