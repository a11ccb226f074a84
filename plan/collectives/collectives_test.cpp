#include "plan/collectives/collectives.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace occl::plan {
namespace {

TEST(Collectives, AreKnownByName) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < kNumStandardCollectives; ++i) {
    const auto collective = static_cast<StandardCollective>(i);
    EXPECT_TRUE(names.insert(nameOf(collective)).second) << nameOf(collective);
    EXPECT_EQ(collectiveOfName(nameOf(collective)), collective);
    const bool isNamed = definitionOf(collective).promise == Promise::Named;
    EXPECT_EQ(standardCollectiveOf(nameOf(collective)).has_value(), isNamed);
  }
  EXPECT_FALSE(collectiveOfName("allgatherv"));
  EXPECT_FALSE(collectiveOfName(""));
}

/// goalOf() knows no other ones.
TEST(Collectives, RowsHaveAMeaning) {
  for (const CollectiveDefinition &one : kStandardCollectives) {
    const bool isWhole = one.output == BufferSize::Whole;
    if (one.result == Result::Reduced) // what would the parts of the output be reductions of?
      EXPECT_FALSE(isWhole) << one.name;
    else // of whose input it is a copy, its place or the root tells
      EXPECT_NE(isWhole, one.inputOf == Holder::Root) << one.name;
    EXPECT_FALSE(one.inputOf == Holder::Root && one.outputOf == Holder::Root) << one.name;
  }
}

/// Out of place or in place, and by bytes as by elements, an output is the same.
TEST(Collectives, PartsAreInAnyUnit) {
  for (uint32_t i = 0; i < kNumStandardCollectives; ++i) {
    const auto collective = static_cast<StandardCollective>(i);
    const Parts elements = {5, 2, 3}, bytes = {5, 2, 12};
    EXPECT_EQ(inputSize(collective, bytes), 4 * inputSize(collective, elements));
    EXPECT_EQ(outputSize(collective, bytes), 4 * outputSize(collective, elements));
    for (uint32_t rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(inPlaceOffset(collective, bytes, rank),
                4 * inPlaceOffset(collective, elements, rank));
      for (uint64_t element = 0; element < outputSize(collective, elements); ++element) {
        const auto one = goalOf(collective, elements, rank, element);
        const auto last = goalOf(collective, bytes, rank, 4 * element + 3);
        ASSERT_EQ(one.has_value(), needsOutput(collective, elements, rank));
        ASSERT_EQ(last.has_value(), one.has_value());
        if (!one)
          continue;
        EXPECT_EQ(last->index, 4 * one->index + 3);
        EXPECT_EQ(last->rank, one->rank);
        EXPECT_EQ(last->ofAllRanks, isReduction(collective));
        EXPECT_LT(one->index, inputSize(collective, elements));
        EXPECT_TRUE(needsInput(collective, elements, one->rank));
      }
    }
  }
}

} // namespace
} // namespace occl::plan
