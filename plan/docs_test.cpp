// The example in docs/plan.md is a correct plan, as the writer would write it.
#include "plan/reader.h"
#include "plan/verifier.h"
#include "plan/writer.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace occl::plan {
namespace {

TEST(Documentation, ExampleIsAPlan) {
  std::ifstream file("docs/plan.md");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  const std::string document = text.str(), fence = "```json\n";
  size_t begin = document.find(fence);
  ASSERT_NE(begin, std::string::npos);
  begin += fence.size();
  std::string example = document.substr(begin, document.find("```", begin) - begin);
  Expected<Plan> plan = readPlan(example);
  ASSERT_TRUE(plan) << plan.message();
  EXPECT_TRUE(verifyPlan(*plan)) << verifyPlan(*plan).text();
  EXPECT_EQ(encodePlan(*plan, Format::Json), example);
}

} // namespace
} // namespace occl::plan
