// Turning transfers into direct accesses: what becomes of hand-made programs, and that plans of
// random ones are proved by verifyPlan to compute what they did.
#include "compiler/analysis/Dependences.h"
#include "compiler/passes/direct/DirectAccessTesting.h"

#include <random>

namespace occl::passes {
namespace {

using namespace testing;

/// Two-step all-reduce of two ranks, as fusion leaves it: rank c reduces chunk c and sends it back.
Program twoShot(bool inPlace) {
  Step reduce0 = step({input(0), transfer(1)}, {output(0), transfer(2)});
  Step reduce1 = step({transfer(0), input(1)}, {output(1), transfer(3)});
  reduce0.instruction.final = reduce1.instruction.final = true;
  Program result =
      program({{step({input(1)}, {transfer(0)}), reduce0, step({transfer(3)}, {output(1)})},
               {step({input(0)}, {transfer(1)}), reduce1, step({transfer(2)}, {output(0)})}});
  result.inPlace = inPlace;
  schedule(result);
  return result;
}

TEST(DirectAccess, ATwoStepAllReduceIsOneInstructionARank) {
  for (bool inPlace : {false, true}) {
    Program direct = twoShot(inPlace);
    ASSERT_TRUE(makeDirect(direct));
    std::vector<plan::Opcode> expected = {kDirect, kSignal, kWait};
    for (const auto &opcodes : opcodesOf(direct))
      EXPECT_EQ(opcodes, expected);
    for (const Rank &rank : direct.ranks)
      EXPECT_EQ(rank.scratchChunks, 0u);
    plan::PlanBuilder builder = planOf(direct);
    builder.header().partChunks = 2;
    builder.header().collective = "allreduce";
    plan::Plan plan = std::move(builder).take();
    for (uint32_t r = 0; r < 2; ++r)
      plan.instructions[plan.threadBlocks[r].firstInstruction].extent = r;
    EXPECT_TRUE(plan::verifyPlan(plan).isOk()) << plan::verifyPlan(plan).text();
  }
}

TEST(DirectAccess, OnlyWithinGroups) {
  Program apart = twoShot(false);
  EXPECT_FALSE(makeDirect(apart, 1));
  EXPECT_EQ(opcodesOf(apart), opcodesOf(twoShot(false)));
}

/// What a range has chunks does not matter, only how many ranges there are: 4,096 copies of a
/// million chunks, of which some meet in part. Chunk by chunk this would take hundreds of
/// gigabytes.
TEST(DirectAccess, LongRangesTakeNoLongerThanShortOnes) {
  constexpr uint32_t kChunks = 1u << 20, kTimes = 1u << 12;
  Program direct = program({{}, {}});
  for (uint32_t i = 0; i < kTimes; ++i) {
    uint32_t shift = i % 4, count = kChunks - 4;
    direct.ranks[0].steps.push_back(step({input(shift)}, {transfer(i)}, count));
    direct.ranks[1].steps.push_back(step({transfer(i)}, {output(shift)}, count));
  }
  direct.numTransfers = kTimes;
  schedule(direct);
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(llvm::count(opcodes[0], kDirect) + llvm::count(opcodes[1], kDirect), kTimes);
}

/// One step: both ranks reduce both inputs. In place each would spoil what the other still reads.
TEST(DirectAccess, AWriteThatWouldHaveToWaitKeepsTheConnection) {
  for (bool inPlace : {false, true}) {
    Program direct =
        program({{step({input(0)}, {transfer(0)}), step({input(0), transfer(1)}, {output(0)})},
                 {step({input(0)}, {transfer(1)}), step({transfer(0), input(0)}, {output(0)})}});
    direct.inPlace = inPlace;
    schedule(direct);
    EXPECT_EQ(makeDirect(direct), !inPlace);
  }
}

/// What is read was computed by its owner: a signal says that it is there.
TEST(DirectAccess, AComputedValueIsAwaited) {
  Program direct = program({{step({input(0)}, {scratch(0)}), step({scratch(0)}, {transfer(0)})},
                            {step({transfer(0), input(0)}, {output(0)})}});
  direct.inPlace = false;
  schedule(direct);
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (std::vector{plan::Opcode::Copy, kSignal, kWait}));
  EXPECT_EQ(opcodes[1], (std::vector{kWait, kDirect, kSignal}));
}

/// A reduction whose result also goes to a rank outside of the group is split.
TEST(DirectAccess, AResultThatLeavesTheGroupIsSentByAnInstructionOfItsOwn) {
  Program direct = program({{step({input(0)}, {transfer(0)})},
                            {step({transfer(0), input(0)}, {output(0), transfer(1)})},
                            {step({transfer(1)}, {output(0)})}});
  direct.inPlace = false;
  schedule(direct);
  ASSERT_TRUE(makeDirect(direct, 2));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (std::vector{kWait}));
  EXPECT_EQ(opcodes[1], (std::vector{kDirect, kSignal, plan::Opcode::Send}));
  EXPECT_EQ(opcodes[2], (std::vector{plan::Opcode::Recv}));
}

/// A result goes to the own group and to another one in one message: only the others get it so.
TEST(DirectAccess, OneMessageToSeveralGroupsIsDivided) {
  Program direct = program({{step({input(0)}, {transfer(0)})},
                            {step({transfer(0)}, {output(0)})},
                            {step({transfer(0)}, {output(0)})}});
  direct.inPlace = false;
  schedule(direct);
  ASSERT_TRUE(makeDirect(direct, 2));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (std::vector{kDirect, kSignal, plan::Opcode::Send}));
  EXPECT_EQ(direct.ranks[0].scratchChunks, 0u);
  EXPECT_EQ(opcodes[1], (std::vector{kWait}));
  EXPECT_EQ(opcodes[2], (std::vector{plan::Opcode::Recv}));
}

/// As in groups joined by a ring: a partial sum arrives, is reduced with a peer's, and goes on.
/// Where the reduction becomes two, 16-bit floats are rounded twice.
TEST(DirectAccess, MessagesAndLoadsAreReducedByInstructionsOfTheirOwn) {
  for (bool arrivesFirst : {true, false}) {
    Step reduction = step({transfer(1), transfer(0), input(0)}, {transfer(2)});
    if (!arrivesFirst)
      std::swap(reduction.instruction.sources[0], reduction.instruction.sources[2]);
    Program direct = program({{step({input(0)}, {transfer(0)})},
                              {reduction},
                              {step({input(0)}, {transfer(1)})},
                              {step({transfer(2)}, {output(0)})}});
    direct.inPlace = false;
    schedule(direct);
    ASSERT_EQ(makeDirect(direct, 2), arrivesFirst);
    ASSERT_EQ(makeDirect(direct, 2, /*reassociate=*/true), !arrivesFirst);
    auto opcodes = opcodesOf(direct);
    if (arrivesFirst)
      EXPECT_EQ(opcodes[1],
                (std::vector{plan::Opcode::Recv, kDirect, kSignal, plan::Opcode::Send}));
    else
      EXPECT_EQ(opcodes[1], (std::vector{kDirect, kSignal, plan::Opcode::RecvReduceSend}));
    plan::PlanBuilder builder = planOf(direct);
    plan::Contribution all[] = {{0, 0}, {1, 0}, {2, 0}};
    builder.addRequirement({.rank = 3, .outputChunk = 0, .count = 1}, all);
    plan::Plan plan = std::move(builder).take();
    // Whatever reduces last is final.
    for (plan::Instruction &instruction : plan.instructions)
      instruction.final =
          instruction.numSources > 1 &&
          instruction.opcode == (arrivesFirst ? kDirect : plan::Opcode::RecvReduceSend);
    EXPECT_TRUE(plan::verifyPlan(plan).isOk()) << plan::verifyPlan(plan).text();
  }
}

/// What arrives comes before and after what could be loaded: the order of the reduction is kept.
TEST(DirectAccess, AReductionThatCannotBeDividedStays) {
  Program direct = program({{step({input(0)}, {transfer(0)})},
                            {step({transfer(1), transfer(0), transfer(2)}, {output(0)})},
                            {step({input(0)}, {transfer(1)}), step({input(1)}, {transfer(2)})}});
  direct.inPlace = false;
  schedule(direct);
  EXPECT_FALSE(makeDirect(direct, 2));
}

/// Rank 1 sends before it receives; stored at once, its value would replace what it has yet to
/// load.
TEST(DirectAccess, AStoreDoesNotComeBeforeALoadOfWhatItReplaces) {
  Program direct =
      program({{step({input(0)}, {transfer(0)}), step({transfer(1)}, {output(0)})},
               {step({input(0)}, {transfer(1)}), step({transfer(0), input(1)}, {output(1)})}});
  direct.ranks[1].steps[1].instruction.final = true;
  schedule(direct);
  makeDirect(direct);
  plan::PlanBuilder builder = planOf(direct);
  plan::Contribution first = {1, 0}, sum[] = {{0, 0}, {1, 1}};
  builder.addRequirement({.rank = 0, .outputChunk = 0, .count = 1}, {&first, 1});
  builder.addRequirement({.rank = 1, .outputChunk = 1, .count = 1}, sum);
  plan::VerifyResult result = plan::verifyPlan(std::move(builder).take());
  EXPECT_TRUE(result.isOk()) << result.text();
}

/// A store would come before two accesses to what it replaces; a load comes before none.
TEST(DirectAccess, AValueThatCannotBeStoredIsLoaded) {
  Program direct =
      program({{step({input(0)}, {transfer(0)}, 2)},
               {step({input(0)}, {scratch(0)}, 2), step({scratch(0)}, {output(0)}, 2),
                step({transfer(0)}, {scratch(0)}, 2), step({scratch(0)}, {output(2)}, 2)}});
  direct.inPlace = false;
  schedule(direct);
  ASSERT_TRUE(makeDirect(direct));
  EXPECT_TRUE(llvm::all_of(direct.connections,
                           [](const inst::Connection &line) { return line.isCounter; }));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (std::vector{kWait}));
  EXPECT_EQ(opcodes[1], (std::vector{plan::Opcode::Copy, plan::Opcode::Copy, kDirect, kSignal,
                                     plan::Opcode::Copy}));
}

/// Copies between random places of random ranks, and which input each output holds at the end.
class RandomCopies {
public:
  explicit RandomCopies(uint32_t seed) : random(seed), numRanks(2 + random() % 4) {
    program.ranks.resize(numRanks);
    program.inPlace = random() % 2;
    for (Rank &rank : program.ranks)
      rank.inputChunks = rank.outputChunks = rank.scratchChunks = kChunks;
    for (uint32_t r = 0; r < numRanks; ++r)
      for (uint32_t i = 0; i < kChunks; ++i)
        for (Place place : {input(i), output(i)})
          if (place.kind == PlaceKind::Input || program.inPlace)
            at(r, place) = plan::Contribution{r, i};
    uint32_t numCopies = 4 + random() % 24;
    for (uint32_t i = 0; i < numCopies; ++i)
      copy();
  }

  void require(plan::PlanBuilder &builder) {
    bool any = false;
    for (uint32_t r = 0; r < numRanks; ++r)
      for (uint32_t i = 0; i < kChunks; ++i)
        if (auto value = at(r, output(i)); value) {
          builder.addRequirement({.rank = r, .outputChunk = i, .count = 1}, {&*value, 1});
          any = true;
        }
    EXPECT_TRUE(any || !program.inPlace);
    hasResult = any;
  }

  Program program;
  bool hasResult = false;

private:
  static constexpr uint32_t kChunks = 3;
  using Value = std::optional<plan::Contribution>;

  Value &at(uint32_t rank, Place place) {
    if (program.inPlace && place.kind == PlaceKind::Input)
      place.kind = PlaceKind::Output;
    return memory[{rank, place.kind, place.index}];
  }

  Place anyPlace(bool isTarget) {
    PlaceKind kinds[] = {PlaceKind::Scratch, PlaceKind::Output, PlaceKind::Input};
    return {kinds[random() % (isTarget ? 2 : 3)], -1, static_cast<uint32_t>(random() % kChunks)};
  }

  void copy() {
    uint32_t from = random() % numRanks, to = random() % numRanks;
    Place source = anyPlace(false), target = anyPlace(true);
    Value value = at(from, source);
    bool isSame = from == to && rangeOf(program, program.ranks[from], source, 1) ==
                                    rangeOf(program, program.ranks[to], target, 1);
    if (!value || isSame)
      return;
    at(to, target) = value;
    if (from == to) {
      program.ranks[to].steps.push_back(step({source}, {target}));
      return;
    }
    Place message = transfer(program.numTransfers++);
    program.ranks[from].steps.push_back(step({source}, {message}));
    program.ranks[to].steps.push_back(step({message}, {target}));
    uint32_t other = random() % numRanks;
    if (other == from || other == to)
      return;
    Place also = anyPlace(true);
    at(other, also) = value;
    program.ranks[other].steps.push_back(step({message}, {also}));
  }

  std::mt19937 random;
  uint32_t numRanks;
  std::map<std::tuple<uint32_t, PlaceKind, uint32_t>, Value> memory;
};

TEST(DirectAccess, RandomProgramsKeepTheirMeaning) {
  uint32_t numDirect = 0;
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    RandomCopies copies(seed);
    schedule(copies.program);
    numDirect += makeDirect(copies.program, seed % 2 ? ~0u : 2 + seed % 3, seed % 5 == 0);
    plan::PlanBuilder builder = planOf(copies.program);
    // In place both buffers are one; the result is then required in one mode only.
    builder.header().outOfPlace = !copies.program.inPlace;
    copies.require(builder);
    if (!copies.hasResult)
      continue;
    plan::VerifyResult result = plan::verifyPlan(std::move(builder).take());
    ASSERT_TRUE(result.isOk()) << "seed " << seed << ": " << result.text();
  }
  EXPECT_GT(numDirect, 100u);
}

} // namespace
} // namespace occl::passes
