// The example in docs/plan.md is a correct plan, as the writer would write it.
#include "plan/read_code.h"
#include "plan/reader.h"
#include "plan/verifier.h"
#include "plan/writer.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace occl::plan {
namespace {

std::string readDocument() {
  std::ifstream file("docs/plan.md");
  EXPECT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Documentation, AllCodes) {
  const std::string document = readDocument();
  for (const CodeInfo &info : kCodes) {
    std::string row = "| " + nameOf(info.code) + " | " + info.text + " |\n";
    EXPECT_NE(document.find(row), std::string::npos) << row;
    EXPECT_EQ(proofOf(info.code), info.proof);
  }
  for (const ReadCodeInfo &info : kReadCodes) {
    std::string row = "| " + nameOf(info.code) + " | " + info.text + " |\n";
    EXPECT_NE(document.find(row), std::string::npos) << row;
  }
}

TEST(Documentation, ExampleIsAPlan) {
  const std::string document = readDocument(), fence = "```json\n";
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
