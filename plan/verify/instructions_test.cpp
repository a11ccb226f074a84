// What verifyPlan says of malformed instructions: one bad plan for each rule.
#include "plan/model/builder.h"
#include "plan/model/limits.h"
#include "plan/model/names.h"
#include "plan/testing/example_plans.h"
#include "plan/testing/small_plans.h"
#include "plan/verify/verifier.h"

#include <functional>
#include <gtest/gtest.h>

namespace occl::plan {
namespace {

std::string wordsOn(const Plan &plan) {
  VerifyResult result = verifyPlan(plan);
  return result.error ? result.text() : "accepted";
}

/// The verifier's words on one chain reduce of two ranks, two chunks, after `damage` to rank 0's
/// first instruction (recvReduceCopy connection 1 + input[0] -> output[0]) and its operands.
std::string wordsOn(const std::function<void(Instruction &, Operand *)> &damage) {
  Plan plan = testing::chainReduce(2, 2);
  damage(plan.instructions[0], &plan.operands[0]);
  return wordsOn(plan);
}

/// One rank that copies input to output by `instruction`, with one operand each.
Plan single(Instruction instruction, Operand source, Operand destination, uint32_t chunks = 4) {
  PlanBuilder builder;
  builder.header() = testing::chainBroadcast(1, chunks);
  Plan &plan = builder.header();
  plan.ranks.clear();
  plan.threadBlocks.clear();
  plan.instructions.clear();
  plan.operands.clear();
  builder.beginRank({.inputChunks = chunks, .outputChunks = chunks, .scratchChunks = chunks});
  builder.beginThreadBlock();
  builder.addInstruction(instruction, {source}, {destination});
  return std::move(builder).take();
}

const std::string kPlace = "malformed plan, rank 0, thread block 0, instruction 0: ";

TEST(Instructions, Fields) {
  EXPECT_EQ(wordsOn([](Instruction &, Operand *) {}), "accepted");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.opcode = static_cast<Opcode>(kNumOpcodes); }),
            kPlace + "the opcode is invalid [E309]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.location = kNoLocation - 1; }),
            kPlace + "there is no source location 4294967294 [E310]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.count = 0; }),
            kPlace + "it moves 0 chunks, allowed are 1 to 4194304 [E311]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.count = limits::kMaxChunks + 1; }),
            kPlace + "it moves 4194305 chunks, allowed are 1 to 4194304 [E311]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.extent = 2; }),
            kPlace + "extent 2 is no chunk of a part of 2 [E311]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.value = 1; }),
            kPlace + "only wait has a value [E311]");
  Instruction copy = {.opcode = Opcode::Copy, .final = true, .count = 1};
  EXPECT_EQ(wordsOn(single(copy, input(0, 0), output(0, 0))),
            kPlace + "it is marked final but reduces nothing [E311]");
}

TEST(Instructions, LocationsOfFilesThatDoNotExist) {
  Plan plan = single({.opcode = Opcode::Copy, .count = 1}, input(0, 0), output(0, 0));
  plan.files = {"a.coll"};
  plan.locations = {{1, 2, 3}};
  plan.instructions[0].location = 0;
  EXPECT_EQ(wordsOn(plan), kPlace + "there is no source location 0 [E310]");
}

TEST(Instructions, Shapes) {
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.opcode = Opcode::Reduce; }),
            kPlace + "reduce has the wrong kind or number of sources [E312]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.opcode = Opcode::Recv; }),
            kPlace + "recv has the wrong kind or number of sources [E312]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.opcode = Opcode::RecvReduceSend; }),
            kPlace + "recvReduceSend has the wrong kind or number of destinations [E312]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[0] = input(0, 0); }),
            kPlace + "recvReduceCopy has the wrong kind or number of sources [E312]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[2] = connection(0); }),
            kPlace + "recvReduceCopy has the wrong kind or number of destinations [E312]");
}

/// Numbers of operands: local and connections.
struct Numbers {
  uint32_t localSources, receives, localDestinations, sends;
};

bool isAllowed(Opcode opcode, const Numbers &n) {
  uint32_t sources = n.localSources + n.receives;
  bool stores = n.localDestinations == 1 && n.sends == 0;
  bool reduces = sources >= 2 && n.receives >= 1;
  switch (opcode) {
  case Opcode::Copy:
    return n.localSources == 1 && n.receives == 0 && stores;
  case Opcode::Reduce:
    return n.localSources >= 2 && n.receives == 0 && stores;
  case Opcode::Send:
    return n.localSources == 1 && n.receives == 0 && n.localDestinations == 0 && n.sends >= 1;
  case Opcode::Recv:
    return n.localSources == 0 && n.receives == 1 && stores;
  case Opcode::RecvReduceCopy:
    return reduces && stores;
  case Opcode::RecvCopySend:
    return n.localSources == 0 && n.receives == 1 && n.localDestinations <= 1 && n.sends >= 1;
  case Opcode::RecvReduceSend:
    return reduces && n.localDestinations == 0 && n.sends >= 1;
  case Opcode::RecvReduceCopySend:
    return reduces && n.localDestinations == 1 && n.sends >= 1;
  case Opcode::LoadReduceStore:
    return n.localSources >= 1 && n.receives == 0 && n.localDestinations >= 1 && n.sends == 0;
  case Opcode::Signal:
    return sources == 0 && n.localDestinations == 0 && n.sends == 1;
  case Opcode::Wait:
    return n.localSources == 0 && n.receives >= 1 && n.localDestinations == 0 && n.sends == 0;
  }
  return false;
}

/// Rank 0 of two does this one instruction, which moves a chunk of scratch.
Plan withOperands(Opcode opcode, const Numbers &n) {
  PlanBuilder builder = testing::start(2);
  std::vector<Operand> sources, destinations;
  auto addConnection = [&](uint32_t from, uint32_t channel) {
    uint32_t index = isControl(opcode) ? builder.addCounter(from, {1 - from})
                                       : builder.addConnection(from, channel, {1 - from});
    return connection(index);
  };
  for (uint32_t i = 0; i < n.localSources; ++i)
    sources.push_back(scratch(0, i));
  for (uint32_t i = 0; i < n.receives; ++i)
    sources.push_back(addConnection(1, i));
  for (uint32_t i = 0; i < n.localDestinations; ++i)
    destinations.push_back(scratch(0, 4 + i));
  for (uint32_t i = 0; i < n.sends; ++i)
    destinations.push_back(addConnection(0, i));
  builder.beginRank({.inputChunks = 1, .scratchChunks = 512});
  builder.beginThreadBlock();
  Instruction instruction = {.opcode = opcode, .count = isControl(opcode) ? 0u : 1u};
  instruction.value = opcode == Opcode::Wait ? 1 : 0;
  builder.addInstruction(instruction, std::span<const Operand>(sources), destinations);
  builder.beginRank({.outputChunks = 1});
  return std::move(builder).take();
}

TEST(Instructions, AllShapes) {
  for (unsigned opcode = 0; opcode <= static_cast<unsigned>(Opcode::Wait); ++opcode)
    for (unsigned numbers = 0; numbers < 81; ++numbers) {
      Numbers n = {numbers % 3, numbers / 3 % 3, numbers / 9 % 3, numbers / 27};
      Plan plan = withOperands(static_cast<Opcode>(opcode), n);
      bool isRefused = wordsOn(plan).find("has the wrong kind or number") != std::string::npos;
      EXPECT_EQ(isRefused, !isAllowed(static_cast<Opcode>(opcode), n))
          << mnemonic(static_cast<Opcode>(opcode)) << " of " << n.localSources << " and "
          << n.receives << " sources, " << n.localDestinations << " and " << n.sends
          << " destinations";
    }
}

TEST(Instructions, ManyDestinations) {
  Plan plan = withOperands(Opcode::LoadReduceStore, {1, 0, 256, 0});
  EXPECT_EQ(wordsOn(plan).find("has the wrong kind or number"), std::string::npos);
}

TEST(Instructions, Operands) {
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[1].kind = static_cast<OperandKind>(4); }),
            kPlace + "the kind of an operand is invalid [E312]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[1].rank = 1; }),
            kPlace + "it accesses a buffer of rank 1: that rank does not exist, or the instruction "
                     "is not loadReduceStore [E313]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[1].index = 2; }),
            kPlace + "it accesses input chunks 2 to 2 of 2 [E313]");
  EXPECT_EQ(wordsOn([](Instruction &i, Operand *) { i.count = 3; }),
            kPlace + "it accesses input chunks 0 to 2 of 2 [E313]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[1].index = 1; }),
            kPlace +
                "input chunk 1 has extent 1, the instruction 0: only a plan for uniform chunks "
                "may mix them [E314]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[0].index = 2; }),
            kPlace + "there is no connection 2 [E315]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[0].rank = 1; }),
            kPlace + "the operand of connection 1 names a rank [E315]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[0].index = 0; }),
            kPlace + "connection 0 (rank 0 to rank 1, channel 0) does not end here [E315]");
  EXPECT_EQ(wordsOn([](Instruction &, Operand *o) { o[1] = connection(1); }),
            kPlace + "it uses connection 1 twice [E316]");
  Plan plan = testing::chainReduce(2, 2);
  plan.operands[7] = connection(0); // rank 1's first send
  EXPECT_EQ(wordsOn(plan), "malformed plan, rank 1, thread block 0, instruction 0: connection 0 "
                           "(rank 0 to rank 1, channel 0) does not start here [E315]");
}

TEST(Instructions, PartialOverlap) {
  Instruction copy = {.opcode = Opcode::Copy, .count = 2};
  auto words = [&](Operand source, Operand destination, bool inPlace) {
    Plan plan = single(copy, source, destination);
    plan.uniformChunks = true;
    plan.inPlace = inPlace;
    return wordsOn(plan);
  };
  EXPECT_EQ(words(scratch(0, 0), scratch(0, 1), true),
            kPlace + "scratch chunks from 0 and scratch chunks from 1 overlap: split the "
                     "instruction [E317]");
  EXPECT_EQ(words(input(0, 1), output(0, 0), true),
            "malformed plan (in place), rank 0, thread block 0, instruction 0: input chunks from 1 "
            "and output chunks from 0 overlap: split the instruction [E317]");
  EXPECT_EQ(words(output(0, 0), output(0, 1), true),
            kPlace + "output chunks from 0 and output chunks from 1 overlap: split the "
                     "instruction [E317]");
  for (auto [source, destination] : {std::pair(scratch(0, 0), output(0, 1)),
                                     {input(0, 0), scratch(0, 1)},
                                     {scratch(0, 1), output(0, 0)}})
    EXPECT_EQ(words(source, destination, true).find("overlap"), std::string::npos);
  EXPECT_NE(words(input(0, 1), output(0, 0), false).find("wrong result"), std::string::npos);
  EXPECT_NE(words(input(0, 2), output(0, 0), true).find("wrong result"), std::string::npos);
}

TEST(Instructions, PartialOverlapWhereTheInputIsInsideTheOutput) {
  // Rank 1's input is output chunks 2 and 3.
  auto words = [](uint32_t destination) {
    Plan plan = testing::ringAllGather(3);
    plan.partChunks = 2;
    for (RankPlan &rank : plan.ranks) {
      rank.inputChunks *= 2;
      rank.outputChunks *= 2;
      rank.inPlaceOffset *= 2;
    }
    plan.uniformChunks = true;
    Instruction &copy = plan.instructions[plan.threadBlocks[1].firstInstruction];
    copy.count = 2;
    plan.operands[copy.firstOperand + 1].index = destination;
    return wordsOn(plan);
  };
  for (uint32_t destination : {0u, 2u})
    EXPECT_EQ(words(destination).find("overlap"), std::string::npos);
  EXPECT_EQ(words(1), "malformed plan (in place), rank 1, thread block 0, instruction 0: input "
                      "chunks from 0 and output chunks from 1 overlap: split the instruction "
                      "[E317]");
  EXPECT_EQ(words(3), "malformed plan (in place), rank 1, thread block 0, instruction 0: input "
                      "chunks from 0 and output chunks from 3 overlap: split the instruction "
                      "[E317]");
}

TEST(Instructions, LoadReduceStore) {
  Instruction both = {.opcode = Opcode::LoadReduceStore, .count = 4};
  Plan plan = single(both, input(0, 0), output(0, 0));
  EXPECT_EQ(wordsOn(plan), "accepted") << "within one rank it is a copy";
  plan = testing::chainReduce(2, 2);
  // Rank 0 takes rank 1's input directly, and nothing is sent.
  plan.instructions[0].opcode = Opcode::LoadReduceStore;
  plan.operands[0] = input(1, 0);
  plan.instructions.resize(1);
  plan.threadBlocks[0].numInstructions = 1;
  plan.threadBlocks[1] = {1, 0};
  plan.operands.resize(3);
  Plan beyond = plan;
  beyond.operands[0].rank = 2;
  EXPECT_EQ(wordsOn(beyond),
            "malformed plan, rank 0, thread block 0, instruction 0: it accesses a buffer of rank "
            "2: that rank does not exist, or the instruction is not loadReduceStore [E313]");
  EXPECT_EQ(wordsOn(plan),
            "access outside of a buffer's lifetime, rank 0, thread block 0, instruction 0: it may "
            "access rank 1's memory after rank 1 has ended: signal that it is done, and let rank 1 "
            "wait for it [E345]\n  rank 0, thread block 0, instruction 0: loadReduceStore input[0] "
            "of rank "
            "1 + input[0] of rank 0 -> output[0] of rank 0, final, at chain_reduce.coll:5:5");
  Instruction store = {.opcode = Opcode::LoadReduceStore, .count = 1};
  PlanBuilder builder;
  builder.header() = single(store, input(0, 0), output(0, 0));
  builder.addInstruction(store, {input(0, 0)}, {scratch(0, 1), scratch(0, 1)});
  EXPECT_EQ(wordsOn(std::move(builder).take()),
            "malformed plan, rank 0, thread block 0, instruction 1: scratch chunks from 1 and "
            "scratch chunks from 1 overlap: split the instruction [E317]");
}

TEST(Instructions, NumberOfOperands) {
  auto words = [](uint32_t numSources, uint32_t numDependencies) {
    PlanBuilder builder;
    Instruction copy = {.opcode = Opcode::Copy, .count = 1};
    builder.header() = single(copy, input(0, 0), output(0, 0), 1);
    builder.addInstruction(
        {.opcode = Opcode::Reduce, .count = 1}, std::vector<Operand>(numSources, input(0, 0)),
        std::vector<Operand>{scratch(0, 0)}, std::vector<Dependency>(numDependencies));
    return wordsOn(std::move(builder).take());
  };
  EXPECT_EQ(words(limits::kMaxOperands - 1, limits::kMaxDependencies), "accepted");
  const std::string place = "malformed plan, rank 0, thread block 0, instruction 1: ";
  EXPECT_EQ(words(limits::kMaxOperands, 0),
            place + "it has 4097 operands and 0 dependencies, allowed are 4096 and 1024 [E302]");
  EXPECT_EQ(words(2, limits::kMaxDependencies + 1),
            place + "it has 3 operands and 1025 dependencies, allowed are 4096 and 1024 [E302]");
}

TEST(Instructions, Dependencies) {
  auto words = [](Dependency dependency) {
    Plan plan = testing::twoShotAllReduce(2);
    plan.dependencies[0] = dependency;
    return wordsOn(plan);
  };
  const std::string place = "malformed plan, rank 0, thread block 2, instruction 0: the dependency "
                            "on thread block ";
  EXPECT_EQ(words({4, 0}), place + "4, instruction 0 points nowhere [E318]");
  EXPECT_EQ(words({1, 1}), place + "1, instruction 1 points nowhere [E318]");
  EXPECT_EQ(words({2, 0}), place + "2, instruction 0 points to itself or to a later instruction of "
                                   "its own thread block [E318]\n"
                                   "  it would wait for rank 0, thread block 2, instruction 0");
}

TEST(Instructions, Ownership) {
  Plan plan = testing::chainReduce(2, 2);
  plan.threadBlocks = {{0, 1}, {1, 1}, {2, 2}};
  plan.ranks[0].numThreadBlocks = 2;
  plan.ranks[1].firstThreadBlock = 2;
  EXPECT_EQ(
      wordsOn(plan),
      "malformed plan, rank 0, thread block 1, instruction 0: thread blocks 0 and 1 both "
      "receive from connection 1 (rank 1 to rank 0, channel 0): one must own that end [E319]\n"
      "  the other one: rank 0, thread block 0, instruction 0: recvReduceCopy rank 1 (channel 0) + "
      "input[0] -> output[0], final, at chain_reduce.coll:5:5");
  plan.threadBlocks = {{0, 2}, {2, 1}, {3, 1}};
  plan.ranks[0].numThreadBlocks = 1;
  plan.ranks[1] = {2, 2, 0, 0, 1, 2};
  EXPECT_EQ(
      wordsOn(plan),
      "malformed plan, rank 1, thread block 1, instruction 0: thread blocks 0 and 1 both send "
      "to connection 1 (rank 1 to rank 0, channel 0): one must own that end [E319]\n"
      "  the other one: rank 1, thread block 0, instruction 0: send input[0] -> rank 0 (channel "
      "0), "
      "at chain_reduce.coll:4:5");
}

TEST(Instructions, Work) {
  // A small file that asks for more work than any plan of its size deserves.
  PlanBuilder builder;
  builder.header() = single({.opcode = Opcode::Copy, .count = limits::kMaxChunks}, input(0, 0),
                            output(0, 0), limits::kMaxChunks);
  for (uint32_t i = 0; i < 20; ++i)
    builder.addInstruction({.opcode = Opcode::Copy, .count = limits::kMaxChunks}, {input(0, 0)},
                           {scratch(0, 0)});
  EXPECT_EQ(wordsOn(std::move(builder).take()),
            "malformed plan, rank 0, thread block 0, instruction 16: up to here the plan accesses "
            "more than 134217728 chunks [E302]");
}

} // namespace
} // namespace occl::plan
