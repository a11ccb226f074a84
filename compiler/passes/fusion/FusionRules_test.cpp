// Reductions of very many operands: each comes to stand where it did among few, and the time is
// near linear. What the rules do to small programs: test/passes/inst/inst-fuse*.mlir.
#include "compiler/passes/fusion/FusionRules.h"

#include "compiler/analysis/Testing.h"

#include <gtest/gtest.h>

namespace occl::passes {
namespace {

using namespace analysis;
using namespace analysis::testing;
using inst::Place;

/// Messages of one connection cannot be operands of one instruction: each has a channel of its own,
/// as many as there can be between two ranks.
constexpr uint32_t kChannels = 20'000;

Place message(uint32_t id) { return transfer(id, static_cast<int16_t>(id % kChannels)); }

/// Rank 0 does `steps`; the others send it what it receives.
Program receiving(std::vector<Step> steps) {
  Program result = program({std::move(steps)});
  for (const Step &step : result.ranks[0].steps)
    forEachMessage(step.instruction.sources, [&](const Place &place) {
      result.numTransfers = std::max(result.numTransfers, place.index + 1);
    });
  result.ranks.resize(2 + result.numTransfers / kChannels);
  for (uint32_t id = 0; id < result.numTransfers; ++id)
    result.ranks[1 + id / kChannels].steps.push_back(testing::step({input(id)}, {message(id)}));
  return result;
}

void absorb(Program &program, bool reassociate = false) {
  FusionOptions options{std::vector<bool>(program.numTransfers), reassociate};
  absorbSources(program, Network(program), program.ranks[0], options);
}

/// Stores so many messages in scratch and then reduces all of them.
std::vector<Step> storedFirst(uint32_t number) {
  std::vector<Step> steps;
  Step reduction = step({}, {output(0)});
  for (uint32_t i = 0; i < number; ++i) {
    steps.push_back(step({message(i)}, {scratch(i)}));
    reduction.instruction.sources.push_back(scratch(i));
  }
  steps.push_back(reduction);
  return steps;
}

inst::Places messages(uint32_t number) {
  inst::Places places;
  for (uint32_t i = 0; i < number; ++i)
    places.push_back(message(i));
  return places;
}

// If each operand were looked for among all others, this would take ten minutes instead of seconds,
// and exceed the time that a test has.
TEST(FusionRules, AReductionOfManyOperandsTakesNearLinearTime) {
  constexpr uint32_t kOperands = 60'000, kTimes = 64;
  const Program original = receiving(storedFirst(kOperands));
  for (uint32_t time = 0; time < kTimes; ++time) {
    Program fused = original;
    absorb(fused);
    ASSERT_EQ(fused.ranks[0].steps.size(), 1u);
    ASSERT_EQ(fused.ranks[0].steps[0].instruction.sources, messages(kOperands));
  }
}

TEST(FusionRules, AChainOfReductionsIsReducedInItsOrder) {
  for (uint32_t operands : {4u, 16u, 17u, 18u, 100u}) {
    std::vector<Step> steps{step({message(0), message(1)}, {scratch(0)})};
    for (uint32_t i = 2; i < operands; ++i)
      steps.push_back(step({scratch(0), message(i)}, {scratch(0)}));
    steps.back().instruction.destinations = {output(0)};
    Program fused = receiving(steps);
    absorb(fused, true);
    ASSERT_EQ(fused.ranks[0].steps.size(), 1u) << operands;
    EXPECT_EQ(fused.ranks[0].steps[0].instruction.sources, messages(operands));
  }
}

// A source that is read twice, or that others overlap, stays where it is, among few and among many.
TEST(FusionRules, AResultThatIsReadMoreThanOnceStays) {
  for (uint32_t number : {8u, 40u}) {
    std::vector<Step> steps = storedFirst(number);
    steps.back().instruction.sources.insert(steps.back().instruction.sources.begin() + 5,
                                            scratch(3));
    Program fused = receiving(steps);
    absorb(fused);
    inst::Places expected = messages(number);
    expected[3] = scratch(3);
    expected.insert(expected.begin() + 5, scratch(3));
    ASSERT_EQ(fused.ranks[0].steps.size(), 2u) << number;
    EXPECT_EQ(fused.ranks[0].steps[1].instruction.sources, expected);
  }
}

} // namespace
} // namespace occl::passes
