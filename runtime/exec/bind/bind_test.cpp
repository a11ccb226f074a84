#include "runtime/exec/bind/bind.h"

#include "plan/model/builder.h"
#include "plan/model/chunking_of.h"
#include "plan/model/limits.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace occl::interpreter {
namespace {

std::shared_ptr<const Binding> mustBind(const plan::Plan &plan, const BindRequest &request) {
  auto bound = bind(plan, request);
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  return *bound;
}

TEST(Bind, AllRanksLayOutAllArenasAlike) {
  plan::Plan plan = plan::testing::twoShotAllReduce(5);
  for (Placement placement : {Placement::AtSource, Placement::AtDestination}) {
    auto first = mustBind(plan, {.rank = 0, .count = 12345, .placement = placement});
    for (uint32_t rank = 1; rank < 5; ++rank) {
      auto other = mustBind(plan, {.rank = rank, .count = 12345, .placement = placement});
      EXPECT_EQ(other->program().tileElements, first->program().tileElements);
      for (uint32_t r = 0; r < 5; ++r) {
        EXPECT_EQ(other->arenaBytes(r), first->arenaBytes(r));
        EXPECT_EQ(other->controlBytes(r), first->controlBytes(r));
      }
    }
  }
}

uint64_t largestArena(const Binding &binding) {
  uint64_t largest = 0;
  for (uint32_t r = 0; r < binding.program().numRanks; ++r)
    largest = std::max(largest, binding.arenaBytes(r));
  return largest;
}

/// As if they had been asked for so small; no smaller than is allowed, and not in lines.
TEST(Bind, MessagesAreHalvedUntilTheirArenasFit) {
  for (plan::Plan plan : {plan::testing::ringAllReduce(4), plan::testing::directAllReduce(4)})
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const BindRequest whole = {
          .rank = rank, .count = 4 << 20, .tiles = {.messageBytes = 4 << 20}};
      const uint64_t all = largestArena(*mustBind(plan, whole));
      for (uint64_t divisor : {1, 2, 3, 5, 16}) {
        BindRequest fitting = whole, halved = whole;
        fitting.mostArenaBytes = all / divisor;
        fitting.smallestMessageBytes = 4 << 10;
        while (largestArena(*mustBind(plan, halved)) > fitting.mostArenaBytes &&
               halved.tiles.messageBytes > fitting.smallestMessageBytes)
          halved.tiles.messageBytes /= 2;
        const auto bound = mustBind(plan, fitting), expected = mustBind(plan, halved);
        EXPECT_EQ(bound->program().tileElements, expected->program().tileElements) << divisor;
        EXPECT_EQ(bound->program().numTiles, expected->program().numTiles);
        for (uint32_t r = 0; r < 4; ++r)
          EXPECT_EQ(bound->arenaBytes(r), expected->arenaBytes(r));
        EXPECT_EQ(bound->numEnds(), expected->numEnds());
      }
      BindRequest notSmaller = whole;
      notSmaller.mostArenaBytes = 0;
      notSmaller.smallestMessageBytes = 1 << 20;
      BindRequest quarter = whole;
      quarter.tiles.messageBytes = 1 << 20;
      EXPECT_EQ(largestArena(*mustBind(plan, notSmaller)), largestArena(*mustBind(plan, quarter)));
      plan.protocol = plan::Protocol::LL;
      EXPECT_EQ(largestArena(*mustBind(plan, notSmaller)), largestArena(*mustBind(plan, whole)));
      plan.protocol = plan::Protocol::Simple;
    }
}

/// docs/plan.md, Connections: never less than the plan's, which is what the proof is for.
TEST(Bind, AConnectionHoldsAtLeastAsManyMessagesAsThePlanSays) {
  plan::Plan plan = plan::testing::ringAllReduce(3);
  for (uint32_t depth : {1u, 2u, 3u, 4u, 5u, 7u, 8u}) {
    plan.depth = depth;
    const auto bound = mustBind(plan, {.rank = 1, .count = 100'000});
    EXPECT_GE(bound->program().depth, depth);
    EXPECT_LT(bound->program().depth, 2 * depth);
  }
}

TEST(Bind, SlotsOfDifferentConnectionsDoNotOverlap) {
  plan::Plan plan = plan::testing::twoShotAllReduce(4);
  auto bound = mustBind(plan, {.rank = 2, .count = 1000});
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  const Program &program = bound->program();
  for (uint32_t e = 0; e < 64; ++e) {
    const ConnectionEnd &end = program.ends[e];
    if (end.dataRank == 2 && end.creditRank == 2)
      ranges.push_back({end.slotsOffset, end.slotsOffset + program.depth * end.slotBytes});
    if (ranges.size() == 4) // three parts and the result
      break;
  }
  ASSERT_EQ(ranges.size(), 4u);
  std::ranges::sort(ranges);
  EXPECT_GE(ranges[0].first, bound->controlBytes(2));
  for (size_t i = 1; i < ranges.size(); ++i)
    EXPECT_GE(ranges[i].first, ranges[i - 1].second);
  EXPECT_LE(ranges.back().second, bound->arenaBytes(2));
}

TEST(Bind, OneTileIfItFitsElseEqualOnes) {
  plan::Plan plan = plan::testing::oneShotAllReduce(2);
  TilePolicy tiles = {.messageBytes = 4096, .slicesPerMessage = 1};
  EXPECT_EQ(mustBind(plan, {.count = 1024, .tiles = tiles})->program().numTiles, 1u);
  auto two = mustBind(plan, {.count = 1025, .tiles = tiles});
  EXPECT_EQ(two->program().numTiles, 2u);
  EXPECT_LE(two->program().tileElements, 544u); // 1025 / 2, at the grain
  EXPECT_EQ(mustBind(plan, {.count = 0, .tiles = tiles})->program().numTiles, 1u);
}

TEST(Bind, MessagesOfManyChunksGetSmallerTiles) {
  plan::Plan one = plan::testing::shift(2, 1), eight = plan::testing::shift(2, 8);
  TilePolicy tiles = {.messageBytes = 8192, .slicesPerMessage = 1};
  uint64_t count = 1 << 20;
  EXPECT_EQ(mustBind(one, {.count = count, .tiles = tiles})->program().tileElements,
            8 * mustBind(eight, {.count = count, .tiles = tiles})->program().tileElements);
}

TEST(Bind, DepthIsRoundedUpToAPowerOfTwo) {
  plan::Plan plan = plan::testing::ringAllReduce(3);
  plan.depth = 3;
  EXPECT_EQ(mustBind(plan, {.count = 100})->program().depth, 4u);
}

TEST(Bind, SumsUpTheUsersBuffers) {
  plan::Plan plan = plan::testing::ringAllGather(3);
  auto bound = mustBind(plan, {.count = 10, .type = DataType::Float16});
  EXPECT_EQ(bound->inputBytes(), 20u);
  EXPECT_EQ(bound->outputBytes(), 60u);
}

TEST(Bind, RefusesARankThatThePlanDoesNotHave) {
  auto bound = bind(plan::testing::ringAllReduce(2), {.rank = 2, .count = 1});
  EXPECT_EQ(bound.status().code(), StatusCode::InvalidArgument);
  EXPECT_NE(bound.status().message().find("rank 2 of a plan for 2 ranks"), std::string::npos);
}

TEST(Bind, RefusesCountsThatUniformChunksForbid) {
  plan::Plan plan = plan::testing::ringAllReduce(4);
  plan.uniformChunks = true;
  EXPECT_TRUE(bind(plan, {.count = 8}).ok());
  EXPECT_EQ(bind(plan, {.count = 9}).status().code(), StatusCode::InvalidArgument);
}

TEST(Bind, RefusesAveragesThatNothingCompletes) {
  plan::Plan plan = plan::testing::ringAllReduce(4);
  EXPECT_TRUE(bind(plan, {.count = 8, .op = ReduceOp::Avg}).ok());
  plan.average = false;
  EXPECT_TRUE(bind(plan, {.count = 8, .op = ReduceOp::Max}).ok());
  EXPECT_EQ(bind(plan, {.count = 8, .op = ReduceOp::Avg}).status().code(),
            StatusCode::InvalidArgument);
  plan.average = true;
  plan.hasPostcondition = false;
  EXPECT_EQ(bind(plan, {.count = 8, .op = ReduceOp::Avg}).status().code(),
            StatusCode::InvalidArgument);
}

TEST(Bind, RefusesSizesThatOverflow) {
  plan::Plan plan = plan::testing::ringAllGather(4);
  for (uint64_t count : {~0ull, 1ull << 62, 1ull << 60})
    EXPECT_EQ(bind(plan, {.count = count, .type = DataType::Int64}).status().code(),
              StatusCode::InvalidArgument);
}

/// Of the program's connections that this rank uses.
uint32_t numEnds(const Binding &binding) {
  const Program &program = binding.program();
  uint32_t most = 0;
  for (uint32_t b = 0; b < program.numBlocks; ++b)
    for (uint32_t i = 0; i < program.blocks[b].numInstructions; ++i) {
      const auto &instruction = program.instructions[program.blocks[b].firstInstruction + i];
      for (uint32_t o = 0; o < uint32_t{instruction.numSources} + instruction.numDestinations; ++o)
        if (const auto &operand = program.operands[instruction.firstOperand + o];
            operand.kind == plan::OperandKind::Connection)
          most = std::max(most, operand.end + 1);
    }
  return most;
}

/// Elements of a buffer of so many chunks, as plan/model/chunking.h has it, without overflow.
unsigned __int128 elementsOf(const plan::Plan &plan, uint64_t count, uint64_t chunks,
                             uint64_t elementBytes) {
  using Wide = unsigned __int128;
  const Wide grain = plan::chunkingOf(plan, count, elementBytes).grain, parts = plan.partChunks;
  const Wide grains = (count + grain - 1) / grain, rest = chunks % parts;
  return chunks / parts * Wide{count} +
         std::min<Wide>((grains / parts * rest + grains % parts * rest / parts) * grain, count);
}

/// Counts around powers of two: whatever cannot be executed is refused, by all ranks alike, and
/// what is accepted has sizes that are right and counters that do not overflow.
void tryCounts(plan::Plan plan, plan::Protocol protocol, DataType type) {
  plan.protocol = protocol;
  std::vector<uint64_t> counts = {0, ~0ull};
  for (unsigned bit = 8; bit < 64; ++bit)
    counts.insert(counts.end(), {(1ull << bit) - 1, 1ull << bit, (1ull << bit) + 12345});
  const uint64_t elementBytes = sizeOf(type);
  uint32_t numAccepted = 0;
  for (uint64_t count : counts) {
    SCOPED_TRACE(plan.name + ", count " + std::to_string(count) + ", " +
                 std::to_string(elementBytes) + " bytes an element, protocol " +
                 std::to_string(static_cast<int>(protocol)));
    const bool isAccepted = bind(plan, {.rank = 0, .count = count, .type = type}).ok();
    numAccepted += isAccepted;
    for (uint32_t rank = 0; rank < plan.numRanks; ++rank) {
      for (uint64_t headsDistance : {0, 1 << 20}) {
        auto bound = bind(
            plan, {.rank = rank, .count = count, .type = type, .headsDistance = headsDistance});
        ASSERT_EQ(bound.ok(), isAccepted);
        if (!bound.ok()) {
          EXPECT_EQ(bound.status().code(), StatusCode::InvalidArgument);
          EXPECT_NE(bound.status().message().find(std::to_string(count)), std::string::npos)
              << bound.status().message();
          continue;
        }
        const Binding &binding = **bound;
        const Program &program = binding.program();
        const plan::RankPlan &own = plan.ranks[rank];
        EXPECT_TRUE(binding.inputBytes() ==
                    elementsOf(plan, count, own.inputChunks, elementBytes) * elementBytes);
        EXPECT_TRUE(binding.outputBytes() ==
                    elementsOf(plan, count, own.outputChunks, elementBytes) * elementBytes);
        EXPECT_GE(binding.scratchBytes() / elementBytes / std::max(own.scratchChunks, 1u),
                  own.scratchChunks ? count / plan.partChunks : 0);
        // The tiles cover a chunk, the last one of them some of it.
        const uint64_t chunk =
            std::max<uint64_t>((count + plan.partChunks - 1) / plan.partChunks, 1);
        EXPECT_GE(program.numTiles * static_cast<unsigned __int128>(program.tileElements), chunk);
        EXPECT_LE(program.flagsPerInvocation, 1ull << 32);
        EXPECT_TRUE(program.line.bytes == 0 || program.flagsPerInvocation > program.numTiles);
      }
    }
  }
  EXPECT_GT(numAccepted, 60u); // up to some 2^28 at least
}

TEST(Bind, ExtremeCountsAreRefusedOrRight) {
  for (plan::Protocol protocol :
       {plan::Protocol::Simple, plan::Protocol::LL, plan::Protocol::LL128})
    for (DataType type : {DataType::Uint8, DataType::Float16, DataType::Float32, DataType::Int64}) {
      tryCounts(plan::testing::ringAllReduce(3), protocol, type);
      tryCounts(plan::testing::ringAllGather(4), protocol, type);
      tryCounts(plan::testing::twoShotAllReduce(2), protocol, type);
    }
}

TEST(Bind, HeadsThatLieApartHaveTheirOwnRoomAndNothingElseMoves) {
  constexpr uint64_t kDistance = 1 << 20;
  plan::Plan plan = plan::testing::twoShotAllReduce(5);
  plan.depth = 1;
  TilePolicy tiles = {.messageBytes = 256, .slicesPerMessage = 1};
  for (uint32_t rank = 0; rank < 5; ++rank) {
    BindRequest request = {.rank = rank, .count = 12345, .tiles = tiles};
    auto within = mustBind(plan, request);
    request.headsDistance = kDistance;
    auto apart = mustBind(plan, request);
    uint64_t numHeads = 0;
    std::vector<uint64_t> heads; // of the own block
    for (uint32_t e = 0; e < numEnds(*apart); ++e) {
      const ConnectionEnd &end = apart->program().ends[e];
      ASSERT_NE(end.lastCredit, 0u);
      EXPECT_GE(end.headsOffset, kDistance);
      EXPECT_LE(end.headsOffset + kControlStride, kDistance + apart->headBytes(end.creditRank));
      if (end.creditRank != rank)
        continue;
      for (uint32_t p = 0; p < end.numPeers; ++p, ++numHeads)
        heads.push_back(end.headsOffset + p * kControlStride);
    }
    std::ranges::sort(heads);
    EXPECT_EQ(std::ranges::adjacent_find(heads), heads.end()) << "two heads in one place";
    for (uint32_t r = 0; r < 5; ++r) {
      EXPECT_EQ(within->headBytes(r), 0u);
      EXPECT_EQ(within->counterBytes(r), apart->counterBytes(r) + apart->headBytes(r));
      EXPECT_LE(apart->headBytes(r), apart->arenaBytes(r));
    }
    EXPECT_EQ(apart->headBytes(rank), numHeads * kControlStride);
  }
}

/// Rank 0 sends one small message to many, so that there is more of heads than of slots.
TEST(Bind, ABlockHasRoomForItsHeadsApart) {
  constexpr uint32_t kRanks = 17;
  plan::PlanBuilder builder;
  std::vector<uint32_t> others;
  for (uint32_t r = 1; r < kRanks; ++r)
    others.push_back(r);
  uint32_t link = builder.addConnection(0, 0, others);
  for (uint32_t r = 0; r < kRanks; ++r) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1});
    builder.beginThreadBlock();
    for (int i = 0; i < 3; ++i)
      if (r == 0)
        builder.addInstruction({.opcode = plan::Opcode::Send, .count = 1}, {plan::input(0, 0)},
                               {plan::connection(link)});
      else
        builder.addInstruction({.opcode = plan::Opcode::Recv, .count = 1}, {plan::connection(link)},
                               {plan::output(r, 0)});
  }
  plan::Plan plan = std::move(builder).take();
  auto bound = mustBind(plan, {.count = 1, .headsDistance = 4096});
  EXPECT_EQ(bound->headBytes(0), (kRanks - 1) * kControlStride);
  EXPECT_GE(bound->arenaBytes(0), bound->headBytes(0));
}

TEST(Bind, RefusesWhatOverflowsOnAnyRank) {
  plan::PlanBuilder builder;
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1u << 16});
  plan::Plan plan = std::move(builder).take();
  for (uint32_t rank : {0, 1}) {
    EXPECT_TRUE(bind(plan, {.rank = rank, .count = 1 << 20}).ok());
    EXPECT_EQ(bind(plan, {.rank = rank, .count = 1ull << 50}).status().code(),
              StatusCode::InvalidArgument);
  }
}

TEST(Bind, RefusesWhatItCannotExecute) {
  // One source, and a copy of the message for each rank but the first: one operand too many.
  plan::PlanBuilder builder;
  std::vector<uint32_t> others(plan::limits::kMaxOperands);
  std::iota(others.begin(), others.end(), 1);
  const uint32_t toAll = builder.addConnection(0, 0, others);
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = plan::Opcode::Send, .count = 1}, {plan::input(0, 0)},
                         {plan::connection(toAll)});
  for (size_t i = 0; i < others.size(); ++i)
    builder.beginRank({.outputChunks = 1});
  const plan::Plan plan = std::move(builder).take();
  EXPECT_TRUE(bind(plan, {.count = 1}).ok());
  auto bound = bind(plan, {.count = 1, .placement = Placement::AtDestination});
  EXPECT_EQ(bound.status().code(), StatusCode::InvalidPlan);
  EXPECT_NE(bound.status().message().find("a copy for each destination counted"),
            std::string::npos);
}

TEST(Bind, DirectAccessNeedsCountersAndNoTiles) {
  auto binding = mustBind(plan::testing::directAllReduce(3), {.rank = 1, .count = 3 << 20});
  EXPECT_TRUE(std::ranges::equal(binding->directRanks(), std::vector<uint32_t>{0, 2}));
  EXPECT_TRUE(std::ranges::equal(binding->arenaRanks(), std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(binding->arenaBytes(1), kControlStride) << "a counter has neither heads nor slots";
  EXPECT_EQ(binding->program().numTiles, 1u);
  EXPECT_EQ(binding->program().instructions[0].sliceElements * sizeof(float), 64u << 10)
      << "a step stays short";
  const BoundInstruction &wait = binding->program().instructions[2];
  EXPECT_EQ(wait.numSources, 2u);
  EXPECT_EQ(binding->program().operands[wait.firstOperand].message, 0u);
  EXPECT_EQ(binding->program().ends[1].messagesPerTile, 1u);
}

/// The numbers of instructions of the steps of a rank's first thread block.
std::vector<uint32_t> stepsOf(const plan::Plan &plan, const BindRequest &request) {
  auto binding = mustBind(plan, request);
  const Program &program = binding->program();
  std::vector<uint32_t> steps;
  for (uint32_t i = 0; i < program.blocks[0].numInstructions; i += steps.back())
    steps.push_back(program.instructions[program.blocks[0].firstInstruction + i].numInstructions);
  return steps;
}

/// A thread block that copies, sends three messages, then receives three.
plan::Plan exchange(bool chained) {
  using plan::Opcode;
  plan::PlanBuilder builder;
  std::vector<uint32_t> links;
  for (uint32_t r = 0; r < 2; ++r)
    for (uint32_t channel = 0; channel < 3; ++channel)
      links.push_back(builder.addConnection(r, channel, {1 - r}));
  for (uint32_t r = 0; r < 2; ++r) {
    builder.beginRank({.inputChunks = 3, .outputChunks = 3, .scratchChunks = 1});
    builder.beginThreadBlock();
    builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {plan::input(r, 0)},
                           {plan::scratch(r, 0)});
    for (uint32_t i = 0; i < 3; ++i)
      builder.addInstruction({.opcode = Opcode::Send, .count = 1, .extent = i},
                             {chained && i == 1 ? plan::scratch(r, 0) : plan::input(r, i)},
                             {plan::connection(links[r * 3 + i])});
    for (uint32_t i = 0; i < 3; ++i)
      builder.addInstruction({.opcode = Opcode::Recv, .count = 1, .extent = i},
                             {plan::connection(links[(1 - r) * 3 + i])}, {plan::output(r, i)});
  }
  return std::move(builder).take();
}

TEST(Bind, GroupsWhatNeedNotWaitApart) {
  plan::Plan plan = exchange(false);
  EXPECT_EQ(stepsOf(plan, {.count = 300, .stepOperands = 64}), (std::vector<uint32_t>{4, 3}));
  EXPECT_EQ(stepsOf(plan, {.count = 300}), (std::vector<uint32_t>(7, 1)));
  EXPECT_EQ(stepsOf(plan, {.count = 300, .stepOperands = 4}), (std::vector<uint32_t>{2, 2, 2, 1}));
}

TEST(Bind, GroupsNothingThatReadsWhatItStores) {
  EXPECT_EQ(stepsOf(exchange(true), {.count = 300, .stepOperands = 64}),
            (std::vector<uint32_t>{2, 2, 3}));
}

/// On devices lanes store the words of a step, in no order: of two values of one word either could
/// stay, and who waits for the larger one would wait for ever.
TEST(Bind, GroupsNoTwoThatStoreTheSameWord) {
  using plan::Opcode;
  for (bool isCounter : {false, true}) {
    plan::PlanBuilder builder;
    uint32_t link = isCounter ? builder.addCounter(0, {1}) : builder.addConnection(0, 0, {1});
    builder.beginRank({.inputChunks = 2, .outputChunks = 2});
    builder.beginThreadBlock();
    for (uint32_t i = 0; i < 2; ++i)
      if (isCounter)
        builder.addInstruction({.opcode = Opcode::Signal}, {}, {plan::connection(link)});
      else
        builder.addInstruction({.opcode = Opcode::Send, .count = 1, .extent = i},
                               {plan::input(0, i)}, {plan::connection(link)});
    builder.beginRank({.inputChunks = 2, .outputChunks = 2});
    EXPECT_EQ(stepsOf(std::move(builder).take(), {.count = 300, .stepOperands = 64}),
              (std::vector<uint32_t>(2, 1)))
        << (isCounter ? "signals" : "messages");
  }
}

/// Where lines of LL128 must not be used its plans have those of LL.
TEST(Bind, WithoutWideLinesAPlanOfLL128IsOneOfLL) {
  for (uint64_t count : {1, 30, 5000, 100'000}) {
    BindRequest request = {.count = count};
    request.lines = kDeviceLines;
    plan::Plan narrow = exchange(false), wide = exchange(false);
    narrow.protocol = plan::Protocol::LL;
    wide.protocol = plan::Protocol::LL128;
    auto expected = bind(narrow, request), asked = bind(wide, request);
    request.lines.hasWide = false;
    auto replaced = bind(wide, request);
    ASSERT_TRUE(expected.ok() && asked.ok() && replaced.ok());
    EXPECT_EQ((*asked)->program().line.bytes, 128u);
    EXPECT_EQ((*replaced)->program().line.bytes, kWordLineBytes);
    EXPECT_EQ((*replaced)->program().line.dataBytes, (*expected)->program().line.dataBytes);
    EXPECT_EQ((*replaced)->program().slicesPerMessage, (*expected)->program().slicesPerMessage);
    EXPECT_EQ((*replaced)->program().flagsPerInvocation, (*expected)->program().flagsPerInvocation);
    for (uint32_t r = 0; r < wide.numRanks; ++r)
      EXPECT_EQ((*replaced)->arenaBytes(r), (*expected)->arenaBytes(r));
  }
}

/// And the other way round, where wide ones cross as well.
TEST(Bind, WithWideLinesOnlyAPlanOfLLIsOneOfLL128) {
  for (uint64_t count : {1, 30, 5000, 100'000}) {
    BindRequest request = {.count = count};
    plan::Plan narrow = exchange(false), wide = exchange(false);
    narrow.protocol = plan::Protocol::LL;
    wide.protocol = plan::Protocol::LL128;
    auto expected = bind(wide, request), asked = bind(narrow, request);
    request.onlyWideLines = true;
    auto replaced = bind(narrow, request), same = bind(wide, request);
    ASSERT_TRUE(expected.ok() && asked.ok() && replaced.ok() && same.ok());
    EXPECT_EQ((*asked)->program().line.bytes, kWordLineBytes);
    for (const auto &binding : {*replaced, *same}) {
      EXPECT_EQ(binding->program().line.bytes, (*expected)->program().line.bytes);
      EXPECT_EQ(binding->program().line.dataBytes, (*expected)->program().line.dataBytes);
      for (uint32_t r = 0; r < wide.numRanks; ++r)
        EXPECT_EQ(binding->arenaBytes(r), (*expected)->arenaBytes(r));
    }
  }
}

/// A send that waits for credit would keep back those before it, whose receivers may have to go on
/// first; a receive that returns credit, too.
TEST(Bind, GroupsNoMessagesThatMayWaitForCredit) {
  plan::Plan plan = exchange(false);
  plan.depth = 1;
  TilePolicy twoTiles = {.messageBytes = 256, .slicesPerMessage = 1};
  EXPECT_EQ(stepsOf(plan, {.count = 300, .tiles = twoTiles, .stepOperands = 64}),
            (std::vector<uint32_t>{2, 1, 1, 1, 1, 1}));
}

TEST(Bind, GroupsNoMessagesOfSeveralSlices) {
  TilePolicy slices = {.messageBytes = 1 << 20, .slicesPerMessage = 2};
  EXPECT_EQ(stepsOf(exchange(false), {.count = 3000, .tiles = slices, .stepOperands = 64}),
            (std::vector<uint32_t>(7, 1)));
}

} // namespace
} // namespace occl::interpreter
