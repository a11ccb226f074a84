// What verifyPlan says of accesses that nothing orders, and what counts as an order: program order,
// dependencies, ordered messages, witnesses.
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

TEST(Race, ReadAndWrite) {
  Plan plan = testing::twoShotAllReduce(2);
  plan.dependencies[0] = {0, 0}; // rank 0 sends its result without waiting for it
  EXPECT_EQ(
      wordsOn(plan),
      "race (out of place), rank 0, thread block 1, instruction 0: rank 0, output chunk 0: "
      "nothing orders two accesses: let it wait for thread block 2, instruction 0 [E330]\n"
      "  read by rank 0, thread block 2, instruction 0: send output[0] -> rank 1 (channel 1), "
      "at two_shot_allreduce.coll:5:5\n"
      "  written by rank 0, thread block 1, instruction 0: recvReduceCopy input[0] + rank 1 "
      "(channel 0) -> output[0], final, at two_shot_allreduce.coll:4:5");
}

TEST(Race, TwoWrites) {
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  for (int block = 0; block < 2; ++block) {
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {output(0, 0)});
  }
  EXPECT_EQ(wordsOn(std::move(builder).take()),
            "race (out of place), rank 0, thread block 1, instruction 0: rank 0, output chunk 0: "
            "nothing orders two accesses: let it wait for thread block 0, instruction 0 [E330]\n"
            "  written by rank 0, thread block 0, instruction 0: copy input[0] -> output[0]\n"
            "  written by rank 0, thread block 1, instruction 0: copy input[0] -> output[0]");
}

TEST(Race, EveryReaderCounts) {
  // Two thread blocks read what a third one overwrites; that waits for one of them, or for both.
  const Dependency readers[] = {{1, 0}, {2, 0}};
  const Operand from = input(0, 0), to = scratch(0, 0);
  for (std::span<const Dependency> after :
       {std::span<const Dependency>(readers, 1), std::span<const Dependency>(readers + 1, 1),
        std::span<const Dependency>(readers, 2)}) {
    PlanBuilder builder = start(1);
    builder.beginRank({.inputChunks = 1, .outputChunks = 2, .scratchChunks = 1});
    builder.header().uniformChunks = true;
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Copy), {from}, {to});
    for (uint32_t reader = 0; reader < 2; ++reader) {
      builder.beginThreadBlock();
      builder.addInstruction(one(Opcode::Copy), {to}, {output(0, reader)}, {{0, 0}});
    }
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Copy), std::span(&from, 1), std::span(&to, 1), after);
    EXPECT_EQ(wordsOn(std::move(builder).take()).substr(0, 8),
              after.size() == 2 ? "accepted" : "race (ou");
  }
}

TEST(Race, InPlaceOnly) {
  // Two thread blocks, one of which reads the input chunk that in place is the output chunk that
  // the other writes.
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 2, .outputChunks = 2, .scratchChunks = 1});
  builder.header().uniformChunks = true;
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {output(0, 0)});
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {output(0, 1)});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 1)}, {scratch(0, 0)});
  Plan plan = std::move(builder).take();
  EXPECT_EQ(
      wordsOn(plan).substr(0, 103),
      "race (in place), rank 0, thread block 1, instruction 0: rank 0, input chunk 1: nothing "
      "orders two acces");
  plan.inPlace = false;
  EXPECT_EQ(wordsOn(plan), "accepted");
}

TEST(Race, ACopyOntoItselfWritesNothing) {
  // In place each chunk is copied onto itself; another thread block reads the input, or the output,
  // for which it has to wait out of place.
  for (bool readsOutput : {false, true}) {
    PlanBuilder builder = start(1);
    builder.header().uniformChunks = true;
    builder.beginRank({.inputChunks = 2, .outputChunks = 2, .scratchChunks = 1});
    builder.beginThreadBlock();
    for (uint32_t chunk : {0u, 1u})
      builder.addInstruction(one(Opcode::Copy), {input(0, chunk)}, {output(0, chunk)});
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Copy), {readsOutput ? output(0, 1) : input(0, 1)},
                           {scratch(0, 0)});
    Plan plan = std::move(builder).take();
    std::string words = wordsOn(plan);
    EXPECT_EQ(words.substr(0, words.find(',')), readsOutput ? "race (out of place)" : "accepted");
    plan.outOfPlace = false;
    EXPECT_EQ(wordsOn(plan), "accepted");
  }
}

TEST(Race, TransitiveDependencies) {
  // Thread block 2 depends on 1, which depends on 0: that is enough between 2 and 0.
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 2});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, 0)});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, 1)}, {{0, 0}});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {scratch(0, 0)}, {output(0, 0)}, {{1, 0}});
  Plan plan = std::move(builder).take();
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan.protocol = Protocol::LL128;
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan.dependencies[0] = {0, 0};
  plan.instructions[1].numDependencies = 0;
  plan.instructions[2].firstDependency = 0;
  plan.dependencies.erase(plan.dependencies.begin());
  EXPECT_EQ(wordsOn(plan).substr(0, 69),
            "race (out of place), rank 0, thread block 2, instruction 0: rank 0, s");
}

/// Rank 0 keeps a value in scratch; a message to rank 1 and back tells another thread block that it
/// is there.
Plan roundTrip() {
  PlanBuilder builder = start(1);
  uint32_t there = builder.addConnection(0, 0, {1}), back = builder.addConnection(1, 0, {0});
  builder.markOrdered(there);
  builder.markOrdered(back);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 2});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, 0)});
  builder.addInstruction(one(Opcode::Send), {input(0, 0)}, {connection(there)});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Recv), {connection(back)}, {scratch(0, 1)});
  builder.addInstruction(one(Opcode::Copy), {scratch(0, 0)}, {output(0, 0)});
  builder.beginRank({});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::RecvCopySend), {connection(there)}, {connection(back)});
  return std::move(builder).take();
}

TEST(Race, OrderedMessagesOrder) {
  Plan plan = roundTrip();
  EXPECT_EQ(wordsOn(plan), "accepted");
  for (uint32_t link : {0u, 1u}) {
    plan = roundTrip();
    plan.connections[link].isOrdered = false;
    EXPECT_EQ(wordsOn(plan).substr(0, 60),
              "race (out of place), rank 0, thread block 1, instruction 1: ");
  }
  // Sent before it is written, the message tells nothing.
  plan = roundTrip();
  std::swap(plan.instructions[0].opcode, plan.instructions[1].opcode);
  std::swap(plan.operands[1], plan.operands[3]);
  EXPECT_EQ(wordsOn(plan).substr(0, 60),
            "race (out of place), rank 0, thread block 1, instruction 1: ");
}

TEST(Race, OnlySimpleMessagesCanBeOrdered) {
  Plan plan = roundTrip();
  plan.protocol = Protocol::LL;
  EXPECT_EQ(wordsOn(plan),
            "malformed plan: connection 0: it is marked ordered, but only messages of protocol "
            "Simple can order more than the data that they carry [E305]");
}

/// Rank 0 sends chunks [from, from + 2) of scratch to rank 1, which sends them back at once or when
/// it has them all; another thread block receives them in [to, to + 2).
Plan sentBack(uint32_t from, uint32_t to, bool atOnce) {
  PlanBuilder builder = start(2);
  uint32_t there = builder.addConnection(0, 0, {1}), back = builder.addConnection(1, 0, {0});
  builder.markOrdered(there);
  builder.markOrdered(back);
  auto two = [](Opcode opcode) { return Instruction{.opcode = opcode, .count = 2}; };
  builder.beginRank({.inputChunks = 1, .scratchChunks = 4});
  builder.beginThreadBlock();
  for (uint32_t chunk : {from, from + 1})
    builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, chunk)});
  builder.addInstruction(two(Opcode::Send), {scratch(0, from)}, {connection(there)});
  builder.beginThreadBlock();
  builder.addInstruction(two(Opcode::Recv), {connection(back)}, {scratch(0, to)});
  builder.beginRank({.outputChunks = 1, .scratchChunks = 2});
  builder.beginThreadBlock();
  if (atOnce) {
    builder.addInstruction(two(Opcode::RecvCopySend), {connection(there)},
                           {scratch(1, 0), connection(back)});
  } else {
    builder.addInstruction(two(Opcode::Recv), {connection(there)}, {scratch(1, 0)});
    builder.addInstruction(two(Opcode::Send), {scratch(1, 0)}, {connection(back)});
  }
  builder.addInstruction(one(Opcode::Copy), {scratch(1, 0)}, {output(1, 0)});
  return std::move(builder).take();
}

TEST(Race, InstructionsInStepAreOrderedSliceBySlice) {
  EXPECT_EQ(wordsOn(sentBack(0, 0, true)), "accepted");
  EXPECT_EQ(wordsOn(sentBack(1, 0, true)), "accepted") << "it overwrites what was sent before";
  EXPECT_EQ(
      wordsOn(sentBack(0, 1, true)),
      "race (out of place), rank 0, thread block 1, instruction 0: rank 0, scratch chunk 1: "
      "nothing orders two accesses: let it wait for thread block 0, instruction 2 [E330]\n"
      "  read by rank 0, thread block 0, instruction 2: send scratch[0..2] -> rank 1 (channel "
      "0)\n"
      "  written by rank 0, thread block 1, instruction 0: recv rank 1 (channel 0) -> "
      "scratch[1..3]");
  EXPECT_EQ(wordsOn(sentBack(0, 1, false)), "accepted");
}

Plan withWitness(Plan plan, std::vector<Place> places) {
  plan.witnesses = {{0, static_cast<uint32_t>(places.size())}};
  plan.places = std::move(places);
  return plan;
}

const std::vector<Place> kRoundTrip = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 1, 1}};

TEST(Witness, SavesTheSearch) {
  EXPECT_EQ(verifyPlan(roundTrip()).facts.searchedOrders, 2u) << "one in each alias mode";
  VerifyResult result = verifyPlan(withWitness(roundTrip(), kRoundTrip));
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.facts.searchedOrders, 0u);
}

TEST(Witness, OfInstructionsInStep) {
  std::vector<Place> places = {{0, 0, 2}, {1, 0, 0}, {0, 1, 0}};
  for (uint32_t from : {0u, 1u}) {
    VerifyResult result = verifyPlan(withWitness(sentBack(from, 0, true), places));
    EXPECT_TRUE(result) << result.text();
    EXPECT_EQ(result.facts.searchedOrders, 0u);
  }
  VerifyResult result = verifyPlan(withWitness(sentBack(0, 1, true), places));
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->proof(), Proof::Race);
  // A way through an instruction that is complete tells more.
  places = {{0, 0, 2}, {1, 0, 0}, {1, 0, 1}, {0, 1, 0}};
  result = verifyPlan(withWitness(sentBack(0, 1, false), places));
  EXPECT_TRUE(result) << result.text();
  EXPECT_EQ(result.facts.searchedOrders, 0u);
}

TEST(Race, InStepOfWhatIsReadTwice) {
  // Rank 0's first thread block reads chunk 1 of scratch as the second of a pair, then as the
  // first of another; when it comes back, its second thread block overwrites that as a first.
  PlanBuilder builder = start(2);
  auto two = [](Opcode opcode) { return Instruction{.opcode = opcode, .count = 2}; };
  uint32_t links[3];
  for (uint32_t i = 0; i < 3; ++i) {
    links[i] = builder.addConnection((i + 1) % 2, i / 2, {i % 2});
    builder.markOrdered(links[i]);
  }
  builder.beginRank({.inputChunks = 1, .scratchChunks = 4});
  builder.beginThreadBlock();
  for (uint32_t chunk : {0u, 1u, 2u})
    builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, chunk)});
  builder.addInstruction(two(Opcode::RecvReduceSend),
                         {scratch(0, 0), scratch(0, 1), connection(links[0])},
                         {connection(links[1])});
  builder.beginThreadBlock();
  builder.addInstruction(two(Opcode::Recv), {connection(links[2])}, {scratch(0, 1)});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 2});
  builder.beginThreadBlock();
  for (uint32_t chunk : {0u, 1u})
    builder.addInstruction(one(Opcode::Copy), {input(1, 0)}, {scratch(1, chunk)});
  builder.addInstruction(two(Opcode::Send), {scratch(1, 0)}, {connection(links[0])});
  builder.beginThreadBlock();
  builder.addInstruction(two(Opcode::RecvCopySend), {connection(links[1])}, {connection(links[2])});
  VerifyResult result = verifyPlan(std::move(builder).take());
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, Code::Race) << result.text();
}

/// Rank 0 sends chunks 0 and 1 of scratch around three times, each time by another thread block;
/// the last one stores them in chunks 1 and 2.
Plan sentAroundTwice() {
  PlanBuilder builder = start(2);
  auto two = [](Opcode opcode) { return Instruction{.opcode = opcode, .count = 2}; };
  uint32_t links[4];
  for (uint32_t i = 0; i < 4; ++i) {
    links[i] = builder.addConnection(i % 2, i / 2, {1 - i % 2});
    builder.markOrdered(links[i]);
  }
  builder.beginRank({.inputChunks = 1, .scratchChunks = 4});
  builder.beginThreadBlock();
  for (uint32_t chunk : {0u, 1u})
    builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, chunk)});
  builder.addInstruction(two(Opcode::Send), {scratch(0, 0)}, {connection(links[0])});
  builder.beginThreadBlock();
  builder.addInstruction(two(Opcode::RecvCopySend), {connection(links[1])}, {connection(links[2])});
  builder.beginThreadBlock();
  builder.addInstruction(two(Opcode::Recv), {connection(links[3])}, {scratch(0, 1)});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, 3)});
  builder.beginRank({.outputChunks = 1, .scratchChunks = 2});
  builder.beginThreadBlock();
  builder.addInstruction(two(Opcode::RecvCopySend), {connection(links[0])},
                         {scratch(1, 0), connection(links[1])});
  builder.addInstruction(one(Opcode::Copy), {scratch(1, 0)}, {output(1, 0)});
  builder.beginThreadBlock();
  builder.addInstruction(two(Opcode::RecvCopySend), {connection(links[2])}, {connection(links[3])});
  return std::move(builder).take();
}

TEST(Witness, InStepWithWhatIsInStep) {
  Plan plan = sentAroundTwice();
  plan.witnesses = {{0, 3}, {3, 3}};
  plan.places = {{0, 0, 2}, {1, 0, 0}, {0, 1, 0}, {0, 1, 0}, {1, 1, 0}, {0, 2, 0}};
  VerifyResult result = verifyPlan(plan);
  ASSERT_TRUE(result.error) << "chunk 0 of the third may come before chunk 1 of the first";
  EXPECT_EQ(result.error->code, Code::Race) << result.text();
}

TEST(Witness, TellsOfNoOthers) {
  Plan plan = sentAroundTwice();
  // What comes back is stored elsewhere, where the fourth thread block stores something as well.
  plan.operands[plan.instructions[4].firstOperand + 1].index = 2;
  EXPECT_EQ(verifyPlan(plan).error->code, Code::Race);
  EXPECT_EQ(verifyPlan(withWitness(plan, {{0, 0, 2}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}, {0, 2, 0}}))
                .error->code,
            Code::Race);
}

TEST(Witness, MustBeRight) {
  auto wordsOnWitness = [](std::vector<Place> places, Plan plan = roundTrip()) {
    return wordsOn(withWitness(std::move(plan), std::move(places)));
  };
  EXPECT_EQ(
      wordsOnWitness({{0, 0, 0}, {0, 2, 0}}),
      "race: witness 0: there is no instruction at rank 0, thread block 2, instruction 0 [E331]");
  EXPECT_EQ(wordsOnWitness({{4'000'000'000, 0, 0}, {0, 0, 0}}),
            "race: witness 0: there is no instruction at rank 4000000000, thread block 0, "
            "instruction 0 [E331]");
  EXPECT_EQ(
      wordsOnWitness({{0, 0, 7}, {0, 0, 0}}),
      "race: witness 0: there is no instruction at rank 0, thread block 0, instruction 7 [E331]");
  EXPECT_EQ(
      wordsOnWitness({{0, 0, 0}}),
      "race: witness 0: it has to lead from an instruction to another one of the same rank [E331]");
  EXPECT_EQ(
      wordsOnWitness({{0, 0, 0}, {0, 0, 1}, {1, 0, 0}}),
      "race: witness 0: it has to lead from an instruction to another one of the same rank [E331]");
  EXPECT_EQ(
      wordsOnWitness({{0, 0, 0}, {1, 0, 0}, {0, 1, 1}}),
      "race, rank 1, thread block 0, instruction 0: witness 0: it takes a step that is "
      "neither program order, nor a dependency, nor a message of an ordered connection [E331]\n"
      "  from rank 0, thread block 0, instruction 0: copy input[0] -> scratch[0]\n"
      "  to rank 1, thread block 0, instruction 0: recvCopySend rank 0 (channel 0) -> rank 0 "
      "(channel 0)");
  EXPECT_EQ(wordsOnWitness({{0, 1, 1}, {0, 1, 0}}).substr(0, 62),
            "race, rank 0, thread block 1, instruction 0: witness 0: it tak");
  Plan unordered = roundTrip();
  unordered.connections[0].isOrdered = false;
  EXPECT_EQ(wordsOnWitness(kRoundTrip, unordered).substr(0, 62),
            "race, rank 1, thread block 0, instruction 0: witness 0: it tak");
}

TEST(Witness, NamesTheVeryDependency) {
  PlanBuilder builder = start(1);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 2});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, 0)});
  builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, 1)});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Copy), {scratch(0, 1)}, {output(0, 0)}, {{0, 1}});
  Plan plan = std::move(builder).take();
  EXPECT_EQ(wordsOn(withWitness(plan, {{0, 0, 1}, {0, 1, 0}})), "accepted");
  EXPECT_EQ(wordsOn(withWitness(plan, {{0, 0, 0}, {0, 1, 0}})).substr(0, 62),
            "race, rank 0, thread block 1, instruction 0: witness 0: it tak");
}

TEST(Race, OneMessageForManyAccesses) {
  // Rank 0 writes 20,000 places and has one message go to rank 1 and back; then another thread
  // block reads them all. A search for each of them would spend any budget.
  constexpr uint32_t kPlaces = 20000;
  PlanBuilder builder = start(1);
  uint32_t there = builder.addConnection(0, 0, {1}), back = builder.addConnection(1, 0, {0});
  builder.markOrdered(there);
  builder.markOrdered(back);
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = kPlaces + 1});
  builder.beginThreadBlock();
  for (uint32_t i = 0; i < kPlaces; ++i)
    builder.addInstruction(one(Opcode::Copy), {input(0, 0)}, {scratch(0, i)});
  builder.addInstruction(one(Opcode::Send), {input(0, 0)}, {connection(there)});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Recv), {connection(back)}, {output(0, 0)});
  for (uint32_t i = 0; i < kPlaces; ++i)
    builder.addInstruction(one(Opcode::Copy), {scratch(0, i)}, {scratch(0, kPlaces)});
  builder.beginRank({});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::RecvCopySend), {connection(there)}, {connection(back)});
  EXPECT_EQ(wordsOn(std::move(builder).take()), "accepted");
}

TEST(Race, CreditsOrderNothing) {
  // At depth 1 rank 0 can send twice only after rank 1 has received once; what it then sends to
  // rank 1's other thread block still tells nothing of that receive.
  PlanBuilder builder = start(2);
  uint32_t link = builder.addConnection(0, 0, {1}), other = builder.addConnection(0, 1, {1});
  builder.markOrdered(link);
  builder.markOrdered(other);
  builder.header().depth = 1;
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  for (uint32_t to : {link, link, other})
    builder.addInstruction(one(Opcode::Send), {input(0, 0)}, {connection(to)});
  builder.beginRank({.outputChunks = 1, .scratchChunks = 3});
  builder.beginThreadBlock();
  for (uint32_t place : {0u, 1u})
    builder.addInstruction(one(Opcode::Recv), {connection(link)}, {scratch(1, place)});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Recv), {connection(other)}, {scratch(1, 2)});
  builder.addInstruction(one(Opcode::Copy), {scratch(1, 0)}, {output(1, 0)});
  EXPECT_EQ(wordsOn(std::move(builder).take()),
            "race (out of place), rank 1, thread block 1, instruction 1: rank 1, scratch chunk 0: "
            "nothing orders two accesses: let it wait for thread block 0, instruction 0 [E330]\n"
            "  written by rank 1, thread block 0, instruction 0: recv rank 0 (channel 0) -> "
            "scratch[0]\n"
            "  read by rank 1, thread block 1, instruction 1: copy scratch[0] -> output[0]");
}

} // namespace
} // namespace occl::plan
