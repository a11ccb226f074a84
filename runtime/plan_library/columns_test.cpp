#include "runtime/plan_library/columns.h"

#include "plan/io/writer.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace occl::plan_library {
namespace {

/// What CBOR says of a plan is all of it.
void expectSame(const plan::Plan &plan) {
  const auto read = fromColumns(toColumns(plan));
  ASSERT_TRUE(read.has_value()) << plan.name;
  plan::Plan without = plan;
  without.witnesses.clear();
  without.places.clear();
  EXPECT_EQ(plan::encodePlan(*read, plan::Format::Cbor),
            plan::encodePlan(without, plan::Format::Cbor))
      << plan.name;
}

TEST(Columns, HoldAllOfAPlan) {
  for (uint32_t ranks : {1u, 2u, 5u}) {
    expectSame(plan::testing::ringAllGather(ranks));
    expectSame(plan::testing::ringAllReduce(ranks));
    expectSame(plan::testing::twoShotAllReduce(ranks));
    expectSame(plan::testing::shift(ranks));
    if (ranks > 1)
      expectSame(plan::testing::directAllReduce(ranks)); // with counters
  }
  plan::Plan plan = plan::testing::ringAllReduce(3);
  plan.parameters = {{"ranks", 3}, {"less", -7}};
  plan.files = {"a.coll", ""};
  plan.locations = {{0, 7, 3}, {1, 1, 1}};
  plan.instructions.front().location = 1;
  plan.inPlace = plan.outOfPlace = plan.average = plan.hasPostcondition = false;
  plan.uniformChunks = true;
  plan.root = 2;
  plan.depth = 7;
  plan.protocol = plan::Protocol::LL128;
  plan.minBytes = 5;
  plan.maxBytes = uint64_t{1} << 40;
  plan.ranks[1].inPlaceOffset = -2;
  expectSame(plan);
}

TEST(Columns, AreNotReadFromFewerOrMoreBytes) {
  const std::string whole = toColumns(plan::testing::ringAllReduce(2));
  ASSERT_TRUE(fromColumns(whole));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(fromColumns(whole.substr(0, bytes))) << bytes;
  EXPECT_FALSE(fromColumns(whole + '\0'));
  // Tables of as many rows as memory has not are not made.
  EXPECT_FALSE(fromColumns(std::string(whole.size(), '\xff')));
}

} // namespace
} // namespace occl::plan_library
