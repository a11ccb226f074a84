// The result is a function of the plan and the inputs, not of who runs when.
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"

#include <gtest/gtest.h>

#include <random>

namespace occl::interpreter::conformance {
namespace {

using namespace std::chrono_literals;

class Schedule : public testing::TestWithParam<NamedProgram> {};

constexpr SimulationOptions optionsFor(DataType type) {
  return {.count = 3001, .type = type, .op = ReduceOp::Avg, .tiles = {700, 2}};
}

TEST_P(Schedule, AnyOrderOfStepsGivesTheSameBytes) {
  plan::Plan plan = GetParam().make(5);
  uint64_t seed = std::random_device()();
  for (DataType type : {DataType::Float32, DataType::Float16, DataType::Bfloat16}) {
    std::string first;
    for (uint64_t round = 0; round < 8; ++round) {
      uint32_t maxSlices = round % 2 == 0 ? 1 : 1000;
      auto outputs = runOnArbitraryNumbers(plan, optionsFor(type), 7, [&](Simulation &simulation) {
        return runRandomly(simulation, seed + round, maxSlices);
      });
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      if (round == 0)
        first = *outputs;
      ASSERT_TRUE(*outputs == first) << nameOf(type) << ", seed " << seed + round << ", at most "
                                     << maxSlices << " slices a turn";
    }
  }
}

TEST_P(Schedule, AllRanksOfAnAllReduceHaveTheSameBytes) {
  plan::Plan plan = GetParam().make(8);
  if (plan.collective != "allreduce")
    return;
  for (DataType type : {DataType::Float32, DataType::Float16, DataType::Float64}) {
    auto outputs = runOnArbitraryNumbers(plan, optionsFor(type), 11, [](Simulation &simulation) {
      return runRandomly(simulation, 12, 4);
    });
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    size_t bytes = outputs->size() / 8;
    for (unsigned r = 1; r < 8; ++r)
      ASSERT_EQ(outputs->substr(r * bytes, bytes), outputs->substr(0, bytes)) << "rank " << r;
  }
}

TEST_P(Schedule, ThreadsGiveTheReference) {
  for (uint32_t ranks : {2u, 4u}) {
    plan::Plan plan = GetParam().make(ranks);
    for (Placement placement : {Placement::AtSource, Placement::AtDestination}) {
      SimulationOptions options = {
          .count = 20011, .type = DataType::Int32, .tiles = {2000, 1}, .placement = placement};
      Status status = checkCollective(
          plan, options, 3, [](Simulation &simulation) { return runInThreads(simulation, 60s); });
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Schedule,
                         testing::ValuesIn(programs().begin(), programs().end()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(Driver, ReportsADeadlock) {
  plan::Plan plan = aggregatedAllReduce(2);
  for (uint32_t b : {0u, 2u}) { // both ranks receive before they send
    uint32_t first = plan.threadBlocks[b].firstInstruction;
    std::swap(plan.instructions[first], plan.instructions[first + 1]);
  }
  auto simulation = Simulation::make(plan, {.count = 10});
  ASSERT_TRUE(simulation.ok());
  Status status = runRandomly(**simulation, 1, 1);
  EXPECT_EQ(status.code(), StatusCode::Deadlock);
}

} // namespace
} // namespace occl::interpreter::conformance
