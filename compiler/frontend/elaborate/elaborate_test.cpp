#include "compiler/frontend/elaborate/Testing.h"

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
    ::testing::Values(ValueCase{"7 / 2", 3}, ValueCase{"-7 / 2", -4}, ValueCase{"-6 / 3", -2},
                      ValueCase{"7 % 3", 1}, ValueCase{"-7 % 3", 2}, ValueCase{"-6 % 3", 0},
                      ValueCase{"-5 % 1", 0}, ValueCase{"-5 / 1", -5},
                      ValueCase{"(-9223372036854775807 - 1) % 3", 1},
                      ValueCase{"9223372036854775807 + 0", INT64_MAX}, ValueCase{"min(3, 1, 2)", 1},
                      ValueCase{"max(3, 1, 2)", 3}, ValueCase{"log2(1)", 0},
                      ValueCase{"log2(9)", 3}, ValueCase{"pow(2, 62)", int64_t{1} << 62},
                      ValueCase{"pow(-3, 3)", -27}, ValueCase{"pow(0, 0)", 1},
                      ValueCase{"pow(-1, 1000000000001)", -1},
                      ValueCase{"pow(1, 1000000000000)", 1}, ValueCase{"pow(0, 1000000000000)", 0},
                      ValueCase{"(true || 1 / 0 == 0) && !(false && 1 / 0 == 0) ? 1 : 0", 1},
                      ValueCase{"1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2 ? 4 : 5", 4}));

INSTANTIATE_TEST_SUITE_P(
    Lists, Values,
    ::testing::Values(
        ValueCase{"sum([])", 0}, ValueCase{"sum([1..5, -3])", 7}, ValueCase{"[3..3].length", 0},
        ValueCase{"[5..2].length", 0}, ValueCase{"[4, 7, 9][1]", 7},
        ValueCase{"sum([4, 7, 9][1..3])", 16}, ValueCase{"[4][1..1].length", 0},
        ValueCase{"([1, 2] + [3])[2]", 3}, ValueCase{"[[1], [2, 3]][1][1]", 3},
        ValueCase{"sum([x * y for x in 1..4, y in [10, 20] where x != 2])", 120},
        ValueCase{"min([3, 1, 2]) * 10 + max([3, 1, 2])", 13},
        ValueCase{"position([5, 6, 6], 6)", 1}, ValueCase{"contains([5, 6], 7) ? 1 : 0", 0},
        ValueCase{"offsets([])[0]", 0}, ValueCase{"offsets([2, 0, 5])[3]", 7},
        ValueCase{"reverse([1, 2, 3])[0]", 3}, ValueCase{"[1, 2] == [1, 2] ? 1 : 0", 1},
        ValueCase{"[1, 2] != [1] ? 1 : 0", 1}, ValueCase{"[[1], []] == [[1], []] ? 1 : 0", 1},
        ValueCase{"[[1], []] == [[1], [0]] ? 1 : 0", 0}, ValueCase{"[] == [1] ? 1 : 0", 0},
        ValueCase{"(true ? [1] : [2, 3]).length", 1},
        ValueCase{"sum([sum(row) for row in [[1, 2], [3]]])", 6},
        ValueCase{"input[0][0].origin.rank + input[0][0].origin.index", 0},
        ValueCase{"input[0][0].has(0, 0) && !input[0][0].has(0, 1) ? 1 : 0", 1},
        ValueCase{"input[0][0].contributions", 1}));

TEST(Elaborate, SplitAndGroup) {
  auto result = compile("algorithm a(ranks: int = 1) implements allreduce(ranks, 5) {\n"
                        "  scratch s[5];\n"
                        "  let parts = [p.copy(s[0][p.index]) for p in split(input[0][0..5], 2)];\n"
                        "  group(parts).copy(output[0][0]);\n"
                        "}\n");
  EXPECT_EQ(result->diagnostics.render(), "");
  EXPECT_EQ(result->sink.lines,
            (Lines{"read input[0][0]*5", "read input[0][0]*2", "read input[0][2]*3",
                   "copy 1 -> scratch[0][0]*2", "copy 2 -> scratch[0][2]*3", "read scratch[0][0]*5",
                   "copy 5 -> output[0][0]*5"}));
}

TEST(Elaborate, OriginsOfManyChunks) {
  auto result =
      compile("algorithm a(ranks: int = 50) implements alltoall(ranks, 4 * ranks) "
              "modes out_of_place {\n  for r in 0..ranks, c in 0..4 * ranks {\n"
              "    assert input[r][c].origin.rank == r && input[r][c].origin.index == c;\n"
              "  }\n"
              "  assert input[7][3..9].origin.index == 3 && input[7][3..9].has(7, 3);\n"
              "  assert !input[7][3..9].has(7, 4);\n"
              "  for q in 0..ranks, r in 0..ranks {\n"
              "    let c = input[q][4 * r .. 4 * r + 4].copy(output[r][4 * q]);\n"
              "    assert c.origin.rank == q && c.rank == r && c.origin.index == 4 * r;\n"
              "  }\n"
              "}\n");
  EXPECT_EQ(result->diagnostics.render(), "");
}

TEST(Elaborate, ListParametersAreRecorded) {
  auto compiled = [](const std::string &define) {
    auto result = compile("algorithm a(order: [int] = [7], m: [[int]] = [[1], [2, 3]]) implements "
                          "allreduce(1, 1) { input[0][0].copy(output[0][0]); }\n",
                          {.defines = {define}});
    EXPECT_FALSE(result->diagnostics.hasErrors()) << result->diagnostics.render();
    return result->info->parameters;
  };
  using Parameters = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(compiled("order=[ 4, 0..2 ]"), (Parameters{{"order[0]", 4},
                                                       {"order[1]", 0},
                                                       {"order[2]", 1},
                                                       {"m[0][0]", 1},
                                                       {"m[1][0]", 2},
                                                       {"m[1][1]", 3}}));
  EXPECT_EQ(compiled("m=[]"), (Parameters{{"order[0]", 7}}));
  Parameters large = compiled("order=[0..65]"), other = compiled("order=[1..66]");
  EXPECT_EQ(large[0], (std::pair<std::string, int64_t>("order.length", 65)));
  EXPECT_EQ(large[1].first, "order.hash");
  EXPECT_NE(large[1].second, other[1].second);
}

TEST(Elaborate, RingOfTwo) {
  auto result = compile("algorithm ring(ranks: int = 2) implements allreduce(ranks, ranks) {\n"
                        "  for i in 0..ranks {\n"
                        "    let r = (i + 1) % ranks;\n"
                        "    let c = reduce(input[i][i], input[r][i]).into(output[r][i]);\n"
                        "    c.copy(output[i][i]);\n"
                        "  }\n"
                        "}\n");
  EXPECT_EQ(result->diagnostics.render(), "");
  EXPECT_EQ(result->sink.lines,
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
  EXPECT_EQ(result->codes(), "W003"); // what overwrites a part of d
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
