// The plans for hosts, whose buffers only their owners access: all can be cut into rounds, and are
// proved again.
#include "plan/transform/rounds.h"
#include "plan/verify/verifier.h"
#include "runtime/plan_library/plan_library.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

namespace occl::plan_library {
namespace {

constexpr uint32_t kRanks[] = {1, 2, 3, 4, 6, 8, 16, 32};

/// visit(plan) once for each plan of a kind that some size has.
template <class Visit> void forEachPlan(Kind kind, Visit visit) {
  std::set<uint64_t> seen;
  for (uint32_t numRanks : kRanks)
    for (uint64_t bytes = 64; bytes <= uint64_t{1} << 30; bytes *= 4) {
      const auto chosen =
          PlanLibrary::ofProcess().choose({kind, numRanks, bytes, 0, PlanClass::HostOrdinary});
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      if (seen.insert(chosen->hash).second)
        visit(*chosen->plan);
    }
}

TEST(RoundsOfTheLibrary, AreProved) {
  uint32_t plans = 0;
  for (uint32_t kind = 0; kind < kNumKinds; ++kind)
    forEachPlan(static_cast<Kind>(kind), [&](const plan::Plan &plan) {
      const auto cut = plan::inRounds(plan, 3);
      ASSERT_TRUE(cut) << cut.message();
      ++plans;
      const auto proved = plan::verifyPlan(*cut, {.findSmallestDepth = false});
      EXPECT_TRUE(proved) << proved.text();
    });
  EXPECT_GT(plans, 60u);
}

} // namespace
} // namespace occl::plan_library
