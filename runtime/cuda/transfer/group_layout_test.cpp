#include "runtime/cuda/transfer/group_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

namespace occl::cuda {
namespace {

PairGeometry usual(uint32_t numRanks) {
  return PairGeometry::forMemory(4096, numRanks, uint64_t{256} << 20);
}

daemon::Transfer transferOf(bool isSend, uint32_t peer, uint64_t count,
                            DataType type = DataType::Uint8) {
  return {isSend, peer, {reinterpret_cast<char *>(uintptr_t{4096}), count, type}};
}

TEST(PairGeometry, TakesAsMuchFrom128MiBOnAndElseASixteenthAtMost) {
  for (uint32_t n = 1; n <= kMaxRanks; ++n)
    for (uint64_t memory = 1 << 20; memory <= uint64_t{1} << 32; memory *= 2) {
      const auto pairs = PairGeometry::forMemory(0, n, memory);
      EXPECT_LE(pairs.bytes() - pairs.wordBytes(),
                memory < uint64_t{128} << 20 ? memory / 16 : uint64_t{16} << 20)
          << n << " ranks, " << memory;
      EXPECT_LE(pairs.wordBytes(), uint64_t{64} << 10) << n << " ranks, " << memory;
      if (pairs.numSlots == 0)
        continue;
      EXPECT_GE(pairs.numSlots * pairs.slotBytes, transfer::kEagerBytes);
      EXPECT_EQ(pairs.numSlots & (pairs.numSlots - 1), 0u);
      EXPECT_EQ(pairs.slotBytes % 256, 0u);
    }
  EXPECT_EQ(usual(2).numSlots * usual(2).slotBytes, uint64_t{4} << 20);
  EXPECT_EQ(usual(8).numSlots * usual(8).slotBytes, uint64_t{1} << 20);
  EXPECT_EQ(PairGeometry::forMemory(0, 2, uint64_t{128} << 20).bytes(), usual(2).bytes());
  EXPECT_EQ(PairGeometry::forMemory(0, 2, 1 << 20).numSlots, 0u);
}

TEST(PairGeometry, PartsOfMemoryDoNotOverlap) {
  const auto pairs = usual(3);
  char *const arena = reinterpret_cast<char *>(uintptr_t{1} << 30);
  std::map<const char *, uint64_t> pieces;
  const auto add = [&](const void *begin, uint64_t bytes) {
    EXPECT_TRUE(pieces.emplace(static_cast<const char *>(begin), bytes).second);
  };
  for (uint32_t way = 0; way < kTransferWays; ++way)
    for (uint32_t peer = 0; peer < 3; ++peer) {
      add(pairs.state(arena, way, false, peer), sizeof(DirectionState));
      add(pairs.state(arena, way, true, peer), sizeof(DirectionState));
      for (uint32_t s = 0; s < pairs.numSlots; ++s) {
        add(pairs.header(arena, way, peer, s), sizeof(SlotHeader));
        add(pairs.emptied(arena, way, peer, s), sizeof(uint64_t));
        add(pairs.slot(arena, way, peer, s), pairs.slotBytes);
      }
    }
  const char *end = arena + pairs.begin;
  for (const auto &[begin, bytes] : pieces) {
    EXPECT_EQ(begin, end) << "a gap or an overlap";
    end = begin + bytes;
  }
  EXPECT_EQ(end, arena + pairs.begin + pairs.bytes());
}

TEST(GroupLayout, PiecesOfAPairAgreeOnBothSides) {
  std::mt19937_64 random(20261123);
  for (int round = 0; round < 200; ++round) {
    const auto pairs = usual(1 + random() % kMaxRanks);
    std::vector<daemon::Transfer> sent, received;
    std::vector<uint64_t> counts;
    for (uint64_t i = 0, n = 1 + random() % 300; i < n; ++i)
      counts.push_back(random() % 3 == 0 ? random() % 4 : random() % (4 * pairs.slotBytes));
    for (uint64_t count : counts)
      sent.push_back(transferOf(true, 0, count, DataType::Float16));
    for (uint64_t count : counts) {
      received.push_back(transferOf(true, 0, 1)); // of another direction, in between
      received.push_back(transferOf(false, 0, count, DataType::Float16));
    }
    const auto of = *GroupLayout::of(sent, pairs), to = *GroupLayout::of(received, pairs);
    ASSERT_EQ(of.directions.size(), 1u);
    ASSERT_EQ(to.directions.size(), 2u);
    EXPECT_TRUE(to.directions[0].isSend);
    EXPECT_EQ(of.directions[0].numPieces, to.directions[1].numPieces);
    uint64_t pieces = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(of.parts[i].firstPiece, pieces);
      EXPECT_EQ(to.parts[to.directions[1].firstPart + i].firstPiece, pieces);
      pieces += std::max<uint64_t>(1, (counts[i] * 2 + pairs.slotBytes - 1) / pairs.slotBytes);
    }
    EXPECT_EQ(of.directions[0].numPieces, pieces);
  }
}

TEST(GroupLayout, BlocksAreAsManyAsPiecesButFew) {
  const auto pairs = usual(8);
  std::vector<daemon::Transfer> group;
  for (uint32_t peer = 0; peer < 8; ++peer)
    for (const bool isSend : {false, true})
      group.push_back(transferOf(isSend, peer, 64 << 20));
  const auto layout = *GroupLayout::of(group, pairs);
  EXPECT_EQ(layout.directions.size(), 16u);
  EXPECT_EQ(layout.numBlocks, kMostTransferBlocks);
  EXPECT_EQ(GroupLayout::of(std::vector{transferOf(true, 1, 1)}, pairs)->numBlocks, 1u);
  EXPECT_EQ(GroupLayout::of(std::vector{transferOf(true, 1, 64 << 20)}, pairs)->numBlocks,
            kMostDirectionBlocks);
}

TEST(GroupLayout, RefusesWhatNumbersDoNotReach) {
  const auto pairs = usual(2);
  const uint64_t half = kMostPieces / 2 * pairs.slotBytes;
  std::vector<daemon::Transfer> group = {transferOf(true, 1, half), transferOf(true, 1, half)};
  EXPECT_TRUE(GroupLayout::of(group, pairs).ok());
  group.push_back(transferOf(true, 1, 0));
  const auto refused = GroupLayout::of(group, pairs);
  EXPECT_EQ(refused.status().code(), StatusCode::InvalidArgument);
  EXPECT_NE(refused.status().message().find("GiB"), std::string::npos);
}

TEST(SlotWords, SayUseTypeAndCount) {
  for (const uint64_t use : {uint64_t{0}, uint64_t{1}, uint64_t{65535}, uint64_t{1} << 47}) {
    const uint64_t word = filledWord(use, static_cast<uint32_t>(DataType::Float32));
    EXPECT_TRUE(isFilled(word, use));
    EXPECT_FALSE(isFilled(word, use + 1));
    EXPECT_EQ(typeIn(word), static_cast<uint32_t>(DataType::Float32));
    const uint64_t count = countWord(use, (uint64_t{1} << 48) - 1);
    EXPECT_TRUE(isOfUse(count, use));
    EXPECT_FALSE(isOfUse(count, use + 1));
    EXPECT_EQ(countIn(count), (uint64_t{1} << 48) - 1);
  }
  EXPECT_FALSE(isFilled(0, 0));
  EXPECT_FALSE(isOfUse(0, 0)); // as the words are at first
}

} // namespace
} // namespace occl::cuda
