#include "compiler/analysis/StepWeights.h"

#include "compiler/analysis/StepGraph.h"
#include "compiler/analysis/Testing.h"

#include <gtest/gtest.h>

namespace occl::analysis {
namespace {

using namespace testing;
using Numbers = std::vector<uint32_t>;

const Numbers kNumbers = {100, 1, 2, 4, 8, 0, 50, 3};

Numbers operator+(Numbers numbers, const Numbers &more) {
  numbers.insert(numbers.end(), more.begin(), more.end());
  return numbers;
}

TEST(StepWeights, AreNumbersAndBack) {
  for (const Numbers &numbers :
       {StepWeights().numbers(), kNumbers, kNumbers + Numbers{0, 1, 60, 7, 0, 2, 70, 8}}) {
    auto weights = StepWeights::of(numbers);
    ASSERT_TRUE(weights);
    EXPECT_EQ(weights->numbers(), numbers);
  }
}

TEST(StepWeights, OtherNumbersAreNone) {
  EXPECT_FALSE(StepWeights::of({}));
  EXPECT_FALSE(StepWeights::of(llvm::ArrayRef(kNumbers).drop_back()));
  EXPECT_FALSE(StepWeights::of(kNumbers + Numbers{0, 1, 60}));
  EXPECT_FALSE(StepWeights::of(kNumbers + Numbers{1, 0, 60, 7, 0, 1, 60, 7}));
  EXPECT_FALSE(StepWeights::of(kNumbers + Numbers{0, 1, 60, 7, 0, 1, 60, 7}));
  Numbers neither = kNumbers;
  neither[5] = 2;
  EXPECT_FALSE(StepWeights::of(neither));
}

TEST(StepWeights, EachWayHasItsOwn) {
  auto weights = StepWeights::of(kNumbers + Numbers{0, 1, 60, 7, 2, 0, 70, 8});
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->between(0, 1), (WayWeights{60, 7}));
  EXPECT_EQ(weights->between(2, 0), (WayWeights{70, 8}));
  for (auto [from, to] : {std::pair(0, 0), {0, 2}, {1, 0}, {3, 3}})
    EXPECT_EQ(weights->between(from, to), (WayWeights{50, 3}));
}

/// Rank 0 sends two chunks to ranks 1 and 2; rank 1 adds its own and stores them.
Program multicast() {
  return program({{step({input(0)}, {transfer(0)}, 2)},
                  {step({transfer(0), input(0)}, {output(0)}, 2)},
                  {step({transfer(0)}, {output(0)}, 2)}});
}

uint64_t durationAt(const Program &program, uint32_t rank) {
  return durationOf(program, Network(program), rank, program.ranks[rank].steps[0].instruction);
}

TEST(StepWeights, DurationsAreOverheadAndWorkOfEachOperand) {
  Program p = multicast();
  p.weights = *StepWeights::of(kNumbers);
  EXPECT_EQ(durationAt(p, 0), 100u + 2 * (1 + 8 + 8)); // a copy for each receiver
  EXPECT_EQ(durationAt(p, 1), 100u + 2 * (4 + 1 + 2));
  p.weights.fetched = true;
  EXPECT_EQ(durationAt(p, 0), 100u + 2 * (1 + 8));
  p.weights = {};
  EXPECT_EQ(durationAt(p, 0), 3u + 2 * 2);
}

TEST(StepWeights, ASlowWayHoldsUpWhoeverMovesTheData) {
  Program p = multicast();
  p.weights = *StepWeights::of(kNumbers + Numbers{0, 2, 50, 1000});
  EXPECT_EQ(durationAt(p, 0), 2000u); // stores to both
  EXPECT_EQ(durationAt(p, 2), 100u + 2 * (4 + 2));
  p.weights.fetched = true;
  EXPECT_EQ(durationAt(p, 0), 100u + 2 * (1 + 8));
  EXPECT_EQ(durationAt(p, 1), 100u + 2 * (4 + 1 + 2));
  EXPECT_EQ(durationAt(p, 2), 2000u); // fetches over it
}

TEST(StepWeights, VeryLongDurationsAreAllEquallyLong) {
  Program p = multicast();
  p.weights.overhead = UINT32_MAX;
  EXPECT_EQ(durationsOf(p, Network(p)), (Numbers{UINT32_MAX, UINT32_MAX, UINT32_MAX}));
}

TEST(StepWeights, PathsCountTheLatencyOfTheirWays) {
  Program p = program({{step({input(0)}, {transfer(0)})},
                       {step({transfer(0)}, {transfer(1)})},
                       {step({transfer(1)}, {output(0)})}});
  p.weights.ways = {{1, 2, {100, 0}}};
  StepGraph graph(p, Network(p), MessageOrder::Free);
  const Numbers durations = {10, 20, 30};
  EXPECT_EQ(graph.heights(durations, p.weights), (Numbers{10 + 7 + 20 + 100 + 30, 150, 30}));
  EXPECT_EQ(graph.depths(durations, p.weights), (Numbers{0, 17, 137}));
}

} // namespace
} // namespace occl::analysis
