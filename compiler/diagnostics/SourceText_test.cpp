#include "compiler/diagnostics/SourceText.h"

#include "compiler/diagnostics/JsonPlace.h"
#include "compiler/diagnostics/Snippet.h"

#include "gtest/gtest.h"

#include <fstream>

using namespace occl::diagnostics;

namespace {

std::string written(const std::string &text) {
  std::string path = testing::TempDir() + "source_text";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// What of `text` the expression covers that begins with its first `mark`.
std::string expressionAt(const std::string &text, const std::string &mark) {
  std::string path = written(text);
  auto column = static_cast<uint32_t>(text.find(mark) + 1);
  Range range = SourceText().withEnd({path, 1, column, 1, column});
  EXPECT_EQ(range.line, 1u);
  return range.endLine == 1 ? text.substr(column - 1, range.endColumn - column)
                            : "to line " + std::to_string(range.endLine);
}

TEST(SourceText, ExpressionsEndWhereTheyEnd) {
  EXPECT_EQ(expressionAt("  a[0][1 .. 2].copy(b[f(x)], send = 1);", "a["),
            "a[0][1 .. 2].copy(b[f(x)], send = 1)");
  EXPECT_EQ(expressionAt("let s = reduce(a, b).into(c[0]); d", "reduce"),
            "reduce(a, b).into(c[0])");
  EXPECT_EQ(expressionAt("f(a.copy(b[0]), c)", "a."), "a.copy(b[0])");
  EXPECT_EQ(expressionAt("for r in 0..4 {", "for"), "for");
  EXPECT_EQ(expressionAt("x.copy (y) where z", "x"), "x.copy (y)");
  EXPECT_EQ(expressionAt("x.\n  copy(y);", "x"), "to line 2");
  EXPECT_EQ(expressionAt("%0 = send", "%"), "");
  EXPECT_EQ(expressionAt("a[0", "a"), "a");
}

TEST(SourceText, KnowsExtentsOnlyOfWhatItCanRead) {
  SourceText text;
  EXPECT_EQ(text.withEnd({"no such file", 1, 2, 1, 2}).endColumn, 2u);
  EXPECT_EQ(text.withEnd({written("abc"), 7, 2, 7, 2}).endColumn, 2u);
  EXPECT_EQ(text.withEnd({written("abc"), 1, 9, 1, 9}).endColumn, 9u);
  EXPECT_EQ(text.withEnd({written("abc"), 1, 1, 1, 2}).endColumn, 2u);
  EXPECT_FALSE(text.line("no such file", 1));
  EXPECT_FALSE(text.byteAt("no such file", 0));
  EXPECT_FALSE(text.jsonPlace("no such file", ""));
}

TEST(SourceText, Lines) {
  SourceText text;
  std::string path = written("one\r\ntwo");
  EXPECT_EQ(text.line(path, 1), "one");
  EXPECT_EQ(text.line(path, 2), "two");
  EXPECT_FALSE(text.line(path, 3));
  EXPECT_FALSE(text.line(path, 0));
  EXPECT_EQ(text.byteAt(path, 6)->line, 2u);
  EXPECT_EQ(text.byteAt(path, 6)->endColumn, 3u);
}

std::string inJson(const std::string &text, const std::string &path) {
  std::optional<JsonSpan> span = findInJson(text, path);
  return span ? text.substr(span->begin, span->end - span->begin) : "nothing";
}

TEST(JsonPlace, FollowsThePath) {
  const std::string text =
      R"( {"a": 1, "b[]\"}": {"a": 2}, "c": [[], [3 , "x,]"], {"d": null}] } x)";
  EXPECT_EQ(inJson(text, "a"), R"("a": 1)");
  EXPECT_EQ(inJson(text, "c[1]"), R"([3 , "x,]"])");
  EXPECT_EQ(inJson(text, "c[1][0]"), "3");
  EXPECT_EQ(inJson(text, "c[1][1]"), R"("x,]")");
  EXPECT_EQ(inJson(text, "c[2].d"), R"("d": null)");
  EXPECT_EQ(inJson(text, ""), text.substr(1, text.size() - 3));
}

TEST(JsonPlace, StopsWhereThePathEnds) {
  EXPECT_EQ(inJson(R"({"a": [1, 2]})", "a[2]"), R"("a": [1, 2])");
  EXPECT_EQ(inJson(R"({"a": [1, 2]})", "a.b"), R"("a": [1, 2])");
  EXPECT_EQ(inJson(R"({"a": [1, 2]})", "a[x]"), R"("a": [1, 2])");
  EXPECT_EQ(inJson(R"({"a": [1, 2]})", "b"), R"({"a": [1, 2]})");
  EXPECT_EQ(inJson(R"({"a": [1, 2)", "a[1]"), "2");
  EXPECT_EQ(inJson(R"({"a)", "a"), R"({"a)");
  EXPECT_EQ(inJson("", "a"), "nothing");
  EXPECT_EQ(inJson("[1]", "[0]"), "nothing");
}

TEST(Snippet, ShowsAsMuchAsThereIs) {
  EXPECT_EQ(snippet("abc def", 5, 3), "abc def\n    ^~~\n");
  EXPECT_EQ(snippet("abc", 2, 9), "abc\n ^~\n");
  EXPECT_EQ(snippet("abc", 4, 0), "abc\n   ^\n");
  EXPECT_EQ(snippet("abc", 5, 1), "");
  EXPECT_EQ(snippet("a\tb\x1b", 1, 1), "a b \n^\n");
  EXPECT_EQ(snippet(std::string(300, 'x'), 201, 5).size(), 200u + 1 + 200 + 2);
}

TEST(SourceText, TextsThatAreNotSaved) {
  std::string path = written("saved");
  std::string unsaved = "\xef\xbb\xbfnot saved";
  SourceText files([&](const std::string &asked) { return asked == path ? &unsaved : nullptr; });
  EXPECT_EQ(files.line(path, 1), "not saved");
  EXPECT_EQ(files.line(path + ".missing", 1), std::nullopt);
}

} // namespace
