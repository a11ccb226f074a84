// What docs/plan.md says of plans where a reader could think otherwise: for each statement a plan
// that is accepted and one that is not.
#include "plan/io/reader.h"
#include "plan/io/writer.h"
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

TEST(Format, ChunksThatAreOneInPlaceBeginTogether) {
  Plan plan = testing::shift(2, 3);
  plan.ranks[1].inPlaceOffset = 1;
  EXPECT_EQ(wordsOn(plan), "malformed plan: rank 1: in place, input chunk 0 is output chunk 1, "
                           "which is another chunk of a part of 3: only a plan for uniform chunks "
                           "may mix them [E314]");
  plan.ranks[1].inPlaceOffset = -2;
  EXPECT_EQ(wordsOn(plan), "malformed plan: rank 1: in place, input chunk 2 is output chunk 0, "
                           "which is another chunk of a part of 3: only a plan for uniform chunks "
                           "may mix them [E314]");
  plan.uniformChunks = true;
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan.uniformChunks = false;
  plan.inPlace = false;
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan.inPlace = true;
  for (int32_t offset : {4, -4, -3, 0, 3}) { // whole parts, or nothing is shared
    plan.ranks[1].inPlaceOffset = offset;
    EXPECT_EQ(wordsOn(plan), "accepted") << offset;
  }
  plan.ranks[1].inPlaceOffset = 0;
  plan.ranks[0].inPlaceOffset = 1; // there is no output
  EXPECT_EQ(wordsOn(plan), "accepted");
}

/// Input chunks 1 and 2, the last one of a part and the first one of the next, go to the output
/// through two slots.
Plan acrossParts(uint32_t secondExtent) {
  PlanBuilder builder = start(1);
  builder.header().requirements.clear();
  builder.header().contributions.clear();
  builder.header().partChunks = 2;
  builder.header().inPlace = false;
  Contribution first = {0, 1};
  builder.addRequirement({.rank = 0, .outputChunk = 1, .count = 2}, {&first, 1});
  builder.beginRank({.inputChunks = 4, .outputChunks = 4, .scratchChunks = 2});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Copy, .count = 2, .extent = 1}, {input(0, 1)},
                         {scratch(0, 0)});
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1, .extent = 1}, {scratch(0, 0)},
                         {output(0, 1)});
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1, .extent = secondExtent},
                         {scratch(0, 1)}, {output(0, 2)});
  return std::move(builder).take();
}

TEST(Format, ExtentsGoOnWithTheNextPart) {
  EXPECT_EQ(wordsOn(acrossParts(0)), "accepted");
  EXPECT_NE(wordsOn(acrossParts(1)).find("[E314]"), std::string::npos);
}

TEST(Format, ConnectionsMayHaveTheSameEndsAndChannel) {
  PlanBuilder builder = start(2);
  uint32_t links[] = {builder.addConnection(0, 3, {1}), builder.addConnection(0, 3, {1})};
  builder.header().inPlace = false;
  builder.beginRank({.inputChunks = 1});
  for (uint32_t link : links) {
    builder.beginThreadBlock();
    builder.addInstruction(one(Opcode::Send), {input(0, 0)}, {connection(link)});
  }
  builder.beginRank({.outputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Recv), {connection(links[1])}, {scratch(1, 0)});
  builder.addInstruction(one(Opcode::Recv), {connection(links[0])}, {output(1, 0)});
  Plan plan = std::move(builder).take();
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan.operands.back() = output(1, 0);
  plan.operands[plan.operands.size() - 2] = connection(links[1]); // both of the second one's
  EXPECT_NE(wordsOn(plan).find("[E32"), std::string::npos);
}

TEST(Format, StandardOffsetsHoldWhereTheyHaveNoEffect) {
  Plan plan = testing::chainBroadcast(3);
  plan.ranks[2].inputChunks = 0;
  EXPECT_EQ(wordsOn(plan), "accepted");
  plan.ranks[2].inPlaceOffset = 4;
  EXPECT_EQ(wordsOn(plan),
            "malformed plan: broadcast: rank 2: inPlaceOffset is 4, expected 0 [E308]");
  plan = testing::ringAllGather(3);
  plan.inPlace = false;
  plan.ranks[2].inPlaceOffset = 0;
  EXPECT_EQ(wordsOn(plan),
            "malformed plan: allgather: rank 2: inPlaceOffset is 0, expected 2 [E308]");
}

TEST(Format, WithoutRequirementsThereIsNothingToDo) {
  Plan plan = testing::shift(2);
  plan.requirements.clear();
  plan.contributions.clear();
  EXPECT_NE(wordsOn(plan).find("[E307]"), std::string::npos);
  plan.instructions.clear();
  plan.operands.clear();
  plan.threadBlocks.clear();
  for (RankPlan &rank : plan.ranks)
    rank.firstThreadBlock = rank.numThreadBlocks = 0;
  EXPECT_EQ(wordsOn(plan), "accepted");
}

TEST(Format, AnOperandMayNameItsOwnRank) {
  Plan plan = testing::chainReduce(2, 2);
  std::string text = encodePlan(plan, Format::Json);
  auto withOperand = [&](const std::string &to) {
    std::string changed = text;
    const std::string from = R"("src": [["input", 0]])";
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos);
    return readPlan(changed.replace(at, from.size(), R"("src": [)" + to + "]"));
  };
  support::Expected<Plan> own = withOperand(R"(["input", 0, 1])");
  ASSERT_TRUE(own) << own.message();
  EXPECT_EQ(encodePlan(*own, Format::Json), text) << "the writer names other ranks only";
  EXPECT_EQ(wordsOn(*own), "accepted");
  support::Expected<Plan> other = withOperand(R"(["input", 0, 0])");
  ASSERT_TRUE(other) << other.message();
  EXPECT_NE(wordsOn(*other).find("[E313]"), std::string::npos);
}

/// One rank that reduces its input chunk 0 `times` times with itself.
Plan summedUp(uint32_t times, std::vector<Contribution> wanted) {
  PlanBuilder builder = start(1);
  builder.header().requirements.clear();
  builder.header().contributions.clear();
  builder.header().inPlace = false;
  builder.header().average = false;
  builder.addRequirement({.rank = 0, .outputChunk = 0, .count = 1}, wanted);
  builder.beginRank({.inputChunks = 2, .outputChunks = 1});
  builder.beginThreadBlock();
  std::vector<Operand> sources(times, input(0, 0));
  builder.addInstruction(one(times == 1 ? Opcode::Copy : Opcode::Reduce), sources,
                         std::vector<Operand>{output(0, 0)});
  return std::move(builder).take();
}

TEST(Format, AContributionCountsAsOftenAsItIsListed) {
  const std::vector<Contribution> once = {{0, 0}}, twice = {{0, 0}, {0, 0}};
  EXPECT_EQ(wordsOn(summedUp(1, once)), "accepted");
  EXPECT_EQ(wordsOn(summedUp(2, twice)), "accepted");
  EXPECT_NE(wordsOn(summedUp(2, once)).find("is counted 2 times [E341]"), std::string::npos);
  EXPECT_NE(wordsOn(summedUp(1, twice)).find("[E340]"), std::string::npos)
      << wordsOn(summedUp(1, twice));
}

TEST(Format, AllRequirementsOfAChunkHold) {
  Plan plan = summedUp(1, {{0, 0}});
  auto require = [&](uint32_t chunk) {
    plan.requirements.push_back(plan.requirements[0]);
    plan.requirements.back().firstContribution = static_cast<uint32_t>(plan.contributions.size());
    plan.contributions.push_back({0, chunk});
  };
  require(0);
  EXPECT_EQ(wordsOn(plan), "accepted");
  require(1);
  EXPECT_NE(wordsOn(plan).find("[E342]"), std::string::npos) << wordsOn(plan);
}

/// Rank 0 reads rank 1's input, then sends rank 1 a message.
Plan readThenSent(bool isOrdered) {
  PlanBuilder builder = start(2);
  builder.header().inPlace = false;
  uint32_t link = builder.addConnection(0, 0, {1});
  if (isOrdered)
    builder.markOrdered(link);
  builder.beginRank({.inputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::LoadReduceStore), {input(1, 0)}, {scratch(0, 0)});
  builder.addInstruction(one(Opcode::Send), {input(0, 0)}, {connection(link)});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(one(Opcode::Recv), {connection(link)}, {output(1, 0)});
  return std::move(builder).take();
}

TEST(Format, OnlyOrderedMessagesKeepABufferAlive) {
  EXPECT_EQ(wordsOn(readThenSent(true)), "accepted");
  EXPECT_NE(wordsOn(readThenSent(false)).find("[E345]"), std::string::npos);
}

} // namespace
} // namespace occl::plan
