#include "compiler/format/Formatter.h"

#include "gtest/gtest.h"

#include <cctype>
#include <cstring>
#include <filesystem>
#include <random>

using namespace occl;
using frontend::DiagnosticEngine;
using frontend::FileId;
using frontend::SourceManager;

namespace {

std::string formatted(std::string text) {
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  FileId file = sources.addText("test.coll", std::move(text));
  std::optional<std::string> result = format::format(sources, file, diagnostics);
  EXPECT_TRUE(result) << diagnostics.render();
  return result.value_or("");
}

/// Expects `text`, as a body, to become `expected`, and that to stay.
void expectBody(const std::string &text, const std::string &expected) {
  const std::string head = "function f() {\n", tail = "}\n";
  EXPECT_EQ(formatted(head + text + tail), head + expected + tail);
  EXPECT_EQ(formatted(head + expected + tail), head + expected + tail);
}

/// Tokens and comments: the text without blanks.
std::string inkOf(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  return text;
}

TEST(Formatter, SpacesOperators) {
  expectBody("let a=1+2*3-( 4 %5 );\n", "  let a = 1 + 2 * 3 - (4 % 5);\n");
  expectBody("let a = - 1 - -b+!c;\n", "  let a = -1 - -b + !c;\n");
  expectBody("let a = b?c:d ? e :f;\n", "  let a = b ? c : d ? e : f;\n");
  expectBody("return(a+b)*f (c)[ 1 ].count;\n", "  return (a + b) * f(c)[1].count;\n");
}

TEST(Formatter, SpacesRanges) {
  expectBody("for i in 0 .. n , j in i+1..n where(i<j){}\n",
             "  for i in 0..n, j in i + 1 .. n where (i < j) {}\n");
  expectBody("x[ a .. b ].copy(y[f(i-1)..(n)]);\n", "  x[a..b].copy(y[f(i - 1)..(n)]);\n");
  expectBody("x[-1..b];\n", "  x[-1..b];\n");
  expectBody("reduce(q in 0..n-1:input[q][0]).into(y[0]);\n",
             "  reduce(q in 0 .. n - 1: input[q][0]).into(y[0]);\n");
}

TEST(Formatter, KeepsUnitsTogether) {
  const std::string expected = "topology t(n: int, GB: int, s: int) {\n"
                               "  cost push = GB / s GB/s;\n"
                               "  switch x of 0..n bandwidth 2 * n TB/s latency 2 us;\n"
                               "  nic of 0 .. n / 2 bandwidth n < 2 ? 100 : 400 Gbit/s;\n"
                               "}\n";
  EXPECT_EQ(formatted(expected), expected);
  std::string loose = expected;
  for (size_t at = 0; (at = loose.find("/s", at)) != std::string::npos; at += 3)
    loose.replace(at, 2, " / s");
  EXPECT_EQ(formatted(loose), expected);
}

TEST(Formatter, SpacesVersionsAndHints) {
  const std::string expected = "algorithm a(n: int) implements b(n) instances 2 protocol ll {\n"
                               "  when bytes in 0..4KiB {}\n"
                               "  when bytes in 4KiB .. instances 2 {}\n"
                               "  when bytes in n + 1 .. {\n"
                               "    channel(2) { c.copy(d, send = -1, recv = [0..n, 4][0]); }\n"
                               "    threadblock(send = 1) { let l = [i for i in [[1]]]; }\n"
                               "  }\n"
                               "}\n";
  std::string squeezed = expected;
  for (const char *loose : {" = ", " .. ", ", "})
    for (size_t at = 0; (at = squeezed.find(loose, at)) != std::string::npos;)
      std::erase_if(squeezed, [&, i = size_t{0}](char c) mutable {
        size_t here = i++;
        return c == ' ' && here >= at && here < at + std::strlen(loose);
      });
  EXPECT_EQ(formatted(squeezed), expected);
  EXPECT_EQ(formatted(expected), expected);
}

TEST(Formatter, BreaksStatements) {
  expectBody("a = 1; b = 2;\n", "  a = 1;\n  b = 2;\n");
  expectBody("\n\na = 1;\n\n\n\nb = 2;\n\n", "  a = 1;\n\n  b = 2;\n");
  expectBody("a =\n1 +\n2;\n", "  a =\n      1 +\n      2;\n");
}

TEST(Formatter, KeepsBlocksOnOneLine) {
  expectBody("for i in 0..n { a = i;b = i; }\n", "  for i in 0..n { a = i; b = i; }\n");
  expectBody("for i in 0..n { a = i;\n}\n", "  for i in 0..n {\n    a = i;\n  }\n");
  expectBody("for i in 0..n\n{ if a { b = 1; } }\n", "  for i in 0..n { if a { b = 1; } }\n");
}

TEST(Formatter, OpensLongBlocks) {
  std::string name(60, 'n');
  expectBody("for i in 0..n { if a { " + name + " = " + name + "; } }\n",
             "  for i in 0..n {\n    if a {\n      " + name + " = " + name + ";\n    }\n  }\n");
}

TEST(Formatter, PlacesElse) {
  expectBody("if a {\nb = 1;\n}\nelse if c {\nd = 1; } else\n{ }\n",
             "  if a {\n    b = 1;\n  } else if c {\n    d = 1;\n  } else {}\n");
  expectBody("if a { b = 1; }\nelse   { b = 2; }\n", "  if a { b = 1; }\n  else { b = 2; }\n");
}

TEST(Formatter, KeepsComments) {
  expectBody("// one  \na = 1; // two\nlong = 2;/* three */\n\n  // four\n",
             "  // one\n  a = 1;     // two\n  long = 2;  /* three */\n\n  // four\n");
  expectBody("f(/*a=*/1, // the first\n2);\n", "  f(/*a=*/ 1,  // the first\n      2);\n");
  expectBody("if a {/* c */b=1;}\n", "  if a { /* c */ b = 1; }\n");
  expectBody("if a { /* c */ b = 1;\n}\n", "  if a {  /* c */\n    b = 1;\n  }\n");
}

TEST(Formatter, LaysOutDeclarations) {
  EXPECT_EQ(
      formatted(
          "\n\nimport  \"x.coll\" ;algorithm  a( n:int=1 )implements c( n,chunks=2 )modes in_place{"
          "scratch s [ 2 ] ;}\ncollective c(ranks:int){input [r]:1;post for r in "
          "0..2{output[r][0]==input[r][0];}}"),
      "import \"x.coll\";\nalgorithm a(n: int = 1) implements c(n, chunks = 2) modes in_place { "
      "scratch s[2]; }\n"
      "collective c(ranks: int) { input[r]: 1; post for r in 0..2 { output[r][0] == input[r][0]; } "
      "}\n");
}

TEST(Formatter, LaysOutSchedules) {
  const std::string head = "algorithm a() implements allreduce(2, 1) instances 2 protocol ll {\n";
  EXPECT_EQ(formatted("algorithm a()implements allreduce(2,1)instances 2 protocol ll{\nwhen bytes "
                      "in 0 .. 64KiB "
                      "protocol ll{channel( 1 ){x.copy(y,send=0);}}\nwhen bytes in 64KiB..{}\n}"),
            head + "  when bytes in 0..64KiB protocol ll { channel(1) { x.copy(y, send = 0); } }\n"
                   "  when bytes in 64KiB .. {}\n}\n");
}

TEST(Formatter, RefusesErrors) {
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  EXPECT_FALSE(format::format(sources, sources.addText("x.coll", "algorithm {"), diagnostics));
  EXPECT_TRUE(diagnostics.hasErrors());
}

std::string damaged(std::string text, std::mt19937 &random) {
  // Blanks and line breaks come and go between tokens where they do not matter.
  for (int i = 0; i < 60; ++i) {
    size_t at = random() % text.size();
    if (text[at] == ' ' || text[at] == '\n')
      text.insert(at, 1, " \n\n\t"[random() % 4]);
  }
  return text;
}

/// Every algorithm, also with blanks and line breaks inserted at random.
TEST(Formatter, IsIdempotentAndKeepsTokens) {
  uint32_t seed = std::random_device{}();
  std::mt19937 random(seed);
  size_t files = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator("algorithms")) {
    if (entry.path().extension() != ".coll")
      continue;
    ++files;
    SourceManager sources;
    std::string error;
    std::optional<FileId> file = sources.addFile(entry.path(), error);
    ASSERT_TRUE(file) << error;
    for (int round = 0; round < 20; ++round) {
      std::string text(sources.text(*file));
      if (round > 0)
        text = damaged(text, random);
      SourceManager copy;
      DiagnosticEngine diagnostics(copy);
      std::optional<std::string> once =
          format::format(copy, copy.addText("copy.coll", text), diagnostics);
      if (!once)
        continue; // a break inside of a comment
      EXPECT_EQ(inkOf(text), inkOf(*once)) << entry.path() << ", seed " << seed;
      EXPECT_EQ(formatted(*once), *once) << entry.path() << ", seed " << seed;
    }
  }
  EXPECT_GT(files, 10u);
}

} // namespace
