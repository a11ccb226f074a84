// Several invocations, one after the other, in the same arena blocks and progress words: nothing is
// cleared, words and flags are larger each time.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/conformance.h"

#include <gtest/gtest.h>

#include <cstring>

namespace occl::interpreter::conformance {
namespace {

constexpr uint32_t kInvocations = 5;

Status runAgainAndAgain(Simulation &simulation, uint64_t seed) {
  Status status = runRandomly(simulation, seed, 2);
  for (uint32_t i = 1; i < kInvocations && status.ok(); ++i) {
    for (uint32_t r = 0; r < simulation.numRanks(); ++r)
      std::memset(simulation.output(r), 0x77, simulation.outputBytes(r));
    simulation.goOn();
    status = runRandomly(simulation, seed + i, 2);
  }
  return status;
}

void check(plan::Plan plan, plan::Protocol protocol) {
  plan.protocol = protocol;
  for (Placement placement : {Placement::AtSource, Placement::AtDestination})
    for (TilePolicy tiles : {TilePolicy{1 << 20, 1}, TilePolicy{512, 2}, TilePolicy{1024, 3}})
      for (uint32_t stepOperands : {0u, 64u}) {
        uint64_t seed = 100 * tiles.slicesPerMessage + stepOperands;
        Status status = checkCollective(
            plan,
            {.count = 1003, .tiles = tiles, .placement = placement, .stepOperands = stepOperands},
            seed, [&](Simulation &s) { return runAgainAndAgain(s, seed); });
        EXPECT_TRUE(status.ok()) << plan.name << ", seed " << seed << ": " << status.message();
      }
}

class Continue : public testing::TestWithParam<plan::Protocol> {};

TEST_P(Continue, WithMessages) {
  using namespace plan::testing;
  check(ringAllReduce(3), GetParam());    // credit within an invocation
  check(oneShotAllReduce(4), GetParam()); // multicasts
  check(twoShotAllReduce(3), GetParam()); // dependencies between thread blocks
  check(chainBroadcast(4), GetParam());   // a rank that only sends
  check(shift(3), GetParam());            // several chunks an instruction, scratch
}

TEST(Continue, WithDirectAccess) {
  check(plan::testing::directAllReduce(4), plan::Protocol::Simple);
  check(plan::testing::directAllGather(3), plan::Protocol::Simple);
}

INSTANTIATE_TEST_SUITE_P(Protocols, Continue,
                         testing::Values(plan::Protocol::Simple, plan::Protocol::LL,
                                         plan::Protocol::LL128));

} // namespace
} // namespace occl::interpreter::conformance
