// The resumable driver of hosts gives what the collective is defined to give: in memory that holds
// the lines of earlier invocations, called again and again, and when it is left between any two
// steps for another one to go on.
#include "runtime/exec/host/step_driver.h"

#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace occl::interpreter::conformance {
namespace {

using plan::Protocol;

/// One rank of an invocation.
struct Driven {
  std::optional<StepDriver> driver;
  HostTarget target;
  bool isFinished = false;
};

/// The ranks in turns at random; with `leaves` they leave at random, so that another driver goes
/// on. Counts those that have been driven by one to their end, and those that were left on the way.
class DrivenRanks {
public:
  DrivenRanks(Simulation &simulation, uint64_t seed, bool leaves)
      : simulation(simulation), random(seed), leaves(leaves), ranks(simulation.numRanks()) {}

  bool haveOneBlock() const {
    for (uint32_t r = 0; r < ranks.size(); ++r)
      if (simulation.numBlocks(r) != 1)
        return false;
    return true;
  }
  Status runInvocation() {
    simulation.announceAll();
    for (Driven &rank : ranks)
      rank.isFinished = false;
    uint32_t unmoved = 0;
    while (!std::ranges::all_of(ranks, &Driven::isFinished)) {
      if (++unmoved > 100000)
        return {StatusCode::Deadlock, "nothing moves"};
      if (turn(static_cast<uint32_t>(random() % ranks.size())))
        unmoved = 0;
    }
    return {};
  }

  uint32_t numWhole = 0, numLeft = 0;

private:
  bool turn(uint32_t r) {
    Driven &rank = ranks[r];
    if (rank.isFinished)
      return false;
    BlockContext &context = simulation.context(r, 0);
    if (!rank.driver)
      rank.driver.emplace(*simulation.binding(r).steps(0), simulation.invocation(r), context,
                          rank.target);
    const bool isFresh = context.instruction == 0 && context.tile == 0 && context.slice == 0;
    const uint32_t before = rank.driver->slices();
    const StepStatus status = rank.driver->advance(before + 1);
    rank.driver->ring();
    const bool moved = rank.driver->slices() != before;
    rank.isFinished = status == StepStatus::Finished;
    if (rank.isFinished) {
      numWhole += isFresh;
      EXPECT_EQ(rank.driver->context().tile, simulation.binding(r).program().numTiles);
      rank.driver.reset();
    } else if (leaves && random() % 4 == 0) {
      context = rank.driver->context();
      numLeft += rank.driver->slices() != 0;
      rank.driver.reset();
    }
    return moved;
  }

  Simulation &simulation;
  std::mt19937_64 random;
  const bool leaves;
  std::vector<Driven> ranks;
};

class Driver : public testing::TestWithParam<Protocol> {
protected:
  /// False if it has several thread blocks.
  bool check(plan::Plan plan, const SimulationOptions &options, uint64_t seed, bool leaves) {
    plan.protocol = GetParam();
    bool isChecked = false;
    Status status = checkCollective(plan, options, seed, [&](Simulation &simulation) {
      DrivenRanks ranks(simulation, seed, leaves);
      isChecked = ranks.haveOneBlock();
      if (!isChecked)
        return runRandomly(simulation, seed, 1);
      const uint32_t invocations = options.inPlace ? 1 : 5; // the first one changes the input
      for (uint32_t invocation = 0; invocation < invocations; ++invocation) {
        if (invocation != 0)
          simulation.next();
        if (Status run = ranks.runInvocation(); !run.ok())
          return run;
      }
      numWhole += ranks.numWhole;
      numLeft += ranks.numLeft;
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message() << "\n  " << plan.name << ", " << options.count
                             << " elements, seed " << seed;
    return isChecked;
  }

  uint32_t numWhole = 0, numLeft = 0;
};

TEST_P(Driver, ProgramsGiveTheReference) {
  for (bool leaves : {false, true}) {
    uint32_t numPrograms = 0;
    for (const NamedProgram &program : programs())
      for (uint32_t n : {2u, 3u, 8u})
        for (uint64_t count : {0, 1, 7, 14, 16, 33, 100, 224})
          numPrograms +=
              check(program.make(n), {.count = count, .misalignment = count % 3, .hostSteps = true},
                    count * 8 + n, leaves);
    EXPECT_GT(numPrograms, 20u);
    EXPECT_GT(numWhole, 100u);
    EXPECT_EQ(numLeft > 20, leaves) << numLeft;
  }
}

/// Small tiles and slices: a driver is left in the middle of a message.
TEST_P(Driver, TilesAndSlices) {
  for (const NamedProgram &program : programs())
    for (uint32_t n : {2u, 5u})
      for (uint64_t count : {64, 1500, 5003})
        for (uint32_t slices : {1u, 3u})
          for (bool refers : {false, true})
            check(program.make(n),
                  {.count = count,
                   .type = DataType::Int32,
                   .tiles = {1000, slices},
                   .misalignment = 4,
                   .referenceBytes = refers ? 1u : 0u,
                   .hostSteps = true},
                  count * 8 + n, true);
  EXPECT_GT(numLeft, 1000u);
}

TEST_P(Driver, AllTypesAndOperations) {
  for (unsigned type = 0; type < kNumDataTypes; ++type)
    for (unsigned op = 0; op < kNumReduceOps; ++op)
      for (uint64_t count : {5, 64})
        EXPECT_TRUE(
            check(plan::testing::oneShotAllReduce(4),
                  {.count = count, .type = DataType(type), .op = ReduceOp(op), .hostSteps = true},
                  type * 8 + op, true));
}

TEST_P(Driver, InPlace) {
  for (uint64_t count : {3, 16, 50})
    EXPECT_TRUE(check(plan::testing::oneShotAllReduce(3),
                      {.count = count, .inPlace = true, .hostSteps = true}, count, true));
}

/// So many operands that padded staging areas would have no room.
TEST_P(Driver, ManyOperands) {
  for (uint32_t n : {40u, 130u})
    for (uint64_t count : {1, 5, 60})
      EXPECT_TRUE(check(plan::testing::oneShotAllReduce(n), {.count = count, .hostSteps = true},
                        count + n, true));
}

/// None in lines, too much for a slice.
TEST_P(Driver, WhichIsNothingButLines) {
  auto isPlain = [](const plan::Plan &plan, uint64_t count) {
    auto binding = bind(plan, {.count = count, .hostSteps = true});
    EXPECT_TRUE(binding.ok()) << binding.status().message();
    return (*binding)->steps(0)->isPlain();
  };
  plan::Plan plan = plan::testing::oneShotAllReduce(2);
  EXPECT_FALSE(isPlain(plan, 16));
  plan.protocol = GetParam();
  EXPECT_EQ(isPlain(plan, 16), GetParam() != Protocol::Simple);
  EXPECT_EQ(isPlain(plan, 0), GetParam() != Protocol::Simple);
  EXPECT_FALSE(isPlain(plan, 100000));
}

INSTANTIATE_TEST_SUITE_P(Protocols, Driver,
                         testing::Values(Protocol::Simple, Protocol::LL, Protocol::LL128));

} // namespace
} // namespace occl::interpreter::conformance
