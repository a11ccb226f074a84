#include "tools/occl-lsp/workspace/text.h"

#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <random>

namespace occl::lsp {
namespace {

using protocol::Position;

protocol::TextDocumentContentChangeEvent change(Position begin, Position end, std::string text) {
  protocol::TextDocumentContentChangeEvent event;
  event.range = protocol::Range(begin, end);
  event.text = std::move(text);
  return event;
}

TEST(Text, ColumnsAreOfUtf16) {
  Text text("a\u00e9\U0001f600b\nc"); // 1, 2, 4 and 1 bytes
  EXPECT_EQ(text.positionOf(7), Position(0, 4));
  EXPECT_EQ(text.offsetOf({0, 4}), 7u);
  EXPECT_EQ(text.offsetOf({0, 3}), 3u) << "within a character";
  EXPECT_EQ(text.offsetOf({0, 99}), 8u) << "behind the end of the line";
  EXPECT_EQ(text.offsetOf({1, 0}), 9u);
  EXPECT_EQ(text.offsetOf({7, 7}), 10u);
  EXPECT_EQ(text.offsetOf({-1, -1}), 0u);
  EXPECT_EQ(text.offsetOf({0, -5}), 0u);
}

TEST(Text, LinesEndInThreeWays) {
  Text text("a\r\nb\rc\nd");
  EXPECT_EQ(text.positionOf(3), Position(1, 0));
  EXPECT_EQ(text.positionOf(5), Position(2, 0));
  EXPECT_EQ(text.positionOf(7), Position(3, 0));
  EXPECT_EQ(text.offsetOf({0, 9}), 1u);
  EXPECT_EQ(text.all().end, Position(3, 1));
}

TEST(Text, BytesThatAreNoText) {
  Text text("\xff\xc3\x28\xed\xa0\x80"); // a surrogate is none either
  for (uint32_t offset = 0; offset <= 6; ++offset)
    EXPECT_EQ(text.offsetOf(text.positionOf(offset)), offset);
}

TEST(Text, TheByteOrderMarkIsNoPartOfIt) {
  Text text("\xef\xbb\xbf"
            "ab");
  EXPECT_EQ(text.positionOf(0), Position(0, 1));
  EXPECT_EQ(text.offsetOf({0, 2}), 1u);
  EXPECT_EQ(text.offsetOf({0, 0}), 0u);
  text.apply(change({0, 2}, {0, 3}, "xy"));
  EXPECT_EQ(text.bytes(), "\xef\xbb\xbf"
                          "axy");
}

TEST(Text, Changes) {
  Text text("one\ntwo\n");
  text.apply(change({1, 3}, {0, 3}, " ")); // the wrong way round
  EXPECT_EQ(text.bytes(), "one \n");
  EXPECT_EQ(text.positionOf(5), Position(1, 0));
  text.apply({});
  EXPECT_EQ(text.bytes(), "");
}

TEST(Text, RandomPositionsThereAndBack) {
  std::mt19937_64 random(printedSeed());
  const char *pieces[] = {"a", "\n", "\r\n", "\u00e4", "\u20ac", "\U0001f600", " "};
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    std::vector<uint32_t> boundaries{0};
    for (int i = 0; i < 40; ++i) {
      bytes += pieces[random() % std::size(pieces)];
      boundaries.push_back(static_cast<uint32_t>(bytes.size()));
    }
    Text text(bytes);
    for (uint32_t offset : boundaries)
      ASSERT_EQ(text.offsetOf(text.positionOf(offset)), offset) << bytes;
  }
}

} // namespace
} // namespace occl::lsp
