#include "compiler/analysis/AccessMap.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace occl::analysis {
namespace {

using Pieces = std::vector<std::string>;

Pieces piecesOf(AccessMap<int> &map, int64_t begin, int64_t end) {
  Pieces pieces;
  map.forEach(begin, end, [&](int64_t first, int64_t last, int value) {
    pieces.push_back(std::to_string(first) + ".." + std::to_string(last) + "=" +
                     std::to_string(value));
  });
  return pieces;
}

TEST(AccessMap, EverythingHasADefaultValue) {
  AccessMap<int> map, other(7);
  EXPECT_EQ(piecesOf(map, 3, 5), Pieces({"3..5=0"}));
  EXPECT_EQ(piecesOf(other, 0, 9), Pieces({"0..9=7"}));
}

TEST(AccessMap, AssignmentCutsWhatItOverlaps) {
  AccessMap<int> map;
  map.assign(2, 8, 1);
  map.assign(4, 6, 2);
  EXPECT_EQ(piecesOf(map, 0, 10), Pieces({"0..2=0", "2..4=1", "4..6=2", "6..8=1", "8..10=0"}));
}

TEST(AccessMap, AssignmentJoinsWhatItCovers) {
  AccessMap<int> map;
  for (int i = 0; i < 8; ++i)
    map.assign(i, i + 1, i);
  map.assign(1, 7, 9);
  EXPECT_EQ(piecesOf(map, 0, 8), Pieces({"0..1=0", "1..7=9", "7..8=7"}));
}

TEST(AccessMap, PiecesCanBeChangedInPlace) {
  AccessMap<int> map;
  map.assign(0, 4, 1);
  map.forEach(2, 6, [](int64_t, int64_t, int &value) { value += 10; });
  EXPECT_EQ(piecesOf(map, 0, 6), Pieces({"0..2=1", "2..4=11", "4..6=10"}));
}

TEST(AccessMap, PiecesMayBeFarApart) {
  AccessMap<int> map;
  map.assign(70, 71, 1);
  map.assign(300000, 300001, 2);
  EXPECT_EQ(piecesOf(map, 0, 400000), Pieces({"0..70=0", "70..71=1", "71..300000=0",
                                              "300000..300001=2", "300001..400000=0"}));
  map.assign(10, 399990, 3);
  EXPECT_EQ(piecesOf(map, 5, 300000), Pieces({"5..10=0", "10..300000=3"}));
  EXPECT_EQ(piecesOf(map, 200000, 400000),
            Pieces({"200000..300000=3", "300000..399990=3", "399990..400000=0"}));
}

TEST(AccessMap, AgreesWithAnArray) {
  const unsigned seed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  AccessMap<int> map;
  std::vector<int> array(300, 0);
  for (int step = 1; step < 2000; ++step) {
    int64_t begin = random() % 300, end = begin + 1 + random() % (300 - begin);
    if (random() % 2)
      map.assign(begin, end, step);
    else
      map.forEach(begin, end, [&](int64_t, int64_t, int &value) { value = -step; });
    std::fill(array.begin() + begin, array.begin() + end, step);
    int64_t next = 0;
    map.forEach(0, 300, [&](int64_t first, int64_t last, int value) {
      EXPECT_EQ(first, next);
      for (int64_t i = first; i < last; ++i)
        EXPECT_EQ(std::abs(value), array[i]) << "chunk " << i << " after step " << step;
      next = last;
    });
    EXPECT_EQ(next, 300);
  }
}

} // namespace
} // namespace occl::analysis
