#include "tools/occl-run/reference.h"

#include "tools/occl-run/elements.h"

#include <gtest/gtest.h>

namespace occl::run {
namespace {

/// A plan without instructions: only what the reference looks at.
plan::Plan planOf(const std::string &collective, uint32_t numRanks, uint32_t partChunks,
                  uint32_t inputParts, uint32_t outputParts) {
  plan::Plan plan;
  plan.collective = collective;
  plan.numRanks = numRanks;
  plan.partChunks = partChunks;
  plan::RankPlan rank;
  rank.inputChunks = inputParts * partChunks;
  rank.outputChunks = outputParts * partChunks;
  plan.ranks.assign(numRanks, rank);
  return plan;
}

TEST(Reference, addsUpAllRanks) {
  plan::Plan plan = planOf("allreduce", 3, 4, 1, 1);
  Reference reference(plan, 1001, occlFloat32, occlSum, 5);
  EXPECT_EQ(reference.inputElements(0), 1001u);
  auto output = reference.output(1);
  ASSERT_EQ(output.size(), 1001u);
  for (uint64_t e : {0, 500, 1000})
    EXPECT_EQ(*output[e], reference.input(0, e) + reference.input(1, e) + reference.input(2, e));
}

TEST(Reference, scattersGathersAndExchangesParts) {
  plan::Plan scatter = planOf("reducescatter", 2, 3, 2, 1);
  Reference reduced(scatter, 10, occlInt32, occlMax, 1);
  EXPECT_EQ(*reduced.output(1)[4], std::max(reduced.input(0, 14), reduced.input(1, 14)));

  plan::Plan gather = planOf("allgather", 2, 3, 1, 2);
  Reference gathered(gather, 10, occlInt32, occlSum, 1);
  ASSERT_EQ(gathered.output(0).size(), 20u);
  EXPECT_EQ(*gathered.output(0)[13], gathered.input(1, 3));

  plan::Plan exchange = planOf("alltoall", 2, 1, 2, 2);
  Reference exchanged(exchange, 10, occlInt32, occlSum, 1);
  EXPECT_EQ(*exchanged.output(1)[3], exchanged.input(0, 13));
  EXPECT_EQ(*exchanged.output(0)[13], exchanged.input(1, 3));
}

TEST(Reference, leavesOpenWhatACollectiveLeavesOpen) {
  plan::Plan reduce = planOf("reduce", 3, 1, 1, 1);
  reduce.root = 2;
  Reference reference(reduce, 4, occlFloat64, occlSum, 1);
  EXPECT_FALSE(reference.output(0)[0].has_value());
  EXPECT_TRUE(reference.output(2)[0].has_value());

  plan::Plan broadcast = planOf("broadcast", 3, 1, 1, 1);
  broadcast.root = 1;
  Reference copied(broadcast, 4, occlFloat64, occlSum, 1);
  EXPECT_EQ(*copied.output(2)[3], copied.input(1, 3));
}

TEST(Reference, followsTheRequirementsOfAnOwnCollective) {
  plan::Plan plan = planOf("shift", 2, 2, 1, 1);
  plan.contributions = {{0, 1}, {0, 0}, {1, 0}};
  plan.requirements = {{1, 0, 1, 0, 1}, {0, 1, 1, 1, 2}};
  Reference reference(plan, 10, occlFloat32, occlSum, 3);
  auto shifted = reference.output(1), summed = reference.output(0);
  EXPECT_EQ(*shifted[2], reference.input(0, 7));
  EXPECT_FALSE(shifted[5].has_value());
  EXPECT_EQ(*summed[6], reference.input(0, 1) + reference.input(1, 1));
}

TEST(Reference, dividesAverages) {
  plan::Plan plan = planOf("allreduce", 4, 1, 1, 1);
  Reference real(plan, 100, occlFloat64, occlAvg, 2), whole(plan, 100, occlInt32, occlAvg, 2);
  for (uint64_t e = 0; e < 100; ++e) {
    double sum = 0;
    int wholeSum = 0;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      sum += real.input(rank, e);
      wholeSum += static_cast<int>(whole.input(rank, e));
    }
    EXPECT_EQ(*real.output(0)[e], sum / 4);
    EXPECT_EQ(*whole.output(0)[e], wholeSum / 4);
  }
}

TEST(Reference, inputsDifferBetweenRanksAndSeeds) {
  plan::Plan plan = planOf("allreduce", 2, 1, 1, 1);
  Reference first(plan, 100, occlFloat32, occlSum, 1), second(plan, 100, occlFloat32, occlSum, 2);
  int equalRanks = 0, equalSeeds = 0;
  for (uint64_t e = 0; e < 100; ++e) {
    equalRanks += first.input(0, e) == first.input(1, e);
    equalSeeds += first.input(0, e) == second.input(0, e);
  }
  EXPECT_LT(equalRanks, 60);
  EXPECT_LT(equalSeeds, 60);
}

TEST(Reference, placesTheInputWithinTheOutput) {
  plan::Plan gather = planOf("allgather", 3, 2, 1, 3);
  gather.ranks[2].inPlaceOffset = 4;
  EXPECT_EQ(Reference(gather, 7, occlUint8, occlSum, 1).inPlaceOffset(2), 14);
  plan::Plan scatter = planOf("reducescatter", 3, 2, 3, 1);
  scatter.ranks[1].inPlaceOffset = -2;
  EXPECT_EQ(Reference(scatter, 7, occlUint8, occlSum, 1).inPlaceOffset(1), -7);
}

TEST(Elements, everyTypeHoldsWhatIsStored) {
  std::byte buffer[64] = {};
  for (const auto &[name, type] : dataTypes())
    for (double value : {0.0, 1.0, 3.0, 64.0}) {
      storeElement(type, buffer, 3, value);
      EXPECT_EQ(loadElement(type, buffer, 3), value) << name;
      EXPECT_EQ(loadElement(type, buffer, 2), 0) << name;
    }
  storeElement(occlFloat16, buffer, 0, -1.5);
  EXPECT_EQ(loadElement(occlFloat16, buffer, 0), -1.5);
  // The bits that the formats' definitions give.
  storeElement(occlFloat8E4m3, buffer, 0, -1.5);
  EXPECT_EQ(buffer[0], std::byte(0xbc));
  storeElement(occlFloat8E5m2, buffer, 0, -1.5);
  EXPECT_EQ(buffer[0], std::byte(0xbe));
  storeElement(occlFloat8E4m3, buffer, 0, 0x1p-9);
  EXPECT_EQ(buffer[0], std::byte(1));
}

TEST(Elements, correctMeansExactForIntegersAndOneRoundingForTheRest) {
  EXPECT_TRUE(isCorrect(occlInt32, 7, 7));
  EXPECT_FALSE(isCorrect(occlInt32, 7, 8));
  EXPECT_TRUE(isCorrect(occlUint8, 260, 4));
  EXPECT_TRUE(isCorrect(occlInt8, 200, -56));
  EXPECT_FALSE(isCorrect(occlInt8, 200, 200));
  EXPECT_TRUE(isCorrect(occlFloat32, 1.0 / 3, 1.0f / 3));
  EXPECT_FALSE(isCorrect(occlFloat32, 1.0 / 3, 0.3333));
  EXPECT_TRUE(isCorrect(occlBfloat16, 1.0 / 3, 0.333984375));
  EXPECT_FALSE(isCorrect(occlBfloat16, 1.0 / 3, 0.3359375));
}

} // namespace
} // namespace occl::run
