#include "plan/model/chunking_of.h"

#include <gtest/gtest.h>

using namespace occl::plan;

namespace {

// Every element belongs to exactly one chunk, whatever the sizes.
TEST(Chunking, CoversThePartWithoutGapOrOverlap) {
  for (uint64_t count : {0ull, 1ull, 2ull, 31ull, 32ull, 33ull, 1000ull, 10007ull, 1ull << 20})
    for (uint64_t chunks : {1ull, 2ull, 3ull, 5ull, 8ull, 16ull, 1024ull})
      for (uint64_t elementBytes : {1ull, 2ull, 4ull, 8ull}) {
        Chunking chunking = {count, chunks, kGrainBytes / elementBytes};
        ASSERT_EQ(chunking.begin(0), 0u);
        ASSERT_EQ(chunking.begin(chunks), count);
        for (uint64_t k = 0; k < chunks; ++k) {
          ASSERT_LE(chunking.begin(k), chunking.begin(k + 1));
          ASSERT_LE(chunking.size(k), chunking.maxSize())
              << count << " elements in " << chunks << ", chunk " << k;
        }
      }
}

/// A plan of a collective that is known by name, or of one that says of chunks what they are.
Plan planOf(uint32_t chunks, bool isKnown) {
  Plan plan;
  plan.partChunks = chunks;
  if (!isKnown)
    plan.requirements.emplace_back();
  return plan;
}

TEST(Chunking, DividesEvenlyWhereChunksCanBeSeen) {
  Plan plan = planOf(8, false);
  for (uint64_t k = 0; k < 8; ++k)
    EXPECT_EQ(chunkingOf(plan, 24, 4).size(k), 3u);
  EXPECT_EQ(chunkingOf(plan, 30, 4).begin(3), 11u); // 90 / 8
  plan = planOf(8, true);
  EXPECT_EQ(chunkingOf(plan, 24, 4).size(7), 24u); // one grain
  plan.uniformChunks = true;
  EXPECT_EQ(chunkingOf(plan, 24, 4).size(7), 3u);
  plan = planOf(8, true);
  plan.hasPostcondition = false;
  EXPECT_EQ(chunkingOf(plan, 24, 4).size(7), 3u);
}

TEST(Chunking, StartsChunksAtTheGrainOtherwise) {
  for (uint64_t count : {1000ull, 10007ull})
    for (uint64_t k = 0; k < 8; ++k)
      EXPECT_EQ(chunkingOf(planOf(8, true), count, 4).begin(k) % 32, 0u);
}

// Options that cut chunks into pieces leave every element in its chunk, divisible or not.
TEST(Chunking, CutsPiecesWhereChunksAreCut) {
  for (bool isKnown : {false, true})
    for (uint64_t count : {0ull, 1ull, 8ull, 24ull, 33ull, 1000ull, 8000ull, 10007ull, 1ull << 20})
      for (uint32_t chunks : {1u, 2u, 3u, 8u, 13u})
        for (uint32_t factor : {2u, 3u, 4u, 7u})
          for (uint64_t elementBytes : {1ull, 4ull, 8ull}) {
            Chunking whole = chunkingOf(planOf(chunks, isKnown), count, elementBytes);
            Chunking cut = chunkingOf(planOf(chunks * factor, isKnown), count, elementBytes);
            for (uint64_t k = 0; k <= chunks; ++k)
              ASSERT_EQ(whole.begin(k), cut.begin(k * factor))
                  << count << " elements in " << chunks << " times " << factor << ", chunk " << k;
          }
}

TEST(Chunking, GivesFewElementsToTheLastChunks) {
  Chunking chunking = {7, 8, 32}; // one grain for eight chunks
  uint64_t total = 0;
  for (uint64_t k = 0; k < 8; ++k)
    total += chunking.size(k);
  EXPECT_EQ(total, 7u);
  EXPECT_EQ(chunking.maxSize(), 7u);
}

TEST(Chunking, RepeatsInEveryPartOfABuffer) {
  Chunking chunking = {100, 3, 32};
  for (uint64_t k = 0; k < 9; ++k)
    EXPECT_EQ(chunking.beginInBuffer(k), k / 3 * 100 + chunking.begin(k % 3));
}

} // namespace
