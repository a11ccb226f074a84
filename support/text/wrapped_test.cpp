#include "support/text/wrapped.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using occl::wrapped;

TEST(Wrapped, shortLines_stay) {
  EXPECT_EQ(wrapped("", 2), "");
  EXPECT_EQ(wrapped("  one  two\n\n three\n", 2, 10), "  one  two\n\n three\n");
  EXPECT_EQ(wrapped(std::string(80, 'x'), 2), std::string(80, 'x'));
}

TEST(Wrapped, longLines_breakAtBlanks) {
  EXPECT_EQ(wrapped("one two three four", 2, 9), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("12345 789 12", 0, 9), "12345 789\n12") << "nine columns fit";
  EXPECT_EQ(wrapped("  a  bb  ccc", 4, 8), "  a  bb\n    ccc") << "blanks between others stay";
  EXPECT_EQ(wrapped("a b c\nd e f", 1, 3), "a b\n c\nd e\n f") << "each line on its own";
}

TEST(Wrapped, longWords_stayWhole) {
  EXPECT_EQ(wrapped("/a/long/path of it", 2, 6), "/a/long/path\n  of\n  it");
  EXPECT_EQ(wrapped("at /a/long/path", 2, 6), "at\n  /a/long/path");
  EXPECT_EQ(wrapped("   /a/long/path", 2, 6), "   /a/long/path") << "no line of blanks alone";
}

TEST(Wrapped, codePoints_areColumns) {
  EXPECT_EQ(wrapped("\u00e4\u00e4\u00e4 \u00e4\u00e4\u00e4", 0, 7),
            "\u00e4\u00e4\u00e4 \u00e4\u00e4\u00e4");
}

} // namespace
