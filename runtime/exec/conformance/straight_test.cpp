// What the tables of straight blocks say gives what the collective is defined to give, warp by warp
// and round by round in any order, also in memory that holds the lines of earlier invocations, in
// place, and on some ranks beside blocks that are interpreted.
#include "runtime/exec/step/straight_tables.h"

#include "plan/testing/example_plans.h"
#include "runtime/base/cache_line.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/exec/step/step.h"
#include "runtime/exec/step/straight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace occl::interpreter::conformance {
namespace {

using plan::Protocol;

/// Executes a straight block as the warps of a device do that stop again and again: all that is
/// kept from one turn to the next is its context.
class StraightBlock {
public:
  StraightBlock(const Invocation &invocation, StraightTables tables, uint64_t seed)
      : invocation(invocation), program(*invocation.program), tables(std::move(tables)),
        numThreads(static_cast<uint32_t>(alignUp(this->tables.numThreads, kWarp))), random(seed) {}

  bool isFinished() const { return context.instruction == tables.steps.size(); }
  /// A round of some warp. False: one of its lines has not come, and nothing was done.
  bool turn(HostTarget &target) {
    StraightRounds rounds(context.tile);
    const auto warp = static_cast<uint32_t>(random() % (numThreads / kWarp));
    const uint32_t done = rounds.of(warp);
    if (done != StraightRounds::kAll) {
      const uint32_t first = done * numThreads + warp * kWarp;
      if (!take(first, target))
        return false;
      rounds.set(warp, first + numThreads < step().numUnits() ? done + 1 : StraightRounds::kAll);
    }
    bool isThrough = true;
    for (uint32_t w = 0; w < numThreads / kWarp; ++w)
      isThrough &= rounds.of(w) == StraightRounds::kAll;
    context = isThrough ? straightContext(context.instruction + 1, {})
                        : straightContext(context.instruction, rounds);
    return done != StraightRounds::kAll || isThrough;
  }

private:
  static constexpr uint32_t kWarp = StraightRounds::kWarpThreads;
  static constexpr uint32_t kUnits = 8; // a line of LL128, and never of two pieces

  const StraightStep &step() const { return tables.steps[context.instruction]; }

  /// Some units of a piece.
  struct Part {
    const StraightPiece *piece;
    uint64_t begin, bytes; // of the data
    uint64_t inLines;
  };
  /// Of those from `unit` on; null: there is nothing.
  Part partAt(uint32_t unit) const {
    const uint32_t number = unit / step().unitsEach, inPiece = unit % step().unitsEach;
    if (number >= step().numPieces)
      return {};
    const StraightPiece &piece = tables.pieces[step().firstPiece + number];
    if (inPiece >= piece.units)
      return {};
    const bool isWide = program.line.bytes != kWordLineBytes;
    const uint64_t each = isWide ? program.line.dataBytes : kUnits * 8;
    const uint64_t begin = inPiece / kUnits * each;
    return {&piece, begin, std::min<uint64_t>(each, piece.bytes - begin), uint64_t(inPiece) * 16};
  }
  const StraightOperand &operandOf(const StraightPiece &piece, uint32_t i) const {
    return tables.operands[piece.firstOperand + i];
  }
  char *addressOf(const StraightOperand &operand, const Part &part) const {
    return invocation.places[operand.place] + operand.offset +
           (operand.isLines() ? part.inLines : part.begin);
  }

  /// A warp's units from `first` on: all of them, or none.
  bool take(uint32_t first, HostTarget &target) const {
    for (uint32_t unit = first; unit < first + kWarp; unit += kUnits)
      if (Part part = partAt(unit); part.piece && !hasArrived(part))
        return false;
    for (uint32_t unit = first; unit < first + kWarp; unit += kUnits)
      if (Part part = partAt(unit); part.piece)
        fold(part, target);
    return true;
  }
  bool hasArrived(const Part &part) const {
    for (uint32_t s = 0; s < part.piece->numSources; ++s) {
      const StraightOperand &source = operandOf(*part.piece, s);
      if (source.isLines() && !lines::arrived(program.line, addressOf(source, part), part.bytes,
                                              invocation.flagBase + source.flag))
        return false;
    }
    return true;
  }
  void fold(const Part &part, HostTarget &target) const {
    const StraightPiece &piece = *part.piece;
    uint32_t number = piece.numSources + piece.numDestinations;
    std::vector<std::vector<char>> data(number, std::vector<char>(part.bytes + 16u));
    for (uint32_t i = 0; i < number; ++i) {
      const StraightOperand &operand = operandOf(piece, i);
      target.pointers()[i] = operand.isLines() ? data[i].data() : addressOf(operand, part);
      if (operand.isLines() && i < piece.numSources)
        lines::unpack(program.line, addressOf(operand, part), data[i].data(), part.bytes);
    }
    target.fold(program, piece.numSources, piece.numDestinations, part.bytes / program.elementBytes,
                piece.divisor);
    for (uint32_t i = piece.numSources; i < number; ++i)
      if (const StraightOperand &operand = operandOf(piece, i); operand.isLines())
        lines::pack(program.line, data[i].data(), addressOf(operand, part), part.bytes,
                    invocation.flagBase + operand.flag);
  }

  const Invocation &invocation;
  const Program &program;
  const StraightTables tables;
  const uint32_t numThreads;
  std::mt19937_64 random;
  BlockContext context;
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
           bool maybe, uint64_t seed)
      : simulation(simulation), rank(rank), index(index) {
    auto tables = makeStraightTables(grouped, index);
    if (tables && maybe)
      block.emplace(simulation.invocation(rank), std::move(*tables), seed);
  }
  bool isStraight() const { return block.has_value(); }
  bool isFinished() const { return block ? block->isFinished() : finished; }
  bool step(HostTarget &target) {
    if (block)
      return block->turn(target);
    StepResult result = simulation.run(rank, index, target, 1);
    finished = result.status == StepStatus::Finished;
    return result.slices != 0 || finished;
  }

private:
  Simulation &simulation;
  const uint32_t rank, index;
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
                                                r == 0 || seed % 3 != 0, random()));
      straight += open.back()->isStraight();
    }
  }
  for (uint64_t inVain = 0; !open.empty();) {
    std::swap(open[random() % open.size()], open.back());
    inVain = open.back()->step(*target) ? 0 : inVain + 1;
    if (inVain > 100'000 * (open.size() + 1))
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
        // In place a unit that is taken twice adds twice, which a maximum does not show.
        for (auto [op, inPlace] : {std::pair(ReduceOp::Sum, false), std::pair(ReduceOp::Sum, true),
                                   std::pair(ReduceOp::Max, true)}) {
          plan::Plan plan = GetParam().make(ranks);
          plan.protocol = protocol;
          SimulationOptions options = {.count =
                                           plan.uniformChunks ? count * plan.partChunks : count,
                                       .type = DataType::Int32,
                                       .op = op,
                                       .inPlace = inPlace,
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
                                   << ", count " << options.count << (inPlace ? ", in place" : "");
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

TEST(StraightRounds, EachWarpHasItsOwn) {
  StraightRounds rounds;
  for (uint32_t w = 0; w < StraightRounds::kMaxWarps; ++w)
    EXPECT_EQ(rounds.of(w), 0u);
  for (uint32_t w = 0; w < StraightRounds::kMaxWarps; ++w)
    rounds.set(w, w % 2 == 0 ? w / 2 : StraightRounds::kAll);
  rounds.set(3, 8);
  const StraightRounds again(straightContext(7, rounds).tile);
  for (uint32_t w = 0; w < StraightRounds::kMaxWarps; ++w)
    EXPECT_EQ(again.of(w), w == 3 ? 8 : w % 2 == 0 ? w / 2 : StraightRounds::kAll);
  EXPECT_EQ(straightContext(7, rounds).instruction, 7u);
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
    EXPECT_EQ(from.offset, p * 3840);
    EXPECT_EQ(to.flag, p + 1);
  }
}

TEST(StraightTables, TablesWithControlWordsTilesOrTooManyUnitsAreNotStraight) {
  EXPECT_FALSE(tablesOf(plan::testing::oneShotAllReduce(4), Protocol::Simple, 64));
  EXPECT_FALSE(tablesOf(plan::testing::oneShotAllReduce(4), Protocol::LL, 10000)) << "units";
  EXPECT_FALSE(tablesOf(plan::testing::oneShotAllReduce(4), Protocol::LL, 900, {512, 1}))
      << "tiles";
  EXPECT_FALSE(tablesOf(plan::testing::ringAllReduce(4), Protocol::LL, 64)) << "credit";
  EXPECT_FALSE(tablesOf(plan::testing::twoShotAllReduce(4), Protocol::LL, 64)) << "dependencies";
}

} // namespace
} // namespace occl::interpreter::conformance
