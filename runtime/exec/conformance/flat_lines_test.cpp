// Thread blocks laid out flat give what the collective is defined to give, in memory that holds the
// lines of earlier invocations, beside ranks that are interpreted, and when they are left at any
// step for the interpreter to go on.
#include "runtime/exec/host/flat_lines.h"

#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/line_step.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace occl::interpreter::conformance {
namespace {

using plan::Protocol;

/// One rank of an invocation, flat until it is left.
struct FlatRank {
  std::unique_ptr<FlatLines> lines;
  std::optional<FlatRun> run;
  bool isFinished = false;
};

/// The ranks in turns at random; with `leaves` they leave at random, and some are interpreted from
/// the begin. Counts those that have been flat to their end, and those that were left on the way.
class FlatRanks {
public:
  FlatRanks(Simulation &simulation, uint64_t seed, bool leaves)
      : simulation(simulation), random(seed), leaves(leaves), ranks(simulation.numRanks()) {
    for (uint32_t r = 0; r < ranks.size(); ++r)
      ranks[r].lines = FlatLines::make(simulation.binding(r).program());
  }

  bool areAllFlat() const {
    return std::ranges::all_of(ranks, [](const FlatRank &rank) { return rank.lines != nullptr; });
  }
  Status runInvocation() {
    simulation.announceAll();
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      ranks[r].isFinished = false;
      if (!leaves || random() % 3 != 0)
        ranks[r].run.emplace(*ranks[r].lines, simulation.invocation(r));
    }
    uint32_t unmoved = 0;
    while (!std::ranges::all_of(ranks, &FlatRank::isFinished)) {
      if (++unmoved > 100000)
        return {StatusCode::Deadlock, "nothing moves"};
      if (turn(static_cast<uint32_t>(random() % ranks.size())))
        unmoved = 0;
    }
    return {};
  }

  uint32_t numFlat = 0, numLeft = 0;

private:
  bool turn(uint32_t r) {
    FlatRank &rank = ranks[r];
    if (rank.isFinished)
      return false;
    if (!rank.run) {
      const auto result =
          runOnHost(simulation.invocation(r), 0, simulation.context(r, 0), target, 1);
      rank.isFinished = result.status == StepStatus::Finished;
      return result.slices != 0;
    }
    rank.isFinished = rank.run->advance();
    const bool moved = rank.run->ring();
    if (rank.isFinished) {
      ++numFlat;
      EXPECT_EQ(rank.run->context().tile, 1u);
      rank.run.reset();
    } else if (leaves && random() % 4 == 0) {
      simulation.context(r, 0) = rank.run->context();
      numLeft += rank.run->slices() != 0;
      rank.run.reset();
    }
    return moved;
  }

  Simulation &simulation;
  std::mt19937_64 random;
  const bool leaves;
  std::vector<FlatRank> ranks;
  HostTarget target;
};

class Flat : public testing::TestWithParam<Protocol> {
protected:
  /// False if it is not for it.
  bool check(plan::Plan plan, const SimulationOptions &options, uint64_t seed, bool leaves) {
    plan.protocol = GetParam();
    bool isFlat = false;
    Status status = checkCollective(plan, options, seed, [&](Simulation &simulation) {
      FlatRanks ranks(simulation, seed, leaves);
      isFlat = ranks.areAllFlat();
      if (!isFlat)
        return runRandomly(simulation, seed, 1);
      const uint32_t invocations = options.inPlace ? 1 : 5; // the first one changes the input
      for (uint32_t invocation = 0; invocation < invocations; ++invocation) {
        if (invocation != 0)
          simulation.next();
        if (Status run = ranks.runInvocation(); !run.ok())
          return run;
      }
      numFlat += ranks.numFlat;
      numLeft += ranks.numLeft;
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message() << "\n  " << plan.name << ", " << options.count
                             << " elements, seed " << seed;
    return isFlat;
  }

  uint32_t numFlat = 0, numLeft = 0;
};

TEST_P(Flat, ProgramsGiveTheReference) {
  for (bool leaves : {false, true}) {
    uint32_t numPrograms = 0;
    for (const NamedProgram &program : programs())
      for (uint32_t n : {2u, 3u, 8u})
        for (uint64_t count : {1, 7, 14, 16, 33, 100})
          numPrograms += check(program.make(n),
                               {.count = count, .misalignment = count % 3, .hostLineSteps = true},
                               count * 8 + n, leaves);
    EXPECT_GT(numPrograms, 20u);
    EXPECT_GT(numFlat, 100u);
    EXPECT_EQ(numLeft > 20, leaves) << numLeft;
  }
}

TEST_P(Flat, AllTypesAndOperations) {
  for (unsigned type = 0; type < kNumDataTypes; ++type)
    for (unsigned op = 0; op < kNumReduceOps; ++op)
      for (uint64_t count : {5, 64})
        EXPECT_TRUE(check(
            plan::testing::oneShotAllReduce(4),
            {.count = count, .type = DataType(type), .op = ReduceOp(op), .hostLineSteps = true},
            type * 8 + op, true));
}

TEST_P(Flat, InPlace) {
  for (uint64_t count : {3, 16, 50})
    EXPECT_TRUE(check(plan::testing::oneShotAllReduce(3),
                      {.count = count, .inPlace = true, .hostLineSteps = true}, count, true));
}

/// Several thread blocks, none in lines, nothing to move, too much.
TEST_P(Flat, NotForAll) {
  auto isFlat = [](const plan::Plan &plan, uint64_t count) {
    auto binding = bind(plan, {.count = count, .hostLineSteps = true});
    EXPECT_TRUE(binding.ok()) << binding.status().message();
    return FlatLines::make((*binding)->program()) != nullptr;
  };
  plan::Plan plan = plan::testing::oneShotAllReduce(2);
  EXPECT_FALSE(isFlat(plan, 16));
  plan.protocol = GetParam();
  EXPECT_TRUE(isFlat(plan, 16));
  EXPECT_FALSE(isFlat(plan, 0));
  EXPECT_FALSE(isFlat(plan, 100000));
}

INSTANTIATE_TEST_SUITE_P(Protocols, Flat, testing::Values(Protocol::LL, Protocol::LL128));

} // namespace
} // namespace occl::interpreter::conformance
