#include "tools/demo/plans_by_size.h"

#include "plan/io/writer.h"
#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace occl::demo {
namespace {

/// A plan file that is meant for this many bytes.
std::string save(const std::string &name, uint64_t minBytes, uint64_t maxBytes) {
  plan::Plan plan = plan::testing::oneShotAllReduce(2);
  plan.name = name;
  plan.minBytes = minBytes;
  plan.maxBytes = maxBytes;
  std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/" + name + ".plan.json";
  EXPECT_TRUE(plan::writePlanFile(plan, path).isOk());
  return path;
}

std::string nameOf(occlPlan_t plan) {
  const char *name = "none";
  if (plan) {
    EXPECT_EQ(occlPlanQuery(plan, nullptr, nullptr, &name), occlSuccess);
  }
  return name;
}

TEST(PlansBySize, theFirstThatIsMeantForIt) {
  PlansBySize plans;
  EXPECT_EQ(plans.find(0), nullptr);
  ASSERT_EQ(plans.load(save("small", 4, 100)), occlSuccess) << occlGetLastError();
  ASSERT_EQ(plans.load(save("medium", 50, 1000)), occlSuccess) << occlGetLastError();
  for (auto [bytes, name] : {std::pair<uint64_t, const char *>{3, "none"},
                             {4, "small"},
                             {50, "small"},
                             {100, "small"},
                             {101, "medium"},
                             {1000, "medium"},
                             {1001, "none"}})
    EXPECT_EQ(nameOf(plans.find(bytes)), name) << bytes;
}

TEST(PlansBySize, aFileThatIsNoPlanIsRefused) {
  PlansBySize plans;
  EXPECT_EQ(plans.load("/no/such/file"), occlInvalidPlan);
  EXPECT_NE(std::string(occlGetLastError()).find("/no/such/file"), std::string::npos);
  EXPECT_EQ(plans.find(10), nullptr);
}

} // namespace
} // namespace occl::demo
