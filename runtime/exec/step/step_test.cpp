// One step at a time: what it waits for, that it stores nothing while it waits, what it publishes.
#include "runtime/exec/step/step.h"

#include "plan/model/builder.h"
#include "runtime/exec/conformance/simulation.h"
#include "runtime/sync/doorbell.h"

#include <gtest/gtest.h>

#include <cstring>

namespace occl::interpreter {
namespace {

using conformance::Simulation;
using plan::Opcode;

/// Rank 0 sends its input to rank 1, which adds it to its own; a second block of rank 1 copies the
/// sum from scratch to the output.
plan::Plan sendAndAdd(uint32_t depth) {
  plan::PlanBuilder builder;
  builder.header().depth = depth;
  uint32_t link = builder.addConnection(0, 0, {1});
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {plan::input(0, 0)},
                         {plan::connection(link)});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::RecvReduceCopy, .count = 1},
                         {plan::input(1, 0), plan::connection(link)}, {plan::scratch(1, 0)});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {plan::scratch(1, 0)},
                         {plan::output(1, 0)}, {{.threadBlock = 0, .instruction = 0}});
  return std::move(builder).take();
}

/// By the driver of hosts, or as on devices.
class Step : public testing::TestWithParam<bool> {
protected:
  StepResult run(uint32_t rank, uint32_t block, uint32_t maxSlices) {
    return simulation->run(rank, block, target, maxSlices);
  }
  /// Tiles of 32 elements.
  void start(uint32_t depth, uint64_t count, uint32_t slices = 1) {
    auto made = Simulation::make(
        sendAndAdd(depth),
        {.count = count, .type = DataType::Int32, .tiles = {128, slices}, .hostSteps = GetParam()});
    ASSERT_TRUE(made.ok()) << made.status().message();
    simulation = std::move(*made);
    for (uint32_t r = 0; r < 2; ++r)
      for (uint64_t i = 0; i < count; ++i) {
        int32_t value = static_cast<int32_t>(i * (r + 1));
        std::memcpy(simulation->input(r) + i * 4, &value, 4);
      }
  }
  StepResult step(uint32_t rank, uint32_t block) { return run(rank, block, 1); }
  uint64_t tail() { return word(&ConnectionEnd::tailOffset); }
  uint64_t head() { return word(&ConnectionEnd::headsOffset); }
  uint64_t word(uint64_t ConnectionEnd::*offset) {
    const Invocation &sender = simulation->invocation(0);
    return *reinterpret_cast<uint64_t *>(simulation->arena(0) + sender.program->ends[0].*offset);
  }
  static void expectBlocked(const StepResult &result, BlockReason reason, uint32_t what,
                            uint32_t peer) {
    EXPECT_EQ(result.status, StepStatus::Blocked);
    EXPECT_EQ(result.obstacle.reason, reason);
    EXPECT_EQ(result.obstacle.what, what);
    EXPECT_EQ(result.obstacle.peer, peer);
  }

  HostTarget target;
  std::unique_ptr<Simulation> simulation;
};

TEST_P(Step, NamesWhatItWaitsFor) {
  start(2, 10);
  expectBlocked(step(1, 0), BlockReason::Announce, 0, 0);
  simulation->announceAll();
  expectBlocked(step(1, 0), BlockReason::Data, 0, 0);
  expectBlocked(step(1, 1), BlockReason::Dependency, 0, 1);
  EXPECT_EQ(step(0, 0).slices, 1u);
  EXPECT_EQ(step(1, 0).slices, 1u);
  EXPECT_EQ(step(1, 1).slices, 1u);
  for (auto [rank, block] : {std::pair(0, 0), {1, 0}, {1, 1}})
    EXPECT_EQ(step(rank, block).status, StepStatus::Finished);
  int32_t last;
  std::memcpy(&last, simulation->output(1) + 9 * 4, 4);
  EXPECT_EQ(last, 27);
}

TEST_P(Step, SendsWithoutTheReceiverUntilTheSlotsAreFull) {
  start(2, 200);
  EXPECT_EQ(step(0, 0).slices, 1u);
  EXPECT_EQ(step(0, 0).slices, 1u);
  expectBlocked(step(0, 0), BlockReason::Credit, 0, 1);
  EXPECT_EQ(tail(), 2u);
  simulation->announceAll();
  EXPECT_EQ(step(1, 0).slices, 1u);
  EXPECT_EQ(head(), 1u);
  EXPECT_EQ(step(0, 0).slices, 1u);
  expectBlocked(step(0, 0), BlockReason::Credit, 0, 1);
}

/// All that a step could change: buffers, scratch, arenas with their control words, progress,
/// where the blocks stand.
std::string everything(Simulation &simulation) {
  std::string all;
  for (uint32_t r = 0; r < simulation.numRanks(); ++r) {
    const Binding &binding = simulation.binding(r);
    all.append(simulation.input(r), simulation.inputBytes(r));
    all.append(simulation.output(r), simulation.outputBytes(r));
    all.append(simulation.scratch(r), binding.scratchBytes());
    all.append(simulation.arena(r), binding.arenaBytes(r));
    all.append(simulation.invocation(r).places[kProgressPlace], binding.progressBytes());
    for (uint32_t b = 0; b < simulation.numBlocks(r); ++b) {
      const BlockContext &context = simulation.context(r, b);
      all += std::to_string(context.tile) + "." + std::to_string(context.instruction) + "." +
             std::to_string(context.slice) + ";";
    }
  }
  EXPECT_TRUE(simulation.intact());
  return all;
}

TEST_P(Step, ABlockedStepChangesNothing) {
  start(1, 64);
  for (uint32_t r = 0; r < 2; ++r)
    std::memset(simulation->output(r), 0x55, simulation->outputBytes(r));
  std::memset(simulation->scratch(1), 0x66, simulation->binding(1).scratchBytes());
  auto expectNothing = [&](uint32_t rank, uint32_t block, BlockReason reason) {
    std::string before = everything(*simulation);
    StepResult result = step(rank, block);
    EXPECT_EQ(result.status, StepStatus::Blocked);
    EXPECT_EQ(result.obstacle.reason, reason);
    EXPECT_TRUE(everything(*simulation) == before)
        << "block " << block << " of rank " << rank << ", reason " << static_cast<int>(reason);
  };
  expectNothing(1, 0, BlockReason::Announce);
  simulation->announceAll();
  expectNothing(1, 0, BlockReason::Data);
  expectNothing(1, 1, BlockReason::Dependency);
  EXPECT_EQ(step(0, 0).slices, 1u);
  expectNothing(0, 0, BlockReason::Credit);
  expectNothing(1, 1, BlockReason::Dependency);
}

TEST_P(Step, ReturnsNoCreditThatNobodyWaitsFor) {
  start(2, 96); // three tiles: only the first message's slot is used again
  simulation->announceAll();
  for (int tile = 0; tile < 3; ++tile) {
    EXPECT_EQ(step(0, 0).slices, 1u);
    EXPECT_EQ(step(1, 0).slices, 1u);
    EXPECT_EQ(head(), 1u);
  }
}

TEST_P(Step, CountsAllSlicesAtTheLastOne) {
  start(2, 2, 4); // two elements: one slice is enough
  simulation->announceAll();
  EXPECT_EQ(step(0, 0).slices, 1u);
  EXPECT_EQ(tail(), 4u);
  EXPECT_EQ(simulation->context(0, 0).tile, 1u);
}

TEST_P(Step, SendsSliceBySlice) {
  auto made = Simulation::make(
      sendAndAdd(1),
      {.count = 100, .type = DataType::Int32, .tiles = {512, 4}, .hostSteps = GetParam()});
  simulation = std::move(*made);
  for (uint64_t slice = 1; slice <= 3; ++slice) {
    EXPECT_EQ(step(0, 0).slices, 1u);
    EXPECT_EQ(tail(), slice);
    EXPECT_EQ(simulation->context(0, 0).slice, slice);
  }
}

TEST_P(Step, EmptyMessagesAreMessages) {
  start(2, 0);
  simulation->announceAll();
  expectBlocked(step(1, 0), BlockReason::Data, 0, 0);
  EXPECT_EQ(step(0, 0).slices, 1u);
  EXPECT_EQ(tail(), 1u);
  EXPECT_EQ(step(1, 0).slices, 1u);
}

TEST_P(Step, RunsUntilBlockedOrTheLimit) {
  start(4, 320);
  StepResult result = run(0, 0, 3);
  EXPECT_EQ(result.status, StepStatus::Progressed);
  EXPECT_EQ(result.slices, 3u);
  result = run(0, 0, 100);
  EXPECT_EQ(result.status, StepStatus::Blocked);
  EXPECT_EQ(result.slices, 1u);
}

/// Nobody sleeps on devices.
class HostStep : public Step {};

TEST_P(HostStep, RingsThoseWhoMayWaitForWhatItPublished) {
  start(1, 64);
  Doorbell bells[2];
  Doorbell *pointers[] = {&bells[0], &bells[1]};
  simulation->invocation(0).doorbells = simulation->invocation(1).doorbells = pointers;
  simulation->announceAll();
  for (Doorbell &bell : bells)
    bell.prepareSleep();
  step(0, 0);
  EXPECT_EQ(bells[1].word.load(), 1u); // data for rank 1
  EXPECT_EQ(bells[0].word.load(), 0u);
  bells[1].prepareSleep();
  step(1, 0);
  EXPECT_EQ(bells[0].word.load(), 1u); // credit for rank 0
  EXPECT_EQ(bells[1].word.load(), 2u); // and its own second block may go on
  bells[0].prepareSleep();
  step(0, 0);
  step(1, 0);
  EXPECT_EQ(bells[0].word.load(), 1u); // the last credit is nobody's
}

INSTANTIATE_TEST_SUITE_P(Hosts, HostStep, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Engines, Step, testing::Bool(),
                         [](const auto &info) { return info.param ? "OfHosts" : "OfDevices"; });

} // namespace
} // namespace occl::interpreter
