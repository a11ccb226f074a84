// Steps made ready give what the collective is defined to give, in any order, whenever they are
// made so.
#include "runtime/exec/step/ready_tables.h"

#include "plan/model/builder.h"
#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/executor.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/target_host.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace occl::interpreter::conformance {
namespace {

/// Random turns of random thread blocks to the end. `perStep` counts those that had to be made
/// ready step by step.
Status runTurns(Simulation &simulation, uint64_t seed, uint32_t maxSteps, uint32_t &perStep) {
  std::mt19937_64 random(seed);
  auto target = std::make_unique<HostTarget>();
  simulation.announceAll();
  std::vector<std::unique_ptr<Executor<HostTarget>>> open;
  for (uint32_t r = 0; r < simulation.numRanks(); ++r)
    for (uint32_t b = 0; b < simulation.numBlocks(r); ++b) {
      const auto wanted = Resolution((seed + r + b) % 3);
      open.push_back(
          std::make_unique<Executor<HostTarget>>(simulation, r, b, *target, wanted, b % 2 == 0));
      perStep += open.back()->resolution() != wanted;
    }
  for (uint64_t inVain = 0; !open.empty();) {
    std::swap(open[random() % open.size()], open.back());
    StepResult result = open.back()->run(maxSteps);
    inVain = result.slices == 0 && result.status == StepStatus::Blocked ? inVain + 1 : 0;
    if (inVain > 1000 * (open.size() + 1))
      return {StatusCode::Deadlock, "nothing moves"};
    if (result.status == StepStatus::Finished)
      open.pop_back();
  }
  return {};
}

/// Of a turn: few, or as far as it goes.
uint32_t mostSteps(uint64_t seed) { return seed % 4 == 0 ? ~0u : static_cast<uint32_t>(seed % 4); }

class Ready : public testing::TestWithParam<NamedProgram> {
protected:
  uint32_t perStep = 0;
};

/// Of one slice on one tile or several, or of several slices on either.
constexpr TilePolicy kTiles[] = {{1 << 30, 1}, {700, 1}, {1 << 30, 3}, {3000, 3}};

TEST_P(Ready, GivesTheReference) {
  uint64_t seed = std::random_device()();
  for (uint32_t ranks : {2u, 5u})
    for (uint64_t count : {uint64_t(1), uint64_t(3001)})
      for (Placement placement : {Placement::AtSource, Placement::AtDestination})
        for (uint32_t stepOperands : {0u, 64u})
          for (TilePolicy tiles : kTiles) {
            SimulationOptions options = {.count = count,
                                         .type = DataType::Int32,
                                         .inPlace = ranks == 5,
                                         .tiles = tiles,
                                         .placement = placement,
                                         .stepOperands = stepOperands};
            plan::Plan plan = GetParam().make(ranks);
            if (plan.uniformChunks)
              options.count = count * plan.partChunks;
            ++seed;
            Status status = checkCollective(plan, options, 5, [&](Simulation &simulation) {
              Status status = runTurns(simulation, seed, mostSteps(seed), perStep);
              // In place another invocation would fold results.
              for (uint32_t i = 0; i < 3 && status.ok() && !options.inPlace; ++i) {
                simulation.goOn();
                status = runTurns(simulation, seed + i, mostSteps(seed), perStep);
              }
              return status;
            });
            ASSERT_TRUE(status.ok())
                << status.message() << ", " << ranks << " ranks, seed " << seed << ", count "
                << count << ", messages of " << tiles.messageBytes << " bytes, "
                << tiles.slicesPerMessage << " slices, steps of " << stepOperands << " operands";
          }
  EXPECT_GT(perStep, 0u);
}

/// Messages of up to seven slices. Elements of a byte: chunks begin anywhere in a line.
TEST_P(Ready, GivesTheReferenceInLines) {
  uint64_t seed = std::random_device()();
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::LL128})
    for (uint32_t ranks : {2u, 3u})
      for (uint64_t count : {uint64_t(0), uint64_t(5), uint64_t(3001)})
        for (auto [placement, type, messageBytes] :
             {std::tuple(Placement::AtSource, DataType::Uint8, 1u << 30),
              std::tuple(Placement::AtDestination, DataType::Int32, 1u << 30),
              std::tuple(Placement::AtDestination, DataType::Int32, 2000u)}) {
          plan::Plan plan = GetParam().make(ranks);
          plan.protocol = protocol;
          SimulationOptions options = {
              .count = count, .type = type, .tiles = {messageBytes, 1}, .placement = placement};
          if (plan.uniformChunks)
            options.count = count * plan.partChunks;
          ++seed;
          Status status = checkCollective(plan, options, 5, [&](Simulation &simulation) {
            Status status;
            for (uint32_t i = 0; i < 6 && status.ok(); ++i) {
              if (i != 0)
                simulation.goOn();
              status = runTurns(simulation, seed + i, 1 + seed % 3, perStep);
            }
            return status;
          });
          ASSERT_TRUE(status.ok()) << status.message() << ", " << ranks << " ranks, seed " << seed
                                   << ", count " << count;
        }
  EXPECT_GT(perStep, 0u);
}

/// Of a message in more units than a step could have.
TEST(ReadyStep, TakesAMessageSliceBySlice) {
  plan::Plan plan = programs()[0].make(2);
  plan.protocol = plan::Protocol::LL;
  auto made = Simulation::make(plan, {.count = 2 * 8 * 65536 / 4, .type = DataType::Int32});
  ASSERT_TRUE(made.ok()) << made.status().message();
  Simulation &simulation = **made;
  simulation.announceAll();
  HostTarget target;
  Executor<HostTarget> first(simulation, 0, 0, target);
  ASSERT_EQ(first.resolution(), Resolution::PerStep);
  EXPECT_EQ(first.run(1).slices, 1u);
  EXPECT_EQ(simulation.context(0, 0).instruction, 0u);
  EXPECT_EQ(simulation.context(0, 0).slice, 1u);
  EXPECT_GT(first.run(100).slices, 1u);
}

/// Who depends on an instruction in another thread block waits for all slices of it.
TEST(ReadyStep, ProgressIsToldWithTheLastSlice) {
  plan::Plan plan = plan::testing::twoShotAllReduce(2);
  plan.protocol = plan::Protocol::LL;
  auto made = Simulation::make(
      plan, {.count = 2 * 8 * 65536 / 4, .type = DataType::Int32, .tiles = {1 << 30, 1}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  Simulation &simulation = **made;
  simulation.announceAll();
  HostTarget target;
  for (uint32_t b = 0; b < simulation.numBlocks(1); ++b)
    Executor<HostTarget>(simulation, 1, b, target).run(1000);
  const Program &program = *simulation.invocation(0).program;
  uint32_t numTold = 0, numSlices = 0;
  for (uint32_t b = 0; b < program.numBlocks; ++b) {
    if (!program.instructions[program.blocks[b].firstInstruction].published)
      continue;
    const auto *told = reinterpret_cast<const uint64_t *>(
        simulation.invocation(0).places[kProgressPlace] + b * kControlStride);
    Executor<HostTarget> executor(simulation, 0, b, target);
    ASSERT_EQ(executor.resolution(), Resolution::PerStep);
    const BlockContext &context = simulation.context(0, b);
    for (; context.tile == 0 && context.instruction == 0; ++numSlices) {
      ASSERT_EQ(*told, 0u) << "block " << b << ", slice " << context.slice;
      ASSERT_EQ(executor.run(1).slices, 1u);
    }
    EXPECT_EQ(*told, 1u);
    ++numTold;
  }
  EXPECT_GT(numTold, 0u);
  EXPECT_GT(numSlices, 10 * numTold);
}

TEST(ReadyStep, StoresNothingWhileItWaitsAndNamesWhatForAndGoesOnWhenItIsThere) {
  plan::Plan plan = programs()[0].make(2);
  auto made = Simulation::make(plan, {.count = 64, .type = DataType::Int32, .stepOperands = 64});
  ASSERT_TRUE(made.ok()) << made.status().message();
  Simulation &simulation = **made;
  simulation.announceAll();
  HostTarget target;
  Executor<HostTarget> first(simulation, 0, 0, target), second(simulation, 1, 0, target);
  ASSERT_EQ(first.resolution(), Resolution::PerTile);
  StepResult blocked = first.run(100);
  ASSERT_EQ(blocked.status, StepStatus::Blocked);
  EXPECT_EQ(blocked.obstacle.reason, BlockReason::Data);
  EXPECT_EQ(blocked.obstacle.peer, 1u);
  const std::string output(simulation.output(0), simulation.outputBytes(0));
  const BlockContext before = simulation.context(0, 0);
  EXPECT_EQ(first.run(100).slices, 0u);
  EXPECT_EQ(simulation.context(0, 0).instruction, before.instruction);
  EXPECT_EQ(output, std::string(simulation.output(0), simulation.outputBytes(0)));
  EXPECT_GT(second.run(100).slices, 0u);
  EXPECT_GT(first.run(100).slices, 0u);
}

/// Of the first thread block of rank 1, in parts of `count` bytes.
ReadyBlockTables tablesOf(plan::Plan plan, uint64_t count, TilePolicy tiles, uint64_t aloneBytes,
                          bool &isMeasured) {
  auto made = Simulation::make(plan, {.count = count, .type = DataType::Uint8, .tiles = tiles});
  EXPECT_TRUE(made.ok()) << made.status().message();
  const Program &program = (*made)->binding(1).program();
  ReadyBlockTables tables = makeReadyTables(program, 0);
  isMeasured = measureBeforehand(program, 16, aloneBytes, tables);
  return tables;
}

/// The part of rank 1 is the second one of the output, which its neighbour's size aligns.
TEST(ReadyTables, AreMeasuredBeforehandWithWhatChunksAreAlignedTo) {
  for (auto [count, misalignment] : {std::pair{1000u, 8u}, std::pair{1024u, 0u}}) {
    bool isMeasured = false;
    ReadyBlockTables tables =
        tablesOf(plan::testing::ringAllGather(2), count, {1 << 30, 1}, 999, isMeasured);
    EXPECT_TRUE(isMeasured);
    uint32_t bits = 0;
    for (const ReadyStep &step : tables.steps)
      EXPECT_FALSE(step.isAlone);
    for (const FoldPiece &piece : tables.pieces) {
      EXPECT_EQ(piece.elements, count);
      bits |= piece.misalignment;
    }
    EXPECT_EQ(bits, misalignment);
  }
}

TEST(ReadyTables, AreNotMeasuredBeforehandWhereThatIsNotKnown) {
  plan::Plan plan = plan::testing::ringAllGather(2);
  bool isMeasured = true;
  tablesOf(plan, 1000, {1 << 30, 1}, 1000, isMeasured);
  EXPECT_FALSE(isMeasured) << "so little may be folded alone";
  tablesOf(plan, 1000, {100, 1}, 0, isMeasured);
  EXPECT_FALSE(isMeasured) << "several tiles";
  plan.protocol = plan::Protocol::LL;
  tablesOf(plan, 1000, {1 << 30, 1}, 0, isMeasured);
  EXPECT_FALSE(isMeasured) << "lines";
}

/// However many slices there are: a table is no larger for a larger count.
TEST(ReadyTables, HaveOneStepForAllSlicesOfAnInstruction) {
  plan::Plan plan = plan::testing::ringAllGather(3);
  plan.protocol = plan::Protocol::LL;
  bool isMeasured = false;
  const ReadyBlockTables one = tablesOf(plan, 64, {1 << 30, 1}, 0, isMeasured),
                         many = tablesOf(plan, 90'000, {1 << 30, 1}, 0, isMeasured);
  EXPECT_FALSE(one.isPerStep);
  EXPECT_TRUE(many.isPerStep);
  EXPECT_EQ(many.steps.size(), many.numInstructions);
  EXPECT_EQ(many.pieces.size(), one.pieces.size());
  EXPECT_EQ(many.sources.size(), one.sources.size());
}

/// Through scratch, where each chunk has a place of its own.
TEST(ReadyTables, HaveAPieceForEachChunkThatDoesNotLieBesideTheOthers) {
  constexpr uint32_t kRanks = 3;
  bool isMeasured = false;
  const ReadyBlockTables tables =
      tablesOf(aggregatedAllReduce(kRanks), 1000, {1 << 30, 1}, 0, isMeasured);
  ASSERT_EQ(tables.numInstructions, 2u);
  const ReadyStep &send = tables.steps[0], &fold = tables.steps[1];
  EXPECT_FALSE(send.isScattered);
  EXPECT_EQ(send.numPieces, 1u);
  ASSERT_TRUE(fold.isScattered);
  ASSERT_EQ(fold.numPieces, kRanks);
  uint64_t elements = 0;
  for (uint32_t p = 0; p < kRanks; ++p) {
    const FoldPiece &piece = tables.pieces[fold.firstPiece + p];
    EXPECT_EQ(piece.numSources, kRanks);
    const ReadySource *sources = tables.sources.data() + piece.firstPointer;
    for (uint32_t s = 0; s < kRanks; ++s) // own input, or a message
      EXPECT_EQ(sources[s].offset % 128, sources[s].placeAndKind % 2 != 0 ? elements % 128 : 0);
    EXPECT_EQ(sources[kRanks].offset, p * 384) << "scratch";
    elements += piece.allElements;
  }
  EXPECT_EQ(elements, 1000u);
}

/// Writes down when data moves, when words are stored, and when somebody waits.
class Recorder : public HostTarget {
public:
  void beginFold(const Program &program, const ReadyStep &step, const FoldPiece *pieces,
                 const ReadyWord *words) {
    events += 'f';
    HostTarget::beginFold(program, step, pieces, words);
  }
  void endFold() { events += 'e'; }
  bool arrived(const ReadyWord *words, uint32_t first, uint32_t number, uint32_t &missing) {
    events += 'w';
    return HostTarget::arrived(words, first, number, missing);
  }
  void release(uint64_t *word, uint64_t value) {
    events += 'r';
    HostTarget::release(word, value);
  }
  bool foldReady(const Program &program, const ReadyStep &step, const FoldPiece *pieces,
                 const ReadyWord *words, uint32_t &missing) {
    events += 'f';
    return HostTarget::foldReady(program, step, pieces, words, missing);
  }
  std::string events;
};

/// What a sender of four tiles does until it finds no room.
std::string eventsOfSender(uint32_t depth, bool overlaps) {
  plan::PlanBuilder builder;
  builder.header().name = "send";
  builder.header().collective = "sendrecv";
  builder.header().depth = depth;
  uint32_t wire = builder.addConnection(0, 0, {1});
  for (uint32_t r : {0u, 1u}) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1});
    builder.beginThreadBlock();
    if (r == 0)
      builder.addInstruction({.opcode = plan::Opcode::Send, .count = 1}, {plan::input(0, 0)},
                             {plan::connection(wire)});
    else
      builder.addInstruction({.opcode = plan::Opcode::Recv, .count = 1}, {plan::connection(wire)},
                             {plan::output(1, 0)});
  }
  auto made = Simulation::make(std::move(builder).take(),
                               {.count = 4 * 256, .type = DataType::Int32, .tiles = {256 * 4, 1}});
  EXPECT_TRUE(made.ok()) << made.status().message();
  Simulation &simulation = **made;
  simulation.announceAll();
  Recorder recorder;
  Executor<Recorder> sender(simulation, 0, 0, recorder,
                            overlaps ? Resolution::Overlapped : Resolution::PerTile);
  sender.run(100);
  return recorder.events;
}

TEST(ReadyStep, StoresReleasesWhileTheNextDataMoves) {
  EXPECT_EQ(eventsOfSender(4, true), "fefrefrefrer");
  EXPECT_EQ(eventsOfSender(4, false), "frfrfrfr");
}

TEST(ReadyStep, StoresReleasesBeforeItWaits) {
  EXPECT_EQ(eventsOfSender(2, true), "wfefrerw");
  EXPECT_EQ(eventsOfSender(2, false), "wfrwfrw");
}

INSTANTIATE_TEST_SUITE_P(Programs, Ready, testing::ValuesIn(programs().begin(), programs().end()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace occl::interpreter::conformance
