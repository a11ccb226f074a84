// Direct access in plans: what verifyPlan says of loadReduceStore on peers' memory, signals and
// waits.
#include "plan/io/reader.h"
#include "plan/io/writer.h"
#include "plan/model/builder.h"
#include "plan/model/hash.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "plan/testing/random_execution.h"
#include "plan/verify/verifier.h"

#include <gtest/gtest.h>

namespace occl::plan {
namespace {

std::string wordsOn(const Plan &plan) {
  VerifyResult result = verifyPlan(plan);
  return result.error ? result.text() : "accepted";
}

/// The place of an instruction of thread block 0 of a plan with one thread block a rank.
Instruction &at(Plan &plan, uint32_t rank, uint32_t position) {
  return plan.instructions[plan.threadBlocks[rank].firstInstruction + position];
}

TEST(Direct, GoodPlansAreAccepted) {
  std::mt19937 random(7);
  for (Plan (*make)(uint32_t) : {testing::directAllReduce, testing::directAllGather})
    for (uint32_t n : {1, 2, 3, 8}) {
      Plan plan = make(n);
      EXPECT_EQ(wordsOn(plan), "accepted") << plan.name << ", " << n << " ranks";
      for (bool inPlace : {false, true})
        EXPECT_EQ(testing::executeRandomly(plan, inPlace, random), "") << plan.name;
    }
  EXPECT_EQ(verifyPlan(testing::directAllReduce(4)).text(),
            "proved in place and out of place: 12 instructions, 0 messages on 4 connections, 4 "
            "signals, 0 dependencies, at most 1 thread block a rank; depth 1 suffices");
}

TEST(Direct, PlansThatOverwriteAnInputTooEarlyAreForTwoBuffers) {
  std::mt19937 random(11);
  for (Plan (*make)(uint32_t) : {testing::directInTurn, testing::allToAllInTurn})
    for (uint32_t n : {2, 3, 5}) {
      Plan plan = make(n);
      EXPECT_EQ(wordsOn(plan), "accepted") << plan.name << ", " << n << " ranks";
      EXPECT_EQ(testing::executeRandomly(plan, false, random), "") << plan.name;
      plan.inPlace = true;
      EXPECT_FALSE(verifyPlan(plan)) << plan.name;
    }
}

TEST(Direct, FilesHoldThem) {
  Plan plan = testing::directAllGather(3);
  for (Format format : {Format::Json, Format::Cbor}) {
    std::string bytes = encodePlan(plan, format);
    auto read = readPlan(bytes, "test");
    ASSERT_TRUE(read.isOk()) << read.message();
    EXPECT_EQ(hashPlan(*read), hashPlan(plan));
    EXPECT_EQ(encodePlan(*read, format), bytes);
  }
  std::string text = encodePlan(plan, Format::Json);
  EXPECT_NE(text.find("[0, 0, [1, 2], \"counter\"]"), std::string::npos);
  EXPECT_NE(text.find("{\"op\": \"wait\", \"src\": [[\"connection\", 0], [\"connection\", 2]], "
                      "\"value\": 2}"),
            std::string::npos);
  Plan other = plan;
  other.connections[0].isCounter = false;
  EXPECT_NE(hashPlan(other), hashPlan(plan));
}

TEST(Direct, Shapes) {
  const std::string place = "malformed plan, rank 1, thread block 0, instruction ";
  Plan plan = testing::directAllReduce(3);
  at(plan, 1, 1).count = 1;
  EXPECT_EQ(wordsOn(plan), place + "1: it moves no chunks, but has a count, an extent or a "
                                   "reduction's final mark [E311]");
  plan = testing::directAllReduce(3);
  at(plan, 1, 1).extent = 1;
  EXPECT_EQ(wordsOn(plan), place + "1: it moves no chunks, but has a count, an extent or a "
                                   "reduction's final mark [E311]");
  plan = testing::directAllReduce(3);
  at(plan, 1, 1).final = true;
  EXPECT_EQ(wordsOn(plan), place + "1: it moves no chunks, but has a count, an extent or a "
                                   "reduction's final mark [E311]");
  plan = testing::directAllReduce(3);
  at(plan, 1, 1).value = 1;
  EXPECT_EQ(wordsOn(plan), place + "1: only wait has a value [E311]");
  plan = testing::directAllReduce(3);
  at(plan, 1, 2).value = 0;
  EXPECT_EQ(wordsOn(plan), place + "2: the value that it waits for is 0 [E311]");
  plan = testing::directAllReduce(3);
  plan.operands[at(plan, 1, 2).firstOperand] = input(1, 0);
  EXPECT_EQ(wordsOn(plan), place + "2: wait has the wrong kind or number of sources [E312]");
  plan = testing::directAllReduce(3);
  plan.operands[at(plan, 1, 2).firstOperand] = connection(1);
  EXPECT_EQ(wordsOn(plan),
            place + "2: connection 1 (rank 1 to ranks 0 and 2, counter) does not end here [E315]");
  plan = testing::directAllReduce(3);
  plan.connections[1].isCounter = false;
  EXPECT_EQ(wordsOn(plan), "malformed plan, rank 0, thread block 0, instruction 2: connection 1 is "
                           "no counter: it takes sends and receives [E315]");
  plan = testing::directAllReduce(3);
  Instruction &store = at(plan, 1, 0);
  plan.operands[store.firstOperand + store.numSources] = connection(1);
  EXPECT_EQ(wordsOn(plan),
            place + "0: connection 1 is a counter: only signal and wait take one [E315]");
  plan = testing::directAllReduce(3);
  plan.connections[1].channel = 1;
  EXPECT_EQ(wordsOn(plan), "malformed plan: connection 1: it is a counter, which has "
                           "no channel and is not marked ordered [E305]");
  plan.connections[1].channel = 0;
  plan.connections[1].isOrdered = true;
  EXPECT_EQ(wordsOn(plan), "malformed plan: connection 1: it is a counter, which has "
                           "no channel and is not marked ordered [E305]");
}

TEST(Direct, OneThreadBlockOwnsAnEnd) {
  Plan plan = testing::directAllGather(2);
  // Rank 0's second signal, in a thread block of its own.
  plan.threadBlocks = {{0, 5}, {5, 2}, {7, 7}};
  plan.ranks[0].numThreadBlocks = 2;
  plan.ranks[1].firstThreadBlock = 2;
  EXPECT_EQ(
      wordsOn(plan),
      "malformed plan, rank 0, thread block 1, instruction 0: thread blocks 0 and 1 both send "
      "to connection 0 (rank 0 to rank 1, counter): one must own that end [E319]\n"
      "  the other one: rank 0, thread block 0, instruction 1: signal to rank 1");
  // Its second wait. The first one comes after a use of another counter.
  plan.threadBlocks = {{0, 6}, {6, 1}, {7, 7}};
  EXPECT_NE(wordsOn(plan).find("the other one: rank 0, thread block 0, instruction 2: wait for "
                               "signal 1 of rank 1"),
            std::string::npos)
      << wordsOn(plan);
}

TEST(Direct, SignalsNeedNoRoom) {
  // Two signals before the wait for both, where a connection would hold one message.
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = "twice";
  header.collective = "custom";
  header.sourceHash = "0123456789abcdef";
  header.depth = 1;
  header.inPlace = false;
  uint32_t counter = builder.addCounter(0, {1});
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  for (int i = 0; i < 2; ++i)
    builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(counter)});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Wait, .value = 2}, {connection(counter)}, {});
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {input(1, 0)}, {output(1, 0)});
  const Contribution own[] = {{1, 0}};
  builder.addRequirement({.rank = 1, .outputChunk = 0, .count = 1}, own);
  EXPECT_EQ(wordsOn(std::move(builder).take()), "accepted");
}

TEST(Direct, MoreSignalsAwaitedThanGiven) {
  Plan plan = testing::directAllReduce(3);
  at(plan, 2, 2).value = 2;
  EXPECT_EQ(wordsOn(plan), "messages do not match, rank 2, thread block 0, instruction 2: it waits "
                           "for signal 2 of counter 0 (rank 0 to ranks 1 and 2, counter), of which "
                           "1 are given [E323]");
}

TEST(Direct, WaitsMayDeadlock) {
  Plan plan = testing::directAllReduce(2);
  for (uint32_t rank : {0, 1})
    std::swap(at(plan, rank, 1), at(plan, rank, 2));
  // The arrays of a plan have the operands in the order of the instructions.
  for (uint32_t first : {4, 10}) {
    std::swap(plan.operands[first], plan.operands[first + 1]);
    uint32_t rank = first == 10;
    at(plan, rank, 1).firstOperand = first;
    at(plan, rank, 2).firstOperand = first + 1;
  }
  EXPECT_EQ(
      wordsOn(plan),
      "deadlock: the plan deadlocks at depth 2; no depth helps: reorder the instructions [E325]\n"
      "  rank 0, thread block 0, instruction 1: wait for signal 1 of rank 1 waits for a "
      "signal of connection 1 (rank 1 to rank 0, counter)\n"
      "  rank 1, thread block 0, instruction 1: wait for signal 1 of rank 0 waits for a "
      "signal of connection 0 (rank 0 to rank 1, counter)");
}

TEST(Direct, TheAccessThatOutlivesIsNamed) {
  Plan plan = testing::directAllReduce(3);
  // Rank 0 waits for rank 1's signal only.
  Instruction &wait = at(plan, 0, 2);
  plan.operands.erase(plan.operands.begin() + wait.firstOperand + 1);
  --wait.numSources;
  for (size_t i = static_cast<size_t>(&wait - plan.instructions.data()) + 1;
       i < plan.instructions.size(); ++i)
    --plan.instructions[i].firstOperand;
  EXPECT_EQ(wordsOn(plan).substr(0, 76),
            "access outside of a buffer's lifetime, rank 2, thread block 0, instruction 0");
}

TEST(Direct, AccessesMustNotOutliveTheirBuffer) {
  Plan plan = testing::directAllReduce(2);
  // Rank 1 does not wait for rank 0.
  plan.threadBlocks[1].numInstructions = 2;
  plan.instructions.pop_back();
  plan.operands.pop_back();
  EXPECT_EQ(
      wordsOn(plan),
      "access outside of a buffer's lifetime, rank 0, thread block 0, instruction 0: it may "
      "access rank 1's memory after rank 1 has ended: signal that it is done, and let rank 1 "
      "wait for it [E345]\n"
      "  rank 0, thread block 0, instruction 0: loadReduceStore input[0] of rank 0 + input[0] "
      "of rank 1 -> output[0] of rank 0, output[0] of rank 1, final");
}

TEST(Direct, ASignalBeforeTheAccessTellsNothing) {
  Plan plan = testing::directAllGather(2);
  // Rank 1 waits once more for rank 0's first signal instead of its second.
  plan.instructions.back().value = 1;
  EXPECT_EQ(verifyPlan(plan).error->proof(), Proof::Lifetime);
}

TEST(Direct, AccessesOfSeveralRanksMayRace) {
  Plan plan = testing::directAllGather(2);
  // Rank 1 reads rank 0's scratch without waiting for it: it waits for nothing that comes before.
  Plan late = plan;
  uint32_t first = plan.threadBlocks[1].firstInstruction;
  std::swap(late.instructions[first + 2], late.instructions[first + 3]);
  std::swap(late.instructions[first + 2].firstOperand, late.instructions[first + 3].firstOperand);
  // wait had one operand, the access two: [wait, from, to] becomes [from, to, wait].
  uint32_t at = late.instructions[first + 2].firstOperand;
  std::rotate(late.operands.begin() + at, late.operands.begin() + at + 1,
              late.operands.begin() + at + 3);
  late.instructions[first + 3].firstOperand = at + 2;
  EXPECT_EQ(wordsOn(late),
            "race (out of place), rank 1, thread block 0, instruction 2: rank 0, scratch chunk 0: "
            "nothing orders two accesses: add a signal and a wait between them [E330]\n"
            "  written by rank 0, thread block 0, instruction 0: copy input[0] -> scratch[0]\n"
            "  read by rank 1, thread block 0, instruction 2: loadReduceStore scratch[0] of rank 0 "
            "-> output[0] of rank 1");
}

TEST(Direct, SignalsOrderWithEveryProtocol) {
  Plan plan = testing::directAllGather(3);
  plan.protocol = Protocol::LL;
  EXPECT_EQ(wordsOn(plan), "accepted");
}

TEST(Direct, InPlaceAliasingHoldsForPeersToo) {
  // One shot: every rank reduces all inputs into its own output, which in place is its input.
  PlanBuilder builder;
  builder.header() = testing::directAllReduce(2);
  Plan &plan = builder.header();
  for (uint32_t rank : {0, 1}) {
    plan.instructions[rank * 3].extent = 0;
    plan.instructions[rank * 3].numDestinations = 1;
  }
  plan.partChunks = 1;
  for (RankPlan &rank : plan.ranks)
    rank.inputChunks = rank.outputChunks = 1;
  plan.operands = {input(0, 0), input(1, 0), output(0, 0), connection(0), connection(1),
                   input(0, 0), input(1, 0), output(1, 0), connection(1), connection(0)};
  uint32_t next = 0;
  for (Instruction &instruction : plan.instructions) {
    instruction.firstOperand = next;
    next += instruction.numSources + instruction.numDestinations;
  }
  EXPECT_EQ(verifyPlan(plan).error->proof(), Proof::Race);
  EXPECT_EQ(verifyPlan(plan).error->mode, AliasMode::InPlace);
  plan.inPlace = false;
  EXPECT_EQ(wordsOn(plan), "accepted");
}

} // namespace
} // namespace occl::plan
