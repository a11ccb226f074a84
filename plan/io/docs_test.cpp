// docs/plan.md: its codes, its table of standard collectives, and its example, which is as the
// writer would write it.
#include "plan/collectives/promise.h"
#include "plan/io/read_code.h"
#include "plan/io/reader.h"
#include "plan/io/writer.h"
#include "plan/verify/verifier.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
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

/// The value of a term of the table of standard collectives, for rank r and chunk c.
int64_t valueOf(const std::string &term, const Plan &plan, uint32_t r, uint32_t c = 0) {
  const int64_t n = plan.numRanks, p = plan.partChunks;
  const std::map<std::string, int64_t> terms = {{"0", 0},
                                                {"p", p},
                                                {"n * p", n * p},
                                                {"r * p", r * p},
                                                {"-r * p", -(r * p)},
                                                {"c", c},
                                                {"c / p", c / p},
                                                {"c % p", c % p},
                                                {"r * p + c", r * p + c},
                                                {"r * p + c % p", r * p + c % p}};
  auto found = terms.find(term);
  EXPECT_NE(found, terms.end()) << term;
  return found == terms.end() ? -1 : found->second;
}

struct Row {
  std::string name, input, output, offset, promise;
};

std::vector<Row> standardRows(const std::string &document) {
  std::regex row(R"(\n\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]*input chunk [^|]+) \|)");
  std::vector<Row> rows;
  for (std::sregex_iterator match(document.begin(), document.end(), row), end; match != end;
       ++match)
    rows.push_back({(*match)[1], (*match)[2], (*match)[3], (*match)[4], (*match)[5]});
  return rows;
}

TEST(Documentation, SizesOfStandardCollectives) {
  std::vector<Row> rows = standardRows(readDocument());
  const auto named =
      std::ranges::count(kStandardCollectives, Promise::Named, &CollectiveDefinition::promise);
  EXPECT_EQ(rows.size(), static_cast<size_t>(named));
  for (const Row &row : rows) {
    std::optional<StandardCollective> collective = standardCollectiveOf(row.name);
    ASSERT_TRUE(collective) << row.name;
    Plan plan;
    plan.numRanks = 3;
    plan.partChunks = 4;
    plan.root = 1;
    plan.ranks.resize(3);
    const std::string orNothing = " or 0";
    auto without = [&](const std::string &text) {
      return text.ends_with(orNothing) ? text.substr(0, text.size() - orNothing.size()) : text;
    };
    for (uint32_t r = 0; r < 3; ++r)
      plan.ranks[r] = {.inputChunks = uint32_t(valueOf(without(row.input), plan, r)),
                       .outputChunks = uint32_t(valueOf(without(row.output), plan, r)),
                       .inPlaceOffset = int32_t(valueOf(row.offset, plan, r))};
    EXPECT_EQ(checkSizes(plan, *collective), "") << row.name;
    for (uint32_t r = 0; r < 3; ++r) {
      auto isRight = [&](auto field, auto value) {
        Plan changed = plan;
        changed.ranks[r].*field = value;
        return checkSizes(changed, *collective).empty();
      };
      EXPECT_FALSE(isRight(&RankPlan::inPlaceOffset, plan.ranks[r].inPlaceOffset + 1));
      EXPECT_FALSE(isRight(&RankPlan::inputChunks, 5u));
      EXPECT_FALSE(isRight(&RankPlan::outputChunks, 5u));
      EXPECT_EQ(isRight(&RankPlan::inputChunks, 0u), row.input.ends_with(orNothing) && r != 1);
      EXPECT_EQ(isRight(&RankPlan::outputChunks, 0u), row.output.ends_with(orNothing) && r != 1);
    }
  }
}

TEST(Documentation, PromisesOfStandardCollectives) {
  std::regex promise(
      R"((on the root: )?(the reduction of )?input chunk (.*) of (all ranks|the root|rank (.*?))(; elsewhere nothing)?)");
  for (const Row &row : standardRows(readDocument())) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(row.promise, parts, promise)) << row.promise;
    EXPECT_EQ(parts[2].matched, parts[4] == "all ranks");
    Plan plan;
    plan.numRanks = 3;
    plan.partChunks = 4;
    plan.root = 1;
    for (uint32_t r = 0; r < 3; ++r)
      for (uint32_t c = 0; c < (row.output == "n * p" ? 12u : 4u); ++c) {
        std::optional<Goal> goal = goalOf(plan, *standardCollectiveOf(row.name), r, c);
        ASSERT_EQ(goal.has_value(), !parts[1].matched || r == 1) << row.name;
        if (!goal)
          continue;
        EXPECT_EQ(goal->ofAllRanks, parts[2].matched) << row.name;
        EXPECT_EQ(goal->index, valueOf(parts[3], plan, r, c)) << row.name;
        if (!goal->ofAllRanks) {
          EXPECT_EQ(goal->rank, parts[4] == "the root" ? 1 : valueOf(parts[5], plan, r, c))
              << row.name;
        }
      }
  }
}

TEST(Documentation, ExampleIsAPlan) {
  const std::string document = readDocument(), fence = "```json\n";
  size_t begin = document.find(fence);
  ASSERT_NE(begin, std::string::npos);
  begin += fence.size();
  std::string example = document.substr(begin, document.find("```", begin) - begin);
  support::Expected<Plan> plan = readPlan(example);
  ASSERT_TRUE(plan) << plan.message();
  EXPECT_TRUE(verifyPlan(*plan)) << verifyPlan(*plan).text();
  EXPECT_EQ(encodePlan(*plan, Format::Json), example);
}

} // namespace
} // namespace occl::plan
