// The flat layout that the builder makes, and the spelling of enumerators.
#include "plan/model/builder.h"
#include "plan/model/names.h"

#include <gtest/gtest.h>

namespace occl::plan {
namespace {

TEST(Builder, LaysOutInOrder) {
  PlanBuilder builder;
  EXPECT_EQ(builder.addConnection(0, 2, {1, 3}), 0u);
  EXPECT_EQ(builder.addConnection(3, 0, {2}), 1u);
  builder.beginRank({.inputChunks = 4});
  builder.beginThreadBlock();
  EXPECT_EQ(
      builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {input(0, 1)}, {connection(0)}),
      0u);
  EXPECT_EQ(builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {input(0, 2)},
                                   {scratch(0, 3)}, {{1, 0}, {2, 5}}),
            1u);
  builder.beginThreadBlock();
  builder.beginRank({.outputChunks = 2, .inPlaceOffset = -1});
  builder.beginThreadBlock();
  EXPECT_EQ(builder.addInstruction({.opcode = Opcode::Recv}, {connection(0)}, {output(1, 0)}), 0u);
  Contribution contributions[] = {{0, 1}, {1, 0}};
  builder.addRequirement({.rank = 1, .outputChunk = 1, .count = 1}, contributions);
  Plan plan = std::move(builder).take();

  EXPECT_EQ(plan.numRanks, 2u);
  EXPECT_EQ(plan.threadBlocks.size(), 3u);
  EXPECT_EQ(plan.threadBlocksOf(plan.ranks[0]).size(), 2u);
  EXPECT_EQ(plan.ranks[1].firstThreadBlock, 2u);
  EXPECT_EQ(plan.ranks[1].inPlaceOffset, -1);
  const Instruction &copy = plan.instructionsOf(plan.threadBlocks[0])[1];
  EXPECT_EQ(plan.sourcesOf(copy)[0], input(0, 2));
  EXPECT_EQ(plan.destinationsOf(copy)[0], scratch(0, 3));
  EXPECT_EQ(plan.dependenciesOf(copy)[1], (Dependency{2, 5}));
  EXPECT_TRUE(plan.instructionsOf(plan.threadBlocks[1]).empty());
  EXPECT_EQ(plan.sourcesOf(plan.instructionsOf(plan.threadBlocks[2])[0])[0], connection(0));
  EXPECT_EQ(plan.destinationsOf(plan.connections[0])[1], 3u);
  EXPECT_EQ(plan.destinationsOf(plan.connections[1])[0], 2u);
  EXPECT_EQ(plan.contributionsOf(plan.requirements[0])[1], (Contribution{1, 0}));
}

TEST(Builder, StoresEqualPlacesOnce) {
  PlanBuilder builder;
  uint32_t file = builder.file("a.coll");
  EXPECT_EQ(builder.file("b.coll"), 1u);
  EXPECT_EQ(builder.file("a.coll"), file);
  uint32_t location = builder.location(file, 3, 4);
  EXPECT_NE(builder.location(file, 3, 5), location);
  EXPECT_EQ(builder.location(file, 3, 4), location);
  Plan plan = std::move(builder).take();
  EXPECT_EQ(plan.files.size(), 2u);
  EXPECT_EQ(plan.locations.size(), 2u);
}

TEST(Names, GoBothWays) {
  for (unsigned i = 0; i < kNumOpcodes; ++i) {
    auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(opcodeOf(mnemonic(opcode)), opcode);
  }
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(operandKindOf(nameOf(static_cast<OperandKind>(i))), static_cast<OperandKind>(i));
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(protocolOf(nameOf(static_cast<Protocol>(i))), static_cast<Protocol>(i));
  EXPECT_EQ(opcodeOf("nop"), std::nullopt);
  EXPECT_EQ(operandKindOf(""), std::nullopt);
  EXPECT_EQ(protocolOf("LL64"), std::nullopt);
  EXPECT_EQ(nameOf(static_cast<OperandKind>(9)), "invalid");
}

} // namespace
} // namespace occl::plan
