// Each rule by which messages become direct accesses and signals are placed, on the smallest
// program that shows it.
#include "compiler/passes/direct/DirectAccessTesting.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

namespace occl::passes {
namespace {

using namespace testing;
using Opcodes = std::vector<plan::Opcode>;
using plan::Opcode;

/// The steps of each rank, with connections and thread blocks.
Program scheduled(std::initializer_list<std::vector<Step>> ranks, bool inPlace = false) {
  Program result = program(ranks);
  result.inPlace = inPlace;
  schedule(result);
  return result;
}

// Which messages go how.

TEST(DirectAccessRules, ARelayHasNoValueThatCouldBeLoaded) {
  Program direct = scheduled({{step({input(0)}, {transfer(0)})},
                              {step({transfer(0)}, {transfer(1)})},
                              {step({transfer(1), input(0)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{kWait}));
  EXPECT_EQ(opcodes[1], (Opcodes{kDirect, kSignal, Opcode::Send}));
  EXPECT_EQ(opcodes[2], (Opcodes{Opcode::RecvReduceCopy})); // whole, since nothing of it is direct
  EXPECT_EQ(direct.ranks[1].scratchChunks, 1u);
}

TEST(DirectAccessRules, AValueThatIsPassedOnIsNotStoredByItsSender) {
  Program direct = scheduled({{step({input(0)}, {transfer(0)})},
                              {step({transfer(0)}, {output(0), transfer(1)})},
                              {step({transfer(1)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct, 2));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{kWait}));
  EXPECT_EQ(opcodes[1], (Opcodes{kDirect, kSignal, Opcode::Send}));
  EXPECT_EQ(opcodes[2], (Opcodes{Opcode::Recv}));
}

TEST(DirectAccessRules, AValueOfAnotherGroupIsStoredFromWhereItIsKept) {
  for (bool isKept : {true, false}) {
    Step pass = step({transfer(0)}, {transfer(1)});
    if (isKept)
      pass.instruction.destinations.insert(pass.instruction.destinations.begin(), output(0));
    Program direct = scheduled({std::vector<Step>(),
                                {step({input(0)}, {transfer(0)})},
                                {pass},
                                {step({transfer(1)}, {output(0)})}});
    ASSERT_TRUE(makeDirect(direct, 2));
    auto opcodes = opcodesOf(direct);
    EXPECT_EQ(opcodes[1], (Opcodes{Opcode::Send}));
    EXPECT_EQ(opcodes[2], (Opcodes{Opcode::Recv, kDirect, kSignal}));
    EXPECT_EQ(opcodes[3], (Opcodes{kWait}));
    EXPECT_EQ(direct.ranks[2].scratchChunks, isKept ? 0u : 1u);
  }
}

TEST(DirectAccessRules, AValueThatCannotBeStoredYetIsLoadedLater) {
  Program direct = scheduled({{step({input(0)}, {transfer(0)})},
                              {step({input(0)}, {output(0)}), step({transfer(0)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{kWait}));
  EXPECT_EQ(opcodes[1], (Opcodes{Opcode::Copy, kDirect, kSignal}));
}

TEST(DirectAccessRules, AValueThatCannotBeStoredYetIsSentIfItIsKeptNowhere) {
  Program direct = scheduled({{step({input(0)}, {transfer(0)})},
                              {step({transfer(0), input(0)}, {transfer(1)})},
                              {step({input(0)}, {output(0)}), step({transfer(1)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[1], (Opcodes{kDirect, kSignal, Opcode::Send}));
  EXPECT_EQ(opcodes[2], (Opcodes{Opcode::Copy, Opcode::Recv}));
}

TEST(DirectAccessRules, ASpoiltMessageLeavesOthersDirect) {
  Program direct =
      scheduled({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(2)}),
                  step({input(0), transfer(1)}, {output(0)})},
                 {step({input(0)}, {transfer(1)}), step({transfer(0), input(0)}, {output(0)}),
                  step({transfer(2)}, {output(1)})}},
                /*inPlace=*/true);
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{Opcode::Send, kDirect, kSignal, Opcode::RecvReduceCopy}));
  EXPECT_EQ(opcodes[1], (Opcodes{Opcode::Send, Opcode::RecvReduceCopy, kWait}));
}

TEST(DirectAccessRules, TheResultOfAReductionIsLoadedWhereItLies) {
  Program direct = scheduled({{step({input(0)}, {transfer(0)})},
                              {step({transfer(0), input(0)}, {output(0), transfer(1)})},
                              {step({transfer(1), input(0)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{kWait}));
  EXPECT_EQ(opcodes[1], (Opcodes{kDirect, kSignal, kWait}));
  EXPECT_EQ(opcodes[2], (Opcodes{kWait, kDirect, kSignal}));
}

TEST(DirectAccessRules, ReadsMayPassEachOther) {
  Program direct = scheduled({{step({input(0)}, {transfer(0)}), step({input(0)}, {output(0)})},
                              {step({transfer(0), input(0)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{Opcode::Copy, kWait}));
  EXPECT_EQ(opcodes[1], (Opcodes{kDirect, kSignal}));
}

/// In place; `to` is the rank to which what comes from rank 0 is relayed, one chunk further.
bool isRelayDirect(uint32_t to) {
  Step send = step({input(0)}, {transfer(0)}, 2), pass = step({transfer(0)}, {transfer(1)}, 2),
       receive = step({transfer(1)}, {output(1)}, 2);
  Program direct = to == 0 ? scheduled({{send, receive}, {pass}}, true)
                           : scheduled({{send}, {pass}, {receive}}, true);
  return makeDirect(direct);
}

TEST(DirectAccessRules, AnInstructionDoesNotShiftARangeOntoItself) {
  EXPECT_FALSE(isRelayDirect(0));
  EXPECT_TRUE(isRelayDirect(2));
}

/// A message to two groups that cannot be direct in either stays one message.
TEST(DirectAccessRules, AConnectionDividedForNothingIsPutTogetherAgain) {
  Program direct =
      scheduled({{step({input(0)}, {transfer(0)}), step({input(1)}, {output(0)}),
                  step({transfer(1)}, {output(2)})},
                 {step({transfer(0), input(0)}, {output(0)}), step({input(1)}, {transfer(1)})},
                 {step({transfer(0)}, {output(0)})}},
                /*inPlace=*/true);
  ASSERT_TRUE(makeDirect(direct, 2));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{Opcode::Send, Opcode::Copy, kWait}));
  EXPECT_EQ(opcodes[1], (Opcodes{Opcode::RecvReduceCopy, kDirect, kSignal}));
  EXPECT_EQ(opcodes[2], (Opcodes{Opcode::Recv}));
  ASSERT_EQ(direct.connections.size(), 2u); // one of them counts signals
  EXPECT_EQ(direct.connections[0].destinations.size(), 2u);
}

TEST(DirectAccessRules, TheOrderLeavesRoomForMessages) {
  Program program =
      scheduled({{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)})},
                 {step({transfer(0)}, {output(0)}), step({transfer(1)}, {output(1)})}});
  for (uint32_t depth : {1u, 2u}) {
    program.depth = depth;
    auto order = linearOrder(program);
    ASSERT_TRUE(order);
    EXPECT_EQ((*order)[1].rank, depth == 1 ? 1u : 0u);
  }
}

// Which signals and waits there are.

TEST(DirectAccessRules, AValueIsAwaitedOnce) {
  Program direct = scheduled(
      {{step({input(0)}, {scratch(0)}), step({scratch(0)}, {transfer(0)}),
        step({scratch(0)}, {transfer(1)})},
       {step({transfer(0), input(0)}, {output(0)}), step({transfer(1), input(1)}, {output(1)})}});
  ASSERT_TRUE(makeDirect(direct));
  auto opcodes = opcodesOf(direct);
  EXPECT_EQ(opcodes[0], (Opcodes{Opcode::Copy, kSignal, kWait}));
  EXPECT_EQ(opcodes[1], (Opcodes{kWait, kDirect, kDirect, kSignal}));
}

/// Rank 0 loads what rank 1 computed after its last access of rank 0's memory. What rank 1 accesses
/// elsewhere later is not rank 0's concern.
TEST(DirectAccessRules, ARankDoesNotWaitAtItsEndForWhatItKnows) {
  for (bool goesOn : {false, true}) {
    std::vector<Step> first = {step({transfer(0), input(0)}, {scratch(0)}),
                               step({scratch(0)}, {transfer(1)})},
                      third;
    if (goesOn) {
      first.push_back(step({transfer(2), input(1)}, {output(1)}));
      third.push_back(step({input(0)}, {transfer(2)}));
    }
    Program direct = scheduled({{step({input(0)}, {scratch(0)}), step({scratch(0)}, {transfer(0)}),
                                 step({transfer(1), input(0)}, {output(0)})},
                                first,
                                third});
    ASSERT_TRUE(makeDirect(direct));
    EXPECT_EQ(opcodesOf(direct)[0], (Opcodes{Opcode::Copy, kSignal, kWait, kDirect, kSignal}));
  }
}

/// Rank 1 loads two chunks of rank 0, with a thread block each.
TEST(DirectAccessRules, AtItsEndEachThreadBlockWaitsForItsLike) {
  for (int32_t numBlocks : {1, 2}) { // of rank 0
    Program direct = scheduled(
        {{step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)}),
          step({input(2)}, {output(2)})},
         {step({transfer(0), input(0)}, {output(0)}), step({transfer(1), input(1)}, {output(1)})}});
    direct.ranks[1].steps[1].instruction.threadBlock = 1;
    direct.ranks[0].steps[2].instruction.threadBlock = numBlocks - 1;
    ASSERT_TRUE(makeDirect(direct));
    std::vector<std::pair<int32_t, size_t>> waits; // thread blocks, and for how many they wait
    for (const Step &step : direct.ranks[0].steps)
      if (opcodeOf(step.instruction) == kWait)
        waits.emplace_back(step.instruction.threadBlock, step.instruction.sources.size());
    std::vector<std::pair<int32_t, size_t>> together = {{0, 2}}, apart = {{0, 1}, {1, 1}};
    EXPECT_EQ(waits, numBlocks == 1 ? together : apart);
  }
}

/// All-gather: in place, what a rank keeps is a copy of a chunk onto itself, for which nobody waits
/// who reads the input. Whoever reads the output does, for the sake of calls out of place.
TEST(DirectAccessRules, NobodyWaitsInPlaceForACopyOntoItself) {
  for (Place read : {input(0), output(0)}) {
    Program direct = scheduled({{step({input(0)}, {output(0)}), step({read}, {transfer(0)})},
                                {step({transfer(0)}, {output(0)})}},
                               /*inPlace=*/true);
    direct.ranks[0].steps[1].instruction.threadBlock = 1;
    ASSERT_TRUE(makeDirect(direct));
    ASSERT_EQ(opcodesOf(direct)[0], (Opcodes{Opcode::Copy, kDirect, kSignal}));
    EXPECT_EQ(direct.ranks[0].steps[1].dependencies.size(), read == output(0) ? 1u : 0u);
  }
}

/// Its neighbours in place are ordered as ever: the last copy overwrites what rank 0 has stored.
TEST(DirectAccessRules, OthersWaitInPlaceBesideACopyOntoItself) {
  Program direct = scheduled({{step({input(1)}, {output(1)}), step({input(0)}, {transfer(0)}),
                               step({input(2)}, {output(0)})},
                              {step({transfer(0)}, {output(3)})}},
                             /*inPlace=*/true);
  direct.ranks[0].steps[2].instruction.threadBlock = 1;
  ASSERT_TRUE(makeDirect(direct));
  ASSERT_EQ(opcodesOf(direct)[0], (Opcodes{Opcode::Copy, kDirect, kSignal, Opcode::Copy}));
  EXPECT_EQ(direct.ranks[0].steps[3].dependencies.size(), 1u);
}

TEST(DirectAccessRules, OneOfSeveralAccessesStandsForThoseBeforeIt) {
  Program direct =
      scheduled({{step({input(0)}, {transfer(0)})},
                 {step({transfer(0), input(0)}, {scratch(0)}), step({scratch(0)}, {transfer(1)})},
                 {step({transfer(0), transfer(1)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct));
  ASSERT_EQ(opcodesOf(direct)[0], (Opcodes{kWait}));
  EXPECT_EQ(direct.ranks[0].steps[0].instruction.sources.size(), 1u); // rank 2, which knows of 1
}

TEST(DirectAccessRules, MessagesAreNoMemory) {
  Program direct = scheduled({{step({transfer(0), input(0)}, {output(0)})},
                              {step({input(0)}, {transfer(0)}), step({input(1)}, {transfer(1)})},
                              {step({transfer(1)}, {output(0)})}});
  ASSERT_TRUE(makeDirect(direct, 2));
  EXPECT_EQ(opcodesOf(direct)[1], (Opcodes{Opcode::Send, kWait}));
}

TEST(DirectAccessRules, AWaitAtTheEndComesFromTheLastStep) {
  Program direct = scheduled({{step({transfer(0), input(0)}, {output(0)})},
                              {step({input(0)}, {transfer(0)}), step({input(1)}, {output(1)})}});
  mlir::MLIRContext context;
  for (uint32_t i = 0; i < 2; ++i)
    direct.ranks[1].steps[i].location = mlir::FileLineColLoc::get(&context, "x", i + 1, 1);
  const mlir::LocationAttr last = direct.ranks[1].steps[1].location;
  ASSERT_TRUE(makeDirect(direct));
  ASSERT_EQ(opcodesOf(direct)[1], (Opcodes{Opcode::Copy, kWait}));
  EXPECT_EQ(direct.ranks[1].steps[1].location, last);
}

} // namespace
} // namespace occl::passes
