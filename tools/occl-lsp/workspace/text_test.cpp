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

TEST(Text, LongLines) {
  std::string line, all;
  for (int i = 0; i < 1000; ++i)
    line += "ab\u00e9\U0001f600"; // 8 bytes, 5 columns
  all = line + "\r\n" + line + "\r" + line;
  Text text(all);
  for (uint32_t number : {0u, 1u, 2u})
    for (uint32_t i = 0; i <= 1000; ++i) {
      uint32_t begin = number == 0 ? 0 : 8001 * number + 1;
      Position place(static_cast<int>(number), static_cast<int>(5 * i));
      EXPECT_EQ(text.positionOf(begin + 8 * i), place);
      EXPECT_EQ(text.offsetOf(place), begin + 8 * i);
    }
  EXPECT_EQ(text.offsetOf({0, 5001}), 8000u)
      << "behind the end, and not within the two bytes there";
  EXPECT_EQ(text.offsetOf({0, 99999}), 8000u);
  // Where a place on the way would come to lie between the two bytes.
  for (uint32_t length = 500; length < 1100; ++length)
    EXPECT_EQ(Text(std::string(length, 'x') + "\r\n").offsetOf({0, 9999}), length);
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

TEST(Text, RandomChanges) {
  std::mt19937_64 random(printedSeed());
  const std::string pieces[] = {
      "",           "a",          "\n",           "\r\n",     "\r",
      "\u20ac",     "\U0001f600", "\xef\xbb\xbf", "\xf0\x9f", std::string(600, 'x'),
      "a\nb\r\nc\n"};
  for (int round = 0; round < 20; ++round) {
    Text text;
    for (int i = 0; i < 60; ++i) {
      auto anywhere = [&] {
        auto size = static_cast<uint32_t>(text.bytes().size());
        return text.positionOf(static_cast<uint32_t>(random() % (size + 1)));
      };
      Position begin = anywhere();
      text.apply(change(begin, random() % 2 ? begin : anywhere(),
                        pieces[random() % std::size(pieces)] + pieces[random() % 3]));
      Text other(text.bytes());
      for (uint32_t offset = 0; offset <= text.bytes().size(); ++offset) {
        Position place = other.positionOf(offset);
        ASSERT_EQ(text.positionOf(offset), place) << text.bytes();
        ASSERT_EQ(text.offsetOf(place), other.offsetOf(place)) << text.bytes();
      }
    }
  }
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
