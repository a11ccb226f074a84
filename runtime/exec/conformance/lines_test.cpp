// Protocols LL and LL128: every program gives the reference's bytes, with the lines of hosts and of
// devices, and in memory that holds the lines of earlier invocations.
#include "plan/model/builder.h"
#include "plan/model/limits.h"
#include "plan/model/names.h"
#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/step_driver.h"
#include "runtime/exec/host/target_host.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

namespace occl::interpreter::conformance {
namespace {

using namespace std::chrono_literals;
using plan::Protocol;

constexpr Protocol kProtocols[] = {Protocol::LL, Protocol::LL128};
/// Those of hosts and devices, and one that makes many slices of a message.
constexpr LinePolicy kPolicies[] = {{}, kDeviceLines, {64, 48, 32 << 10}};

plan::Plan make(const NamedProgram &program, uint32_t ranks, Protocol protocol) {
  plan::Plan plan = program.make(ranks);
  plan.protocol = protocol;
  return plan;
}

class Lines : public testing::TestWithParam<NamedProgram> {
protected:
  /// On hosts, and as devices have it: all ranks, or every second one.
  void check(uint32_t ranks, const SimulationOptions &given, uint64_t seed) {
    for (Protocol protocol : kProtocols) {
      plan::Plan plan = make(GetParam(), ranks, protocol);
      for (const LinePolicy &policy : kPolicies)
        for (auto [placement, hostSteps] :
             {std::pair(Placement::AtSource, true), std::pair(Placement::AtDestination, true),
              std::pair(Placement::AtDestination, false)}) {
          SimulationOptions options = given;
          options.lines = policy;
          options.placement = placement;
          options.hostSteps = hostSteps;
          options.mixesSteps = !hostSteps && seed % 2 != 0;
          Status status = checkCollective(plan, options, seed, [&](Simulation &simulation) {
            return runRandomly(simulation, seed, 3);
          });
          ASSERT_TRUE(status.ok())
              << status.message() << "\n  " << ranks << " ranks, " << options.count
              << " elements of " << nameOf(options.type) << ", " << nameOf(options.op) << ", "
              << nameOf(protocol) << ", lines of " << policy.wideLineBytes
              << (hostSteps            ? ", on hosts"
                  : options.mixesSteps ? ", on both"
                                       : "")
              << ", seed " << seed;
        }
    }
  }
};

TEST_P(Lines, AllTypesAndOperations) {
  for (unsigned type = 0; type < kNumDataTypes; ++type)
    for (unsigned op = 0; op < kNumReduceOps; ++op)
      ASSERT_NO_FATAL_FAILURE(check(
          3, {.count = 307, .type = DataType(type), .op = ReduceOp(op), .tiles = {1000, 1}}, type));
}

TEST_P(Lines, AwkwardCounts) {
  for (uint32_t ranks : {1u, 2u, 8u})
    for (uint64_t count : {0, 1, 13, 14, 15, 64, 4999})
      for (DataType type : {DataType::Float32, DataType::Uint8})
        ASSERT_NO_FATAL_FAILURE(check(
            ranks, {.count = count, .type = type, .tiles = {4000, 1}, .misalignment = 1}, count));
}

/// What fits into a slice on one tile, where several instructions are one step: sent, received,
/// reduced, passed on, in and out of place.
TEST_P(Lines, SeveralInstructionsAStep) {
  for (uint32_t ranks : {1u, 3u, 5u})
    for (bool inPlace : {false, true}) {
      const plan::Plan plan = GetParam().make(ranks);
      if (inPlace ? !plan.inPlace || GetParam().name == std::string("shift") : !plan.outOfPlace)
        continue; // the reference of a shift in place has its input nowhere to look up
      for (uint64_t count : {0, 1, 15, 200})
        for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg})
          ASSERT_NO_FATAL_FAILURE(check(
              ranks, {.count = count, .op = op, .inPlace = inPlace, .misalignment = count % 4},
              count));
    }
}

TEST_P(Lines, FlagsOfEarlierInvocationsAreTakenForNothing) {
  for (Protocol protocol : kProtocols) {
    plan::Plan plan = make(GetParam(), 3, protocol);
    auto status = checkCollective(
        plan, {.count = 1501, .type = DataType::Int32, .tiles = {1000, 1}, .hostSteps = true}, 7,
        [&](Simulation &simulation) {
          for (uint64_t invocation = 0; invocation < 5; ++invocation) {
            if (invocation != 0)
              simulation.next();
            if (Status run = runRandomly(simulation, invocation, 2); !run.ok())
              return run;
          }
          return Status();
        });
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

TEST_P(Lines, ThreadsGiveTheReference) {
  for (Protocol protocol : kProtocols) {
    plan::Plan plan = make(GetParam(), 4, protocol);
    for (Placement placement : {Placement::AtSource, Placement::AtDestination}) {
      SimulationOptions options = {.count = 9011,
                                   .type = DataType::Int32,
                                   .tiles = {2000, 1},
                                   .placement = placement,
                                   .hostSteps = true};
      Status status = checkCollective(
          plan, options, 3, [](Simulation &simulation) { return runInThreads(simulation, 60s); });
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Lines, testing::ValuesIn(programs().begin(), programs().end()),
                         [](const auto &info) { return std::string(info.param.name); });

class LineSteps : public testing::TestWithParam<Protocol> {
protected:
  /// Two ranks that send each other a few lines of LL128 and add.
  void SetUp() override {
    plan::Plan plan = aggregatedAllReduce(2);
    plan.protocol = GetParam();
    simulation = std::move(
        *Simulation::make(plan, {.count = 64, .type = DataType::Int32, .hostSteps = true}));
    simulation->announceAll();
    std::memset(simulation->input(0), 1, simulation->inputBytes(0));
    std::memset(simulation->input(1), 2, simulation->inputBytes(1));
  }
  StepResult step(uint32_t rank) {
    return runOnHost(simulation->invocation(rank), *simulation->binding(rank).steps(0),
                     simulation->context(rank, 0), target, 1);
  }
  char *lines(uint32_t rank) { return simulation->arena(rank); }

  HostTarget target;
  std::unique_ptr<Simulation> simulation;
};

TEST_P(LineSteps, ASliceIsThereWhenAllItsLinesAre) {
  ASSERT_EQ(simulation->binding(0).counterBytes(0), 0u) << "neither tails nor heads";
  uint64_t bytes = simulation->binding(0).controlBytes(0);
  ASSERT_EQ(step(0).status, StepStatus::Progressed);
  ASSERT_EQ(step(1).status, StepStatus::Progressed);
  std::string whole(lines(0), bytes);
  // The last line that has been written.
  uint64_t used = whole.find_last_not_of('\0') + 1;
  ASSERT_GT(used, 64u);
  for (uint64_t kept = 0; kept < used; kept += 8) {
    std::memset(lines(0), 0, bytes);
    std::memcpy(lines(0), whole.data(), kept);
    StepResult result = step(1);
    if (kept + 8 < used || result.status == StepStatus::Blocked) {
      ASSERT_EQ(result.status, StepStatus::Blocked) << kept << " bytes of " << used;
      EXPECT_EQ(result.obstacle.reason, BlockReason::Data);
      EXPECT_EQ(result.obstacle.peer, 0u);
    }
  }
  std::memcpy(lines(0), whole.data(), bytes);
  ASSERT_EQ(step(1).status, StepStatus::Progressed);
  int32_t sum;
  std::memcpy(&sum, simulation->scratch(1), 4);
  EXPECT_EQ(sum, 0x03030303);
}

/// Three ranks: what the first one sends is one step, what it receives another one.
TEST_P(LineSteps, AStepOfSeveralStoresNothingBeforeAllIsThereAndNamesWhatIsMissing) {
  plan::Plan plan = plan::testing::allToAll(3);
  plan.protocol = GetParam();
  auto made = Simulation::make(plan, {.count = 6, .type = DataType::Int32, .hostSteps = true});
  ASSERT_TRUE(made.ok()) << made.status().message();
  Simulation &ranks = **made;
  auto run = [&](uint32_t rank) {
    return runOnHost(ranks.invocation(rank), *ranks.binding(rank).steps(0), ranks.context(rank, 0),
                     target, 100);
  };
  auto waiting = [&](const Obstacle &obstacle) {
    return waitingInstruction(ranks.binding(0).program(), 0, ranks.context(0, 0).instruction,
                              obstacle);
  };
  const StepResult unknown = run(0);
  EXPECT_EQ(unknown.obstacle.reason, BlockReason::Announce);
  EXPECT_GT(unknown.slices, 1u) << "all that it sends";
  ranks.announceAll();
  const uint32_t first = ranks.context(0, 0).instruction;
  const StepResult nothing = run(0);
  ASSERT_EQ(nothing.status, StepStatus::Blocked);
  EXPECT_EQ(nothing.obstacle.reason, BlockReason::Data);
  const uint32_t before = nothing.obstacle.peer, other = 3 - before;
  const uint32_t waitsFirst = waiting(nothing.obstacle);
  run(before);
  const std::string output(ranks.output(0), ranks.outputBytes(0));
  const StepResult half = run(0);
  ASSERT_EQ(half.status, StepStatus::Blocked);
  EXPECT_EQ(half.slices, 0u);
  EXPECT_EQ(half.obstacle.peer, other);
  EXPECT_NE(waiting(half.obstacle), waitsFirst);
  EXPECT_EQ(ranks.context(0, 0).instruction, first);
  EXPECT_EQ(output, std::string(ranks.output(0), ranks.outputBytes(0)));
  run(other);
  const StepResult all = run(0);
  EXPECT_EQ(all.status, StepStatus::Finished);
  EXPECT_GT(all.slices, 1u);
}

TEST_P(LineSteps, SlicesFitTheStagingAreas) {
  for (uint32_t ranks : {2u, 64u, 700u}) {
    plan::Plan plan = aggregatedAllReduce(ranks);
    plan.protocol = GetParam();
    auto bound = bind(plan, {.count = 100000});
    ASSERT_TRUE(bound.ok());
    const Program &program = (*bound)->program();
    EXPECT_LE(program.maxOperands * program.stageStride, LinePolicy().stageBytes);
    for (uint32_t b = 0; b < program.numBlocks; ++b)
      for (uint32_t i = 0; i < program.blocks[b].numInstructions; ++i)
        EXPECT_LE(program.instructions[program.blocks[b].firstInstruction + i].sliceElements *
                      program.elementBytes,
                  program.stageStride);
  }
}

/// Rank 1 sends its input over as many connections as an instruction of rank 0 may fold.
plan::Plan foldOfMostOperands() {
  constexpr uint32_t kSources = plan::limits::kMaxOperands - 1;
  plan::PlanBuilder builder;
  builder.header().name = "most_operands";
  builder.header().partChunks = 1;
  std::vector<plan::Operand> sources;
  for (uint32_t channel = 0; channel < kSources; ++channel)
    sources.push_back(plan::connection(builder.addConnection(1, channel, {0})));
  const plan::Operand sum = plan::output(0, 0);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = plan::Opcode::RecvReduceCopy, .count = 1}, sources,
                         std::span(&sum, 1));
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  for (const plan::Operand &source : sources)
    builder.addInstruction({.opcode = plan::Opcode::Send, .count = 1}, {plan::input(1, 0)},
                           {source});
  return std::move(builder).take();
}

TEST_P(LineSteps, TheMostOperandsFitTheStagingAreas) {
  plan::Plan plan = foldOfMostOperands();
  plan.protocol = GetParam();
  auto made = Simulation::make(plan, {.count = 9, .type = DataType::Int32, .hostSteps = true});
  ASSERT_TRUE(made.ok()) << made.status().message();
  Simulation &ranks = **made;
  const Program &program = ranks.binding(0).program();
  ASSERT_EQ(program.maxOperands, plan::limits::kMaxOperands);
  ASSERT_LE(program.maxOperands * program.stageStride, HostTarget::kStageRoom);
  std::memset(ranks.input(1), 1, ranks.inputBytes(1));
  const Status run = runRandomly(ranks, 1, 1);
  ASSERT_TRUE(run.ok()) << run.message();
  for (uint32_t i = 0; i < 9; ++i) {
    uint32_t sum;
    std::memcpy(&sum, ranks.output(0) + i * sizeof sum, sizeof sum);
    EXPECT_EQ(sum, 0x01010101u * (plan::limits::kMaxOperands - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, LineSteps, testing::ValuesIn(kProtocols),
                         [](const auto &info) { return std::string(plan::nameOf(info.param)); });

} // namespace
} // namespace occl::interpreter::conformance
