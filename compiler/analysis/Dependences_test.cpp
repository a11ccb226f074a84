#include "compiler/analysis/Dependences.h"

#include "compiler/analysis/Testing.h"

#include <gtest/gtest.h>

namespace occl::analysis {
namespace {

using namespace testing;
using Steps = std::vector<uint32_t>;

Steps before(const Program &program, uint32_t step) {
  RankDependences dependences(program, program.ranks[0]);
  return dependences.before(step).vec();
}

Steps producers(const Program &program, uint32_t step) {
  RankDependences dependences(program, program.ranks[0]);
  return dependences.producers(step).vec();
}

TEST(Dependences, AReadWaitsForTheWrite) {
  Program p = program({{step({input(0)}, {scratch(0)}), step({scratch(0)}, {output(0)})}});
  EXPECT_EQ(before(p, 1), Steps({0}));
  EXPECT_EQ(producers(p, 1), Steps({0}));
}

TEST(Dependences, AWriteWaitsForReadersAndNotForTheWriteBehindThem) {
  Program p = program({{step({input(0)}, {scratch(0)}), step({scratch(0)}, {output(0)}),
                        step({scratch(0)}, {output(1)}), step({input(1)}, {scratch(0)})}});
  p.inPlace = false;
  EXPECT_EQ(before(p, 3), Steps({1, 2}));
  EXPECT_EQ(producers(p, 3), Steps());
}

TEST(Dependences, AWriteWaitsForAWriteThatNobodyRead) {
  Program p = program({{step({input(0)}, {scratch(0)}), step({input(1)}, {scratch(0)})}});
  EXPECT_EQ(before(p, 1), Steps({0}));
}

TEST(Dependences, ReadsDoNotWaitForReads) {
  Program p = program({{step({input(0)}, {output(0)}), step({input(0)}, {output(1)})}});
  p.inPlace = false;
  EXPECT_EQ(before(p, 1), Steps());
}

TEST(Dependences, RangesThatOnlyTouchAreIndependent) {
  Program p = program({{step({input(0)}, {scratch(0)}, 2), step({scratch(2)}, {output(4)}, 2)}});
  EXPECT_EQ(before(p, 1), Steps());
}

TEST(Dependences, PartialOverlapsCount) {
  Program p = program({{step({input(0)}, {scratch(0)}, 2), step({input(0)}, {scratch(2)}, 2),
                        step({scratch(1)}, {output(4)}, 2)}});
  EXPECT_EQ(before(p, 2), Steps({0, 1}));
  EXPECT_EQ(producers(p, 2), Steps({0, 1}));
}

TEST(Dependences, InPlaceInputAndOutputAreOneMemory) {
  Program p = program({{step({input(1)}, {scratch(0)}), step({scratch(1)}, {output(3)})}});
  p.ranks[0].inPlaceOffset = 2;
  EXPECT_EQ(before(p, 1), Steps({0}));
  p.inPlace = false;
  EXPECT_EQ(before(p, 1), Steps());
}

TEST(Dependences, NegativeOffsetsAreNoOtherMemory) {
  Program p = program({{step({input(0)}, {scratch(0)}), step({scratch(1)}, {output(0)})}});
  p.ranks[0].inPlaceOffset = -1;
  EXPECT_EQ(before(p, 1), Steps());
}

TEST(Dependences, AStepDoesNotWaitForItself) {
  Program p = program({{step({output(0), input(1)}, {output(0)})}});
  EXPECT_EQ(before(p, 0), Steps());
}

TEST(Dependences, ConsumersAreTheInverseOfProducers) {
  Program p = program({{step({input(0)}, {scratch(0)}), step({scratch(0)}, {output(0)}),
                        step({scratch(0)}, {output(1)})}});
  RankDependences dependences(p, p.ranks[0]);
  auto consumers = consumersOf(p.ranks[0], dependences);
  EXPECT_EQ(Steps(consumers[0].begin(), consumers[0].end()), Steps({1, 2}));
  EXPECT_TRUE(consumers[1].empty());
}

} // namespace
} // namespace occl::analysis
