#include "plan/chunking.h"

#include <gtest/gtest.h>

using occl::plan::Chunking;

namespace {

// Every element belongs to exactly one chunk, whatever the sizes.
TEST(Chunking, CoversThePartWithoutGapOrOverlap) {
  for (uint64_t count : {0ull, 1ull, 2ull, 31ull, 32ull, 33ull, 1000ull, 10007ull, 1ull << 20})
    for (uint64_t chunks : {1ull, 2ull, 3ull, 5ull, 8ull, 16ull, 1024ull})
      for (uint64_t elementBytes : {1ull, 2ull, 4ull, 8ull}) {
        Chunking chunking = Chunking::of(count, chunks, elementBytes);
        ASSERT_EQ(chunking.begin(0), 0u);
        ASSERT_EQ(chunking.begin(chunks), count);
        for (uint64_t k = 0; k < chunks; ++k) {
          ASSERT_LE(chunking.begin(k), chunking.begin(k + 1));
          ASSERT_LE(chunking.size(k), chunking.maxSize())
              << count << " elements in " << chunks << ", chunk " << k;
        }
      }
}

TEST(Chunking, DividesEvenlyWherePossible) {
  Chunking chunking = Chunking::of(24, 8, 4);
  for (uint64_t k = 0; k < 8; ++k)
    EXPECT_EQ(chunking.size(k), 3u);
}

TEST(Chunking, StartsChunksAtTheGrainOtherwise) {
  Chunking chunking = Chunking::of(10007, 8, 4);
  for (uint64_t k = 0; k < 8; ++k)
    EXPECT_EQ(chunking.begin(k) % 32, 0u);
}

TEST(Chunking, GivesFewElementsToTheLastChunks) {
  Chunking chunking = Chunking::of(7, 8, 4); // one grain for eight chunks
  uint64_t total = 0;
  for (uint64_t k = 0; k < 8; ++k)
    total += chunking.size(k);
  EXPECT_EQ(total, 7u);
  EXPECT_EQ(chunking.maxSize(), 7u);
}

TEST(Chunking, RepeatsInEveryPartOfABuffer) {
  Chunking chunking = Chunking::of(100, 3, 4);
  for (uint64_t k = 0; k < 9; ++k)
    EXPECT_EQ(chunking.beginInBuffer(k), k / 3 * 100 + chunking.begin(k % 3));
}

} // namespace
