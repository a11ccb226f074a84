// Flags in pre-posted rings: blocks are not cleared, so what tells today's lines from all others is
// the flag alone.
#include "plan/testing/example_plans.h"
#include "runtime/invocation/collective.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace occl::daemon {
namespace {

constexpr uint64_t kFlagsOfAnInvocation = uint64_t{1} << Collective::kSliceBits;

std::unique_ptr<Collective> shapeOf(plan::Plan plan, uint64_t count,
                                    DataType type = DataType::Float32, ReduceOp op = ReduceOp::Sum,
                                    uint64_t planHash = 1,
                                    plan::Protocol protocol = plan::Protocol::LL128) {
  plan.protocol = protocol;
  CollectiveSpec spec;
  spec.plan = std::make_shared<const plan::Plan>(std::move(plan));
  spec.planHash = planHash;
  spec.count = count;
  spec.type = type;
  spec.op = op;
  auto shape = makeCollective(std::move(spec), {.rank = 0, .headsDistance = 1 << 20});
  return shape.ok() ? std::move(*shape) : nullptr;
}

TEST(Flags, ShapesAndInvocationsAndSequencesHaveTheirOwn) {
  using namespace plan::testing;
  std::vector<std::unique_ptr<Collective>> shapes;
  for (uint64_t count : {1, 2, 30})
    for (DataType type : {DataType::Float32, DataType::Int32})
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max})
        for (uint64_t planHash : {1, 2})
          shapes.push_back(shapeOf(oneShotAllReduce(2), count, type, op, planHash));
  for (uint32_t root : {0, 1})
    shapes.push_back(shapeOf(chainBroadcast(2, 1, root), 30));
  std::set<uint64_t> bases;
  uint64_t numBases = 0;
  for (const auto &shape : shapes) {
    ASSERT_TRUE(shape && shape->mayUseRing);
    for (uint64_t sequence : {uint64_t{0}, uint64_t{1}, kCallSequence})
      for (uint64_t ordinal = 0; ordinal < 1000; ++ordinal, ++numBases)
        bases.insert(shape->flagBase(sequence, ordinal));
  }
  EXPECT_EQ(bases.size(), numBases);
  for (uint64_t base : bases)
    ASSERT_EQ(base % kFlagsOfAnInvocation, 0u);
}

/// However many there have been.
TEST(Flags, OfAShapeNeverComeAgain) {
  const auto shape = shapeOf(plan::testing::oneShotAllReduce(2), 30);
  const uint64_t first = shape->flagBase(7, 0);
  for (unsigned bits = 0; bits < 56; ++bits) {
    EXPECT_NE(shape->flagBase(7, uint64_t{1} << bits), first) << bits;
    EXPECT_EQ(shape->flagBase(7, uint64_t{1} << bits) - first, kFlagsOfAnInvocation << bits);
  }
}

TEST(Flags, BlocksThatAreClearedBeginAtZero) {
  using namespace plan::testing;
  std::vector<std::unique_ptr<Collective>> shapes;
  shapes.push_back(shapeOf(oneShotAllReduce(2), 30, DataType::Float32, ReduceOp::Sum, 1,
                           plan::Protocol::Simple));
  shapes.push_back(shapeOf(oneShotAllReduce(2), 1'000'000));
  for (const auto &shape : shapes) {
    ASSERT_TRUE(shape);
    EXPECT_FALSE(shape->mayUseRing);
    EXPECT_EQ(shape->flagBase(3, 5), 0u);
  }
}

TEST(Flags, OnHostsAPlanOfLLMayUseRings) {
  const auto shape = shapeOf(plan::testing::oneShotAllReduce(2), 30, DataType::Float32,
                             ReduceOp::Sum, 1, plan::Protocol::LL);
  ASSERT_TRUE(shape);
  EXPECT_TRUE(shape->mayUseRing);
}

} // namespace
} // namespace occl::daemon
