#include "compiler/frontend/Testing.h"

#include <gtest/gtest.h>

namespace occl::frontend::testing {
namespace {

using Lines = std::vector<std::string>;

/// A program that computes `expression` and is right if it has the expected value.
std::string valueProgram(const std::string &expression, int64_t expected) {
  return "algorithm a(ranks: int = 1) implements allreduce(ranks, 1) {\n  assert (" + expression +
         ") == " + std::to_string(expected) + ";\n  input[0][0].copy(output[0][0]);\n}\n";
}

struct ValueCase {
  const char *expression;
  int64_t value;
};

class Values : public ::testing::TestWithParam<ValueCase> {};

TEST_P(Values, AreExact) {
  auto result = compile(valueProgram(GetParam().expression, GetParam().value));
  EXPECT_EQ(result->diagnostics.render(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Arithmetic, Values,
    ::testing::Values(ValueCase{"7 / 2", 3}, ValueCase{"-7 / 2", -4}, ValueCase{"7 / -2", -4},
                      ValueCase{"-7 / -2", 3}, ValueCase{"-6 / 3", -2}, ValueCase{"7 % 3", 1},
                      ValueCase{"-7 % 3", 2}, ValueCase{"7 % -3", 1}, ValueCase{"-7 % -3", 2},
                      ValueCase{"-6 % 3", 0}, ValueCase{"5 % -1", 0}, ValueCase{"5 / -1", -5},
                      ValueCase{"(-9223372036854775807 - 1) % -1", 0},
                      ValueCase{"9223372036854775807 + 0", INT64_MAX}, ValueCase{"min(3, 1, 2)", 1},
                      ValueCase{"max(3, 1, 2)", 3}, ValueCase{"log2(1)", 0},
                      ValueCase{"log2(9)", 3}, ValueCase{"pow(2, 62)", int64_t{1} << 62},
                      ValueCase{"pow(-3, 3)", -27}, ValueCase{"pow(0, 0)", 1},
                      ValueCase{"pow(-1, 1000000000001)", -1},
                      ValueCase{"pow(1, 1000000000000)", 1}, ValueCase{"pow(0, 1000000000000)", 0},
                      ValueCase{"(true || 1 / 0 == 0) && !(false && 1 / 0 == 0) ? 1 : 0", 1},
                      ValueCase{"1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2 ? 4 : 5", 4}));

TEST(Elaborate, RingOfTwo) {
  auto result = compile("algorithm ring(ranks: int = 2) implements allreduce(ranks, ranks) {\n"
                        "  for i in 0..ranks {\n"
                        "    let r = (i + 1) % ranks;\n"
                        "    let c = reduce(input[i][i], input[r][i]).into(output[r][i]);\n"
                        "    c.copy(output[i][i]);\n"
                        "  }\n"
                        "}\n");
  EXPECT_EQ(result->diagnostics.render(), "");
  EXPECT_EQ(result->emitter.lines,
            (Lines{"read input[0][0]", "read input[1][0]", "reduce 0 1 -> output[1][0]",
                   "copy 2 -> output[0][0]", "read input[1][1]", "read input[0][1]",
                   "reduce 4 5 -> output[0][1]", "copy 6 -> output[1][1]"}));
}

TEST(Elaborate, ProgramInfo) {
  auto result = compile("algorithm a(ranks: int = 3, b: bool = true) implements "
                        "reducescatter(ranks, 2) modes out_of_place {\n"
                        "  for r in 0..ranks { reduce(q in 0..ranks: input[q][2 * r .. 2 * r + 2])"
                        ".into(output[r][0]); }\n}\n",
                        {.defines = {"b=false"}});
  ASSERT_TRUE(result->info) << result->diagnostics.render();
  const ProgramInfo &info = *result->info;
  EXPECT_EQ(info.collective, "reducescatter");
  EXPECT_TRUE(info.isStandard);
  EXPECT_EQ(info.numRanks, 3u);
  EXPECT_EQ(info.partChunks, 2u);
  EXPECT_EQ(info.inputChunks, std::vector<uint32_t>(3, 6));
  EXPECT_EQ(info.outputChunks, std::vector<uint32_t>(3, 2));
  EXPECT_EQ(info.inPlaceOffsets, (std::vector<int32_t>{0, -2, -4}));
  EXPECT_TRUE(info.outOfPlace);
  EXPECT_FALSE(info.inPlace);
  EXPECT_EQ(info.parameters[1], (std::pair<std::string, int64_t>("b", 0)));
  EXPECT_TRUE(info.requirements.empty());
}

TEST(Elaborate, LastDefineCounts) {
  auto result = compile(valueProgram("ranks", 1), {.defines = {"ranks=7", "ranks=1"}});
  EXPECT_EQ(result->diagnostics.render(), "");
}

TEST(Elaborate, RecursionWithinTheLimit) {
  auto result = compile("function f(n: int) -> int { return n <= 1 ? 1 : n * f(n - 1); }\n" +
                        valueProgram("f(10)", 3628800));
  EXPECT_EQ(result->diagnostics.render(), "");
}

TEST(Elaborate, VariablesOfOneCallAreItsOwn) {
  auto result =
      compile("function f(n: int) -> int { var x = n; if n > 0 { let y = f(n - 1); x = x + y; } "
              "return x; }\n" +
              valueProgram("f(4)", 10));
  EXPECT_EQ(result->diagnostics.render(), "");
}

TEST(Elaborate, UntouchedPartsStayFresh) {
  auto result = compile("algorithm a(ranks: int = 2) implements broadcast(ranks, 4) {\n"
                        "  let c = input[0][0..4].copy(output[0][0]);\n"
                        "  scratch s[4];\n"
                        "  let d = c.copy(s[1][0]);\n"
                        "  input[0][3].copy(s[1][0]);\n"
                        "  d[1..4].copy(output[1][1]);\n"
                        "  c[0].copy(output[1][0]);\n"
                        "}\n");
  EXPECT_EQ(result->diagnostics.render(), "");
}

TEST(Elaborate, IdentityKeepsAChunkFresh) {
  auto result = compile("algorithm a(ranks: int = 2) implements allgather(ranks, 1) {\n"
                        "  for r in 0..ranks {\n"
                        "    let c = input[r][0];\n"
                        "    c.copy(output[r][r]);\n"
                        "    c.copy(output[1 - r][r]);\n"
                        "  }\n"
                        "}\n");
  EXPECT_EQ(result->diagnostics.render(), "");
}

TEST(Elaborate, InPlaceOnlyMayOverwriteTheInput) {
  auto result =
      compile("algorithm a(ranks: int = 2) implements allreduce(ranks, 1) modes in_place {\n"
              "  reduce(input[0][0], input[1][0]).into(input[0][0]);\n"
              "  output[0][0].copy(output[1][0]);\n"
              "}\n");
  EXPECT_EQ(result->diagnostics.render(), "");
}

TEST(Elaborate, ErrorsAreSilentAfterTheFirst) {
  auto result = compile("algorithm a(ranks: int = 2) implements allreduce(ranks, 1) {\n"
                        "  let bad = 1 / 0;\n"
                        "  let worse = bad + 1;\n"
                        "  if worse > 2 { assert false; }\n"
                        "  for i in 0..worse { assert false; }\n"
                        "  input[worse][0].copy(output[0][bad]);\n"
                        "}\n");
  EXPECT_EQ(result->codes(), "E032");
}

TEST(Elaborate, OneErrorForAllIterations) {
  auto result = compile("algorithm a(ranks: int = 2) implements allreduce(ranks, 1) {\n"
                        "  for i in 0..100 { input[i + 2][0].copy(output[0][0]); }\n}\n");
  EXPECT_EQ(result->codes(), "E040");
}

TEST(Elaborate, BudgetIsExact) {
  std::string text = "algorithm a(ranks: int = 1) implements allreduce(ranks, 1) {\n"
                     "  for i in 0..10 { input[0][0].copy(output[0][0]); }\n}\n";
  EXPECT_EQ(compile(text, {.maxOps = 20})->codes(), "");
  EXPECT_EQ(compile(text, {.maxOps = 19})->codes(), "E034");
}

TEST(Elaborate, LargeRangesSpendTheBudgetToo) {
  auto result = compile("algorithm a(ranks: int = 2) implements broadcast(ranks, 4000000) {\n"
                        "  for i in 0..1000000 { input[0][0..4000000].copy(output[1][0]); }\n}\n",
                        {.maxOps = 1000});
  EXPECT_EQ(result->codes(), "E034");
}

TEST(Elaborate, DoublingContentsAreExplainedInBoundedTime) {
  auto result = compile("algorithm a(ranks: int = 2) implements allreduce(ranks, 1) {\n"
                        "  scratch s[1];\n"
                        "  var c = input[0][0].copy(s[0][0]);\n"
                        "  for i in 0..100 { c = reduce(c, c).into(s[0][0]); }\n"
                        "  c.copy(output[0][0]);\n  c.copy(output[1][0]);\n}\n");
  EXPECT_EQ(result->codes(), "E060 E060");
}

} // namespace
} // namespace occl::frontend::testing
