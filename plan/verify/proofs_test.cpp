// What verifyPlan says of plans that are well formed and wrong, with the witness: messages,
// deadlock, results. Races: races_test.cpp.
#include "plan/model/builder.h"
#include "plan/testing/example_plans.h"
#include "plan/testing/small_plans.h"
#include "plan/verify/verifier.h"

#include <gtest/gtest.h>

namespace occl::plan {
namespace {

using testing::one;
using testing::start;
using testing::wordsOn;

TEST(Matching, Sizes) {
  Plan plan = testing::shift(3);
  plan.instructions[1].count = 2;
  EXPECT_EQ(
      wordsOn(plan),
      "messages do not match, rank 1, thread block 0, instruction 2: it expects 3 chunks of "
      "extent 0, but message 0 of connection 0 has 2 chunks of extent 0 [E322]\n"
      "  sent by rank 0, thread block 0, instruction 1: send scratch[0..2] -> rank 1 (channel "
      "0), at shift.coll:3:5\n"
      "  received by rank 1, thread block 0, instruction 2: recv rank 0 (channel 0) -> "
      "output[0..3], at shift.coll:3:5");
}

TEST(Matching, Extents) {
  Plan plan = testing::shift(3);
  plan.uniformChunks = true;
  plan.instructions[1].extent = 1;
  EXPECT_EQ(verifyPlan(plan).error->message,
            "it expects 3 chunks of extent 0, but message 0 of connection 0 has 3 chunks of extent "
            "1");
}

TEST(Matching, Numbers) {
  PlanBuilder builder = start(2);
  uint32_t link = builder.addConnection(0, 0, {1});
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Send), {input(0, 0)}, {connection(link)});
  builder.beginRank({.outputChunks = 1});
  PlanBuilder other = builder;
  other.beginThreadBlock();
  EXPECT_EQ(wordsOn(std::move(other).take()),
            "messages do not match, rank 0, thread block 0, instruction 0: it sends message 0 of "
            "connection 0 (rank 0 to rank 1, channel 0), which rank 1 never receives [E321]");
  builder.beginThreadBlock();
  for (int i = 0; i < 2; ++i)
    builder.addInstruction(one(Opcode::Recv), {connection(link)}, {output(1, 0)});
  EXPECT_EQ(
      wordsOn(std::move(builder).take()),
      "messages do not match, rank 1, thread block 0, instruction 1: it receives message 1 of "
      "connection 0 (rank 0 to rank 1, channel 0), of which 1 are sent [E320]");
}

TEST(Deadlock, TooLittleDepth) {
  Plan plan = testing::ringAllReduce(3);
  plan.depth = 1;
  EXPECT_EQ(verifyPlan(plan).error->path, "depth");
  EXPECT_EQ(
      wordsOn(plan),
      "deadlock: the plan deadlocks at depth 1; depth 2 is needed [E326]\n"
      "  rank 0, thread block 0, instruction 1: recvReduceSend input[2] + rank 2 (channel 0) "
      "-> rank 1 (channel 0), at ring_allreduce.coll:6:5 waits for room in connection 0 (rank "
      "0 to rank 1, channel 0): rank 1 has not received the message before\n"
      "  rank 1, thread block 0, instruction 1: recvReduceSend input[0] + rank 0 (channel 0) "
      "-> rank 2 (channel 0), at ring_allreduce.coll:6:5 waits for room in connection 1 (rank "
      "1 to rank 2, channel 0): rank 2 has not received the message before\n"
      "  rank 2, thread block 0, instruction 1: recvReduceSend input[1] + rank 1 (channel 0) "
      "-> rank 0 (channel 0), at ring_allreduce.coll:6:5 waits for room in connection 2 (rank "
      "2 to rank 0, channel 0): rank 0 has not received the message before");
}

/// Two ranks that send each other so many messages before they receive any.
Plan sendFirst(uint32_t messages, uint32_t depth) {
  PlanBuilder builder = start(2);
  builder.header().depth = depth;
  builder.addConnection(0, 0, {1});
  builder.addConnection(1, 0, {0});
  for (uint32_t rank : {0u, 1u}) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1});
    builder.beginThreadBlock();
    for (uint32_t i = 0; i < messages; ++i)
      builder.addInstruction(one(Opcode::Send), {input(rank, 0)}, {connection(rank)});
    for (uint32_t i = 0; i < messages; ++i)
      builder.addInstruction(one(Opcode::Recv), {connection(1 - rank)}, {output(rank, 0)});
  }
  return std::move(builder).take();
}

TEST(Deadlock, SmallestDepth) {
  for (uint32_t messages : {1u, 2u, 3u, 5u, 6u, 7u, 8u}) {
    EXPECT_EQ(verifyPlan(sendFirst(messages, 8)).facts.smallestDepth, messages);
    EXPECT_EQ(verifyPlan(sendFirst(messages, messages)).facts.smallestDepth, messages);
  }
  for (uint32_t messages : {3u, 4u, 5u, 7u, 64u})
    EXPECT_EQ(verifyPlan(sendFirst(messages, 2)).error->message,
              "the plan deadlocks at depth 2; depth " + std::to_string(messages) + " is needed");
  EXPECT_EQ(verifyPlan(sendFirst(65, 2)).error->message,
            "the plan deadlocks at depth 2; depth 65 is needed, but allowed are 64");
  EXPECT_NE(wordsOn(sendFirst(3, 2)).find("has not received the 2 messages before"),
            std::string::npos);
}

TEST(Deadlock, AtAnyDepth) {
  // Both ranks receive before they send.
  PlanBuilder builder = start(2);
  builder.addConnection(0, 0, {1});
  builder.addConnection(1, 0, {0});
  for (uint32_t rank : {0u, 1u}) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1});
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Recv), {connection(1 - rank)}, {output(rank, 0)});
    builder.addInstruction(one(Opcode::Send), {input(rank, 0)}, {connection(rank)});
  }
  Plan plan = std::move(builder).take();
  EXPECT_EQ(verifyPlan(plan).error->path, "");
  EXPECT_EQ(
      wordsOn(plan),
      "deadlock: the plan deadlocks at depth 2; no depth helps: reorder the instructions [E325]\n"
      "  rank 0, thread block 0, instruction 0: recv rank 1 (channel 0) -> output[0] waits "
      "for data from connection 1 (rank 1 to rank 0, channel 0)\n"
      "  rank 1, thread block 0, instruction 0: recv rank 0 (channel 0) -> output[0] waits "
      "for data from connection 0 (rank 0 to rank 1, channel 0)");
}

TEST(Deadlock, Dependencies) {
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  for (uint32_t block : {0u, 1u}) {
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {output(0, 0)}, {{1 - block, 0}});
  }
  EXPECT_EQ(
      wordsOn(std::move(builder).take()),
      "deadlock: the plan deadlocks at depth 2; no depth helps: reorder the instructions [E325]\n"
      "  rank 0, thread block 0, instruction 0: copy input[0] -> output[0] waits for its "
      "dependency on rank 0, thread block 1, instruction 0\n"
      "  rank 0, thread block 1, instruction 0: copy input[0] -> output[0] waits for its "
      "dependency on rank 0, thread block 0, instruction 0");
}

TEST(Deadlock, LongCyclesAreCut) {
  Plan plan = testing::ringAllReduce(64);
  plan.depth = 1;
  VerifyResult result = verifyPlan(plan);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->witness.size(), 20u);
  EXPECT_EQ(result.error->witness[10].text, "... and 45 more ...");
}

TEST(Deadlock, SlowestDestinationHoldsTheSlot) {
  // Rank 1 takes everything at once; rank 2 takes nothing until rank 0 has sent both messages and a
  // third elsewhere.
  PlanBuilder builder = start(3);
  uint32_t cast = builder.addConnection(0, 0, {1, 2}), late = builder.addConnection(0, 1, {2});
  builder.header().depth = 1;
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  for (uint32_t link : {cast, cast, late})
    builder.addInstruction(one(Opcode::Send), {input(0, 0)}, {connection(link)});
  for (uint32_t rank : {1u, 2u}) {
    builder.beginRank({.outputChunks = 1});
    builder.beginThreadBlock();
    if (rank == 2)
      builder.addInstruction(one(Opcode::Recv), {connection(late)}, {output(rank, 0)});
    for (int i = 0; i < 2; ++i)
      builder.addInstruction(one(Opcode::Recv), {connection(cast)}, {output(rank, 0)});
  }
  Plan plan = std::move(builder).take();
  EXPECT_EQ(wordsOn(plan),
            "deadlock: the plan deadlocks at depth 1; depth 2 is needed [E326]\n"
            "  rank 0, thread block 0, instruction 1: send input[0] -> ranks 1 and 2 (channel 0) "
            "waits for room in connection 0 (rank 0 to ranks 1 and 2, channel 0): rank 2 has not "
            "received the message before\n"
            "  rank 2, thread block 0, instruction 0: recv rank 0 (channel 1) -> output[0] waits "
            "for data from connection 1 (rank 0 to rank 2, channel 1)");
  plan.depth = 5;
  EXPECT_EQ(verifyPlan(plan).facts.smallestDepth, 2u);
}

TEST(Postcondition, UndefinedReads) {
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {scratch(0, 0)}, {output(0, 0)});
  EXPECT_EQ(wordsOn(std::move(builder).take()),
            "wrong result (out of place), rank 0, thread block 0, instruction 0: it reads scratch "
            "chunk 0, which was never written [E335]\n"
            "  rank 0, thread block 0, instruction 0: copy scratch[0] -> output[0]");
}

TEST(Postcondition, OutputReadInPlaceIsInput) {
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {output(0, 0)}, {output(0, 0)});
  builder.header().outOfPlace = false;
  Plan plan = std::move(builder).take();
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan.outOfPlace = true;
  EXPECT_EQ(wordsOn(plan),
            "wrong result (out of place), rank 0, thread block 0, instruction 0: it reads output "
            "chunk 0, which was never written [E335]\n"
            "  rank 0, thread block 0, instruction 0: copy output[0] -> output[0]");
}

TEST(Postcondition, InputKeepsItsValueOutOfPlace) {
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {output(0, 0)});
  builder.addInstruction(one(Opcode::Copy), {output(0, 0)}, {input(0, 0)});
  Plan plan = std::move(builder).take();
  EXPECT_EQ(
      wordsOn(plan),
      "wrong result (out of place), rank 0, thread block 0, instruction 1: it writes to the "
      "input, which must keep its value out of place: write to output or scratch, or claim in "
      "place only [E338]\n"
      "  rank 0, thread block 0, instruction 1: copy output[0] -> input[0]");
  plan.outOfPlace = false;
  EXPECT_EQ(wordsOn(plan), "accepted");
}

TEST(Postcondition, NothingWritten) {
  Plan plan = testing::chainBroadcast(1, 1);
  plan.instructions.clear();
  plan.operands.clear();
  plan.threadBlocks[0].numInstructions = 0;
  EXPECT_EQ(wordsOn(plan),
            "wrong result (out of place): rank 0, output chunk 0: broadcast promises "
            "a value, but nothing writes there [E339]");
  plan.outOfPlace = false;
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan = testing::ringAllReduce(2);
  plan.ranks[1].numThreadBlocks = plan.ranks[0].numThreadBlocks = 0;
  plan.ranks[1].firstThreadBlock = 0;
  plan.threadBlocks.clear();
  plan.instructions.clear();
  plan.operands.clear();
  plan.outOfPlace = false;
  EXPECT_EQ(wordsOn(plan), "wrong result (in place): rank 0, output chunk 0: it still holds what "
                           "input held there at entry [E339]");
}

TEST(Postcondition, MissingContribution) {
  Plan plan = testing::oneShotAllReduce(3);
  // Rank 0's reduction of all three becomes a reduction of rank 1's twice; what rank 2 sent is
  // received into scratch.
  PlanBuilder builder;
  builder.header() = plan;
  Plan &head = builder.header();
  head.ranks.clear();
  head.threadBlocks.clear();
  head.instructions.clear();
  head.operands.clear();
  for (uint32_t r = 0; r < 3; ++r) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 1});
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Send), {input(r, 0)}, {connection(r)});
    uint32_t before = (r + 2) % 3, after = (r + 1) % 3;
    builder.addInstruction(one(Opcode::Recv), {connection(before)}, {scratch(r, 0)});
    if (r != 0) {
      builder.addInstruction(one(Opcode::RecvReduceCopy, true),
                             {input(r, 0), scratch(r, 0), connection(after)}, {output(r, 0)});
      continue;
    }
    builder.addInstruction(one(Opcode::RecvReduceCopy), {input(r, 0), connection(after)},
                           {scratch(r, 0)});
    builder.addInstruction(one(Opcode::Reduce, true), {input(r, 0), scratch(r, 0)}, {output(r, 0)});
  }
  EXPECT_EQ(
      wordsOn(std::move(builder).take()),
      "wrong result (out of place), rank 0, thread block 0, instruction 3: rank 0, output "
      "chunk 0: the contribution of rank 0's input chunk 0 is counted 2 times; the "
      "contribution of rank 2's input chunk 0 is missing [E341]\n"
      "  written by rank 0, thread block 0, instruction 3: reduce input[0] + scratch[0] -> "
      "output[0], final\n"
      "  counted twice in rank 0, thread block 0, instruction 3: reduce input[0] + scratch[0] "
      "-> output[0], final\n"
      "  it comes straight from rank 0's input chunk 0\n"
      "  and again through rank 0, thread block 0, instruction 2: recvReduceCopy input[0] + rank 1 "
      "(channel 0) -> scratch[0]");
}

TEST(Postcondition, ForeignContribution) {
  Plan plan = testing::shift(2);
  plan.contributions[0].chunk = 0;
  plan.requirements[0].count = 1;
  plan.uniformChunks = true;
  plan.operands[0].index = 1; // the copy to scratch begins one chunk late
  for (Instruction &i : plan.instructions)
    i.count = 1;
  EXPECT_EQ(wordsOn(plan),
            "wrong result (out of place), rank 1, thread block 0, instruction 0: rank 1, output "
            "chunk 0: the contribution of rank 0's input chunk 0 is missing; it contains rank 0's "
            "input chunk 1, which does not belong there [E340]\n"
            "  written by rank 1, thread block 0, instruction 0: recv rank 0 (channel 0) -> "
            "output[0], at shift.coll:3:5\n"
            "  rank 0's input chunk 1 comes through rank 0, thread block 0, instruction 0: copy "
            "input[1] -> scratch[0], at shift.coll:3:5\n"
            "  rank 0's input chunk 1 comes through rank 0, thread block 0, instruction 1: send "
            "scratch[0] -> rank 1 (channel 0), at shift.coll:3:5");
}

TEST(Postcondition, OneTooMany) {
  PlanBuilder builder = start(1);
  builder.header().partChunks = 1;
  builder.beginRank({.inputChunks = 2, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Reduce, true), {input(0, 0), input(0, 1)}, {output(0, 0)});
  EXPECT_EQ(wordsOn(std::move(builder).take()),
            "wrong result (out of place), rank 0, thread block 0, instruction 0: rank 0, output "
            "chunk 0: it contains rank 0's input chunk 1, which does not belong there [E342]\n"
            "  written by rank 0, thread block 0, instruction 0: reduce input[0] + input[1] -> "
            "output[0], final");
}

TEST(Postcondition, SumsThatWrapAround) {
  // Doubled 61 times, a sum modulo 2^61 - 1 is itself again; the number of contributions is not.
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, 0)});
  for (int i = 0; i < 61; ++i)
    builder.addInstruction(one(Opcode::Reduce), {scratch(0, 0), scratch(0, 0)}, {scratch(0, 0)});
  builder.addInstruction(one(Opcode::Copy), {scratch(0, 0)}, {output(0, 0)});
  EXPECT_EQ(
      wordsOn(std::move(builder).take()),
      "wrong result (out of place), rank 0, thread block 0, instruction 62: rank 0, output "
      "chunk 0: the contribution of rank 0's input chunk 0 is counted 4294967295 times [E341]\n"
      "  written by rank 0, thread block 0, instruction 62: copy scratch[0] -> output[0]\n"
      "  counted twice in rank 0, thread block 0, instruction 1: reduce scratch[0] + "
      "scratch[0] -> scratch[0]\n"
      "  it comes through rank 0, thread block 0, instruction 0: copy input[0] -> scratch[0]\n"
      "  and again through rank 0, thread block 0, instruction 0: copy input[0] -> scratch[0]");
}

TEST(Postcondition, FinalMarks) {
  Plan plan = testing::oneShotAllReduce(2);
  plan.instructions[1].final = false;
  EXPECT_EQ(wordsOn(plan),
            "wrong result (out of place), rank 0, thread block 0, instruction 1: rank 0, output "
            "chunk 0: no reduction on its way is marked final [E343]\n"
            "  written by rank 0, thread block 0, instruction 1: recvReduceCopy input[0] + rank 1 "
            "(channel 0) -> output[0], at one_shot_allreduce.coll:4:5");
  plan = testing::ringAllReduce(3);
  plan.instructions[1].final = true;
  EXPECT_EQ(
      wordsOn(plan),
      "wrong result (out of place), rank 1, thread block 0, instruction 2: it reduces what it "
      "receives, which a reduction marked final has completed [E336]\n"
      "  rank 1, thread block 0, instruction 2: recvReduceCopySend input[2] + rank 0 (channel "
      "0) -> output[2], rank 2 (channel 0), final, at ring_allreduce.coll:6:5");
}

TEST(Postcondition, PlansThatDoNotAverageHaveNoFinalMarks) {
  Plan plan = testing::oneShotAllReduce(2);
  plan.average = false;
  EXPECT_EQ(wordsOn(plan),
            "malformed plan, rank 0, thread block 0, instruction 1: it is marked final, but the "
            "plan says that nothing is averaged [E311]");
  for (Instruction &instruction : plan.instructions)
    instruction.final = false;
  EXPECT_TRUE(verifyPlan(plan));
}

TEST(Postcondition, ExtentsTravelThroughScratch) {
  // Chunk 1 goes through scratch and is taken for a chunk of extent 0.
  PlanBuilder builder = start(1);
  builder.header().partChunks = 2;
  builder.beginRank({.inputChunks = 2, .outputChunks = 2, .scratchChunks = 1});
  builder.beginThreadBlock();
  Instruction second = one(Opcode::Copy);
  second.extent = 1;
  builder.addInstruction(second, {input(0, 1)}, {scratch(0, 0)});
  builder.addInstruction(one(Opcode::Copy), {scratch(0, 0)}, {output(0, 0)});
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {output(0, 0)});
  Plan plan = std::move(builder).take();
  EXPECT_EQ(wordsOn(plan),
            "wrong result (out of place), rank 0, thread block 0, instruction 1: scratch chunk 0 "
            "holds a chunk of extent 1, the instruction moves extent 0: only a plan for uniform "
            "chunks may mix them [E337]\n"
            "  rank 0, thread block 0, instruction 1: copy scratch[0] -> output[0]");
  plan.uniformChunks = true;
  plan.inPlace = false;
  EXPECT_EQ(wordsOn(plan), "accepted");
}

TEST(Postcondition, ModesAreProvedApart) {
  // Copies chunk 0 over chunk 1 before chunk 1 is read: right out of place only.
  PlanBuilder builder = start(1);
  builder.header().uniformChunks = true;
  Contribution second = {0, 1};
  builder.addRequirement({.rank = 0, .outputChunk = 1, .count = 1}, {&second, 1});
  builder.beginRank({.inputChunks = 2, .outputChunks = 2, .inPlaceOffset = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 1)}, {output(0, 1)});
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {output(0, 0)});
  Plan plan = std::move(builder).take();
  EXPECT_EQ(wordsOn(plan).substr(0, 104),
            "wrong result (in place), rank 0, thread block 0, instruction 1: rank 0, output chunk "
            "0: the contribution");
  plan.inPlace = false;
  EXPECT_EQ(wordsOn(plan), "accepted");
}

TEST(Result, OneContributionCountedTwice) {
  // Rank 1 broadcasts; rank 0 adds what it gets to itself.
  PlanBuilder builder;
  builder.header() = testing::chainBroadcast(2, 1, 1);
  Plan &plan = builder.header();
  plan.ranks.clear();
  plan.threadBlocks.clear();
  plan.instructions.clear();
  plan.operands.clear();
  plan.connections.clear();
  plan.destinations.clear();
  uint32_t link = builder.addConnection(1, 0, {0});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Recv), {connection(link)}, {scratch(0, 0)});
  builder.addInstruction(one(Opcode::Reduce), {scratch(0, 0), scratch(0, 0)}, {output(0, 0)});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Send), {input(1, 0)}, {connection(link)});
  builder.addInstruction(one(Opcode::Copy), {input(1, 0)}, {output(1, 0)});
  EXPECT_NE(wordsOn(std::move(builder).take())
                .find("the contribution of rank 1's input chunk 0 is counted 2 times [E341]"),
            std::string::npos);
}

} // namespace
} // namespace occl::plan
