// What the tables of straight blocks say gives what the collective is defined to give, also in
// memory that holds the lines of earlier invocations, and on some ranks beside blocks that are
// interpreted.
#include "runtime/exec/step/straight_tables.h"

#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/exec/step/step.h"
#include "runtime/exec/step/straight.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace occl::interpreter::conformance {
namespace {

using plan::Protocol;

/// Executes a straight block step by step, as a device does, but for the threads.
class StraightBlock {
public:
  StraightBlock(const Invocation &invocation, StraightTables tables)
      : invocation(invocation), program(*invocation.program), tables(std::move(tables)) {}

  bool isFinished() const { return next == tables.steps.size(); }
  /// False: a line has not come, and nothing was done.
  bool step(HostTarget &target) {
    const StraightStep &step = tables.steps[next];
    for (uint32_t p = 0; p < step.numPieces; ++p)
      if (!hasArrived(tables.pieces[step.firstPiece + p]))
        return false;
    for (uint32_t p = 0; p < step.numPieces; ++p)
      fold(tables.pieces[step.firstPiece + p], target);
    ++next;
    return true;
  }

private:
  const StraightOperand &operandOf(const StraightPiece &piece, uint32_t i) const {
    return tables.operands[piece.firstOperand + i];
  }
  char *addressOf(const StraightOperand &operand) const {
    return invocation.places[operand.place] + operand.offsetAfter(invocation.firstTile);
  }
  bool hasArrived(const StraightPiece &piece) const {
    for (uint32_t s = 0; s < piece.numSources; ++s) {
      const StraightOperand &source = operandOf(piece, s);
      if (source.isLines() && !lines::arrived(program.line, addressOf(source), piece.bytes,
                                              source.flagAfter(invocation.firstTile)))
        return false;
    }
    return true;
  }
  void fold(const StraightPiece &piece, HostTarget &target) const {
    uint32_t number = piece.numSources + piece.numDestinations;
    std::vector<std::vector<char>> data(number, std::vector<char>(piece.bytes + 16u));
    for (uint32_t i = 0; i < number; ++i) {
      const StraightOperand &operand = operandOf(piece, i);
      target.pointers()[i] = operand.isLines() ? data[i].data() : addressOf(operand);
      if (operand.isLines() && i < piece.numSources)
        lines::unpack(program.line, addressOf(operand), data[i].data(), piece.bytes);
    }
    target.fold(program, piece.numSources, piece.numDestinations,
                piece.bytes / program.elementBytes, piece.divisor);
    for (uint32_t i = piece.numSources; i < number; ++i)
      if (const StraightOperand &operand = operandOf(piece, i); operand.isLines())
        lines::pack(program.line, data[i].data(), addressOf(operand), piece.bytes,
                    operand.flagAfter(invocation.firstTile));
  }

  const Invocation &invocation;
  const Program &program;
  const StraightTables tables;
  size_t next = 0;
};

BindRequest requestFor(const SimulationOptions &options, uint32_t rank) {
  BindRequest request;
  request.rank = rank;
  request.count = options.count;
  request.type = options.type;
  request.op = options.op;
  request.tiles = options.tiles;
  request.placement = options.placement;
  request.lines = options.lines;
  request.stepOperands = 64;
  request.lineStepBytes = kMaxStraightStepBytes;
  return request;
}

/// A thread block, straight if it can be and `maybe` so.
class Executor {
public:
  Executor(Simulation &simulation, const Program &grouped, uint32_t rank, uint32_t index,
           bool maybe)
      : invocation(simulation.invocation(rank)), context(simulation.context(rank, index)),
        index(index) {
    auto tables = makeStraightTables(grouped, index);
    if (tables && maybe)
      block.emplace(invocation, std::move(*tables));
  }
  bool isStraight() const { return block.has_value(); }
  bool isFinished() const { return block ? block->isFinished() : finished; }
  bool step(HostTarget &target) {
    if (block)
      return block->step(target);
    StepResult result = runBlock(invocation, index, context, target, 1);
    finished = result.status == StepStatus::Finished;
    return result.slices != 0 || finished;
  }

private:
  const Invocation &invocation;
  BlockContext &context;
  const uint32_t index;
  bool finished = false;
  std::optional<StraightBlock> block;
};

/// Random turns of random thread blocks to the end. `straight` counts those that were.
Status runTurns(Simulation &simulation, const plan::Plan &plan, const SimulationOptions &options,
                uint64_t seed, uint32_t &straight) {
  std::mt19937_64 random(seed);
  auto target = std::make_unique<HostTarget>();
  simulation.announceAll();
  std::vector<std::shared_ptr<const Binding>> grouped;
  std::vector<std::unique_ptr<Executor>> open;
  for (uint32_t r = 0; r < simulation.numRanks(); ++r) {
    auto bound = bind(plan, requestFor(options, r));
    if (!bound.ok())
      return bound.status();
    grouped.push_back(*bound);
    for (uint32_t b = 0; b < simulation.numBlocks(r); ++b) {
      open.push_back(std::make_unique<Executor>(simulation, grouped[r]->program(), r, b,
                                                r == 0 || seed % 3 != 0));
      straight += open.back()->isStraight();
    }
  }
  for (uint64_t inVain = 0; !open.empty();) {
    std::swap(open[random() % open.size()], open.back());
    inVain = open.back()->step(*target) ? 0 : inVain + 1;
    if (inVain > 1000 * (open.size() + 1))
      return {StatusCode::Deadlock, "nothing moves"};
    if (open.back()->isFinished())
      open.pop_back();
  }
  return {};
}

class Straight : public testing::TestWithParam<NamedProgram> {};

TEST_P(Straight, GivesTheReference) {
  uint64_t seed = std::random_device()();
  for (Protocol protocol : {Protocol::LL, Protocol::LL128})
    for (uint32_t ranks : {2u, 5u})
      for (uint64_t count : {1, 61, 907, 2011})
        for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max}) {
          plan::Plan plan = GetParam().make(ranks);
          plan.protocol = protocol;
          SimulationOptions options = {.count =
                                           plan.uniformChunks ? count * plan.partChunks : count,
                                       .type = DataType::Int32,
                                       .op = op,
                                       .inPlace = op == ReduceOp::Max,
                                       .tiles = {4 << 20, 1},
                                       .placement = Placement::AtDestination,
                                       .lines = kDeviceLines,
                                       .misalignment = 4};
          ++seed;
          uint32_t straight = 0;
          Status status = checkCollective(plan, options, 5, [&](Simulation &simulation) {
            Status status = runTurns(simulation, plan, options, seed, straight);
            // In place another invocation would fold results.
            for (uint32_t i = 1; i < 7 && status.ok() && !options.inPlace; ++i) {
              simulation.goOn();
              status = runTurns(simulation, plan, options, seed + i, straight);
            }
            return status;
          });
          ASSERT_TRUE(status.ok()) << status.message() << ", " << ranks << " ranks, seed " << seed
                                   << ", count " << options.count;
        }
}

INSTANTIATE_TEST_SUITE_P(Programs, Straight,
                         testing::ValuesIn(programs().begin(), programs().end()),
                         [](const auto &info) { return std::string(info.param.name); });

std::optional<StraightTables> tablesOf(plan::Plan plan, Protocol protocol, uint64_t count,
                                       TilePolicy tiles = {4 << 20, 1}) {
  plan.protocol = protocol;
  auto bound = bind(plan, requestFor({.count = count,
                                      .tiles = tiles,
                                      .placement = Placement::AtDestination,
                                      .lines = kDeviceLines},
                                     0));
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  return bound.ok() ? makeStraightTables((*bound)->program(), 0) : std::nullopt;
}

TEST(StraightTables, SendToAllIsOneStepAndFoldAnother) {
  auto tables = tablesOf(plan::testing::oneShotAllReduce(4), Protocol::LL, 64);
  ASSERT_TRUE(tables);
  ASSERT_EQ(tables->steps.size(), 2u);
  const StraightPiece &send = tables->pieces[tables->steps[0].firstPiece],
                      &fold = tables->pieces[tables->steps[1].firstPiece];
  EXPECT_EQ(send.numSources, 1);
  EXPECT_EQ(send.numDestinations, 3);
  EXPECT_EQ(send.bytes, 256);
  EXPECT_EQ(send.units, 32);
  EXPECT_EQ(tables->numThreads, 32u);
  EXPECT_EQ(fold.numSources, 4);
  EXPECT_EQ(fold.numDestinations, 1);
  EXPECT_EQ(tables->steps[1].instruction, 1);
}

TEST(StraightTables, PiecesOfAStepHaveUnitsOfTheirOwn) {
  auto tables = tablesOf(plan::testing::allToAll(4), Protocol::LL128, 4 * 100);
  ASSERT_TRUE(tables);
  bool isGrouped = false;
  for (const StraightStep &step : tables->steps) {
    isGrouped |= step.numPieces > 1;
    for (uint32_t thread = 0; thread < 2 * kMaxStraightUnits; ++thread)
      EXPECT_EQ(thread * step.reciprocal >> 22, thread / step.unitsEach);
    for (uint32_t p = 0; p < step.numPieces; ++p)
      EXPECT_LE(tables->pieces[step.firstPiece + p].units, step.unitsEach);
  }
  EXPECT_TRUE(isGrouped);
}

/// Of 3,840 bytes, one beside the other, in the slots and with the flags of their message.
TEST(StraightTables, EverySliceIsAPiece) {
  auto tables = tablesOf(plan::testing::oneShotAllReduce(4), Protocol::LL128, 2000);
  ASSERT_TRUE(tables);
  ASSERT_EQ(tables->steps.size(), 2u);
  const StraightStep &send = tables->steps[0], &fold = tables->steps[1];
  ASSERT_EQ(send.numPieces, 3);
  ASSERT_EQ(fold.numPieces, 3);
  EXPECT_EQ(send.maxSources, 1);
  EXPECT_EQ(fold.maxSources, 4);
  EXPECT_EQ(send.unitsEach, 256);
  EXPECT_EQ(tables->numThreads, kMaxStraightThreads);
  for (uint32_t p = 0; p < 3; ++p) {
    const StraightPiece &piece = tables->pieces[send.firstPiece + p];
    const StraightOperand &from = tables->operands[piece.firstOperand],
                          &to = tables->operands[piece.firstOperand + 1];
    EXPECT_EQ(piece.bytes, p < 2 ? 3840 : 320);
    EXPECT_EQ(from.offsetAfter(0), p * 3840);
    EXPECT_EQ(to.flagAfter(0), p + 1);
    EXPECT_EQ(to.flagAfter(5), 5 * 3 + p + 1);
  }
}

TEST(StraightTables, WhatHasControlWordsOrTilesOrTooManyUnitsIsNotStraight) {
  EXPECT_FALSE(tablesOf(plan::testing::oneShotAllReduce(4), Protocol::Simple, 64));
  EXPECT_FALSE(tablesOf(plan::testing::oneShotAllReduce(4), Protocol::LL, 10000)) << "units";
  EXPECT_FALSE(tablesOf(plan::testing::oneShotAllReduce(4), Protocol::LL, 900, {512, 1}))
      << "tiles";
  EXPECT_FALSE(tablesOf(plan::testing::ringAllReduce(4), Protocol::LL, 64)) << "credit";
  EXPECT_FALSE(tablesOf(plan::testing::twoShotAllReduce(4), Protocol::LL, 64)) << "dependencies";
}

} // namespace
} // namespace occl::interpreter::conformance
