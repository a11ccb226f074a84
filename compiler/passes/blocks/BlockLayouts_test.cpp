#include "compiler/passes/blocks/BlockLayouts.h"

#include <gtest/gtest.h>

namespace occl::passes {
namespace {

using Blocks = std::vector<uint32_t>;

/// An exchange in `step`, which goes on as long as there is work: a group that sends and one that
/// receives, with the same peer. Recursive doubling has one such pair for each step.
void addExchange(std::vector<StepGroup> &groups, uint64_t begin, uint64_t work, uint32_t peer) {
  groups.push_back({work, begin, begin + work, {peer}});
  groups.push_back({work, begin, begin + work, {peer}});
}

std::vector<StepGroup> recursiveDoubling() {
  std::vector<StepGroup> groups;
  addExchange(groups, 0, 2, 1);
  addExchange(groups, 2, 4, 2);
  addExchange(groups, 6, 8, 4);
  return groups;
}

TEST(BlockLayouts, BalancedGivesTheLargestToTheBlockThatHasLeast) {
  EXPECT_EQ(layOut(BlockLayout::Balanced, recursiveDoubling(), {0, 0, 0}),
            (Blocks{0, 1, 2, 2, 0, 1}));
  EXPECT_EQ(layOut(BlockLayout::Balanced, recursiveDoubling(), {100, 0, 0})[0], 1u);
}

TEST(BlockLayouts, PhasesKeepsTogetherWhatComesAtOneTime) {
  // Two blocks: what begins early, 12 together, and the last exchange, 16. With four no run needs
  // to be longer than 8; the first that fits into it are 2 + 2 + 4.
  EXPECT_EQ(layOut(BlockLayout::Phases, recursiveDoubling(), {0, 0}), (Blocks{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(layOut(BlockLayout::Phases, recursiveDoubling(), {0, 0, 0, 0}),
            (Blocks{0, 0, 0, 1, 2, 3}));
}

TEST(BlockLayouts, PhasesGoesByTimeNotByNumber) {
  std::vector<StepGroup> groups = {{1, 10, 11, {}}, {1, 0, 1, {}}, {1, 11, 12, {}}, {1, 1, 2, {}}};
  EXPECT_EQ(layOut(BlockLayout::Phases, groups, {0, 0}), (Blocks{1, 0, 1, 0}));
}

TEST(BlockLayouts, PhasesCountsTheTimeBetweenAsWell) {
  // Little work, but a block that does the first and the second is busy from 0 to 50.
  std::vector<StepGroup> groups = {{1, 0, 1, {}}, {1, 49, 50, {}}, {9, 50, 59, {}}};
  EXPECT_EQ(layOut(BlockLayout::Phases, groups, {0, 0}), (Blocks{0, 1, 1}));
}

TEST(BlockLayouts, PeersKeepsTogetherWhatHasTheSamePeers) {
  EXPECT_EQ(layOut(BlockLayout::Peers, recursiveDoubling(), {0, 0, 0}), (Blocks{2, 2, 1, 1, 0, 0}));
  // Also of several ranks.
  std::vector<StepGroup> groups = {
      {1, 0, 0, {1, 2}}, {1, 0, 0, {1}}, {1, 0, 0, {1, 2}}, {1, 0, 0, {}}};
  EXPECT_EQ(layOut(BlockLayout::Peers, groups, {0, 0, 0}), (Blocks{0, 1, 0, 2}));
}

TEST(BlockLayouts, GroupsWithoutPeersAreBalancedOneByOne) {
  std::vector<StepGroup> groups = {{5, 0, 0, {1}}, {1, 0, 0, {}}, {1, 0, 0, {}}, {1, 0, 0, {}}};
  EXPECT_EQ(layOut(BlockLayout::Peers, groups, {0, 0, 0}), (Blocks{0, 1, 2, 1}));
}

TEST(BlockLayouts, EarliestTakesTheBlockThatIsFreeFirst) {
  // Two begin at once, the shorter one first; the third when that is done; the last when all are.
  std::vector<StepGroup> groups = {
      {9, 0, 9, {}}, {3, 0, 3, {}}, {4, 5, 9, {}}, {1, 20, 21, {}}, {1, 20, 21, {}}};
  EXPECT_EQ(layOut(BlockLayout::Earliest, groups, {0, 0}), (Blocks{1, 0, 0, 0, 1}));
  // A block that has work already is free later.
  EXPECT_EQ(layOut(BlockLayout::Earliest, {{1, 0, 1, {}}}, {2, 0}), (Blocks{1}));
}

TEST(BlockLayouts, NothingToDistribute) {
  for (BlockLayout layout : kBlockLayouts)
    EXPECT_TRUE(layOut(layout, {}, {0, 0}).empty());
}

TEST(BlockLayouts, Names) {
  EXPECT_EQ(blockLayoutOf("peers"), BlockLayout::Peers);
  EXPECT_EQ(blockLayoutOf("phases"), BlockLayout::Phases);
  EXPECT_EQ(blockLayoutOf("balanced"), BlockLayout::Balanced);
  EXPECT_EQ(blockLayoutOf("earliest"), BlockLayout::Earliest);
  EXPECT_EQ(blockLayoutOf("auto"), std::nullopt);
}

} // namespace
} // namespace occl::passes
