#include "runtime/cuda/transfer/group_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace occl::cuda {
namespace {

PairGeometry usual(uint32_t numRanks) {
  return PairGeometry::forMemory(4096, numRanks, uint64_t{256} << 20, true);
}

daemon::Transfer transferOf(bool isSend, uint32_t peer, uint64_t count,
                            DataType type = DataType::Uint8) {
  return {isSend, peer, {reinterpret_cast<char *>(uintptr_t{4096}), count, type}};
}

/// Of a rank that has no transfers to itself.
GroupLayout layoutOf(const std::vector<daemon::Transfer> &transfers, const PairGeometry &pairs) {
  constexpr uint32_t kOwn = kMaxRanks;
  return *GroupLayout::of(transfers, pairs, kOwn, false);
}

TEST(PairGeometry, TakesAnEighthFrom128MiBOnAndElseASixteenthAtMost) {
  constexpr uint64_t kMiB = 1 << 20;
  for (uint32_t n = 1; n <= kMaxRanks; ++n)
    for (uint64_t memory = kMiB; memory <= 4096 * kMiB; memory *= 2)
      for (const bool hasLines : {false, true}) {
        const auto pairs = PairGeometry::forMemory(0, n, memory, hasLines);
        const uint64_t most = memory < 128 * kMiB ? memory / 16 : std::min(memory / 8, 32 * kMiB);
        EXPECT_LE(pairs.bytes(), most + (64 << 10)) << n << " ranks, " << memory;
        if (pairs.numSlots == 0)
          continue;
        EXPECT_GE(pairs.numSlots * pairs.slotBytes, transfer::kEagerBytes);
        EXPECT_EQ(pairs.slotBytes % 256, 0u);
        EXPECT_EQ(pairs.lineBytes % 256, 0u);
        EXPECT_TRUE(pairs.lineBytes == 0 || hasLines);
        EXPECT_TRUE(pairs.lineBytes != 0 || !hasLines || memory < 64 * kMiB) << n << ", " << memory;
      }
  const auto slots = [&](uint32_t n, uint64_t memory) {
    const auto pairs = PairGeometry::forMemory(0, n, memory * kMiB, true);
    return std::pair(pairs.slotBytes, pairs.lineBytes);
  };
  EXPECT_EQ(slots(2, 128), std::pair(uint64_t{112} << 10, uint64_t{4} << 10));
  EXPECT_EQ(slots(2, 256), std::pair(uint64_t{128} << 10, uint64_t{4} << 10));
  EXPECT_EQ(slots(8, 256), std::pair(uint64_t{27'904}, uint64_t{4} << 10));
  EXPECT_EQ(PairGeometry::forMemory(0, 2, kMiB, true).numSlots, 0u);
}

TEST(PairGeometry, PiecesCoverATransferAndFitIntoSlots) {
  for (const uint32_t n : {1u, 2u, 3u, 8u})
    for (const bool hasLines : {false, true})
      for (const bool isToItself : {false, true}) {
        const auto pairs = PairGeometry::forMemory(4096, n, uint64_t{256} << 20, hasLines);
        for (uint64_t bytes : {0ul, 1ul, 8191ul, 8193ul, 65536ul, 65537ul, 300'000ul, 1ul << 20,
                               (1ul << 22) + 1, 1ul << 30}) {
          const uint64_t each = pairs.pieceBytes(bytes, isToItself);
          const uint64_t pieces = pairs.pieces(bytes, isToItself);
          const bool isInLines = pairs.isInLines(bytes, isToItself);
          EXPECT_LE(each, isInLines ? pairs.lineBytes : pairs.slotBytes) << bytes;
          EXPECT_EQ(each % 256, 0u) << bytes;
          EXPECT_GE(pieces * each, bytes);
          EXPECT_TRUE(pieces == 1 || (pieces - 1) * each < bytes) << bytes;
        }
        EXPECT_EQ(pairs.pieces(0, isToItself), 1u);
        EXPECT_EQ(pairs.isInLines(kLinePieces * pairs.lineBytes, isToItself), hasLines);
        EXPECT_EQ(pairs.isInLines(kLinePieces * pairs.lineBytes + 1, isToItself),
                  hasLines && isToItself);
      }
}

TEST(PairGeometry, PartsOfMemoryDoNotOverlap) {
  const auto pairs = usual(3);
  char *const arena = reinterpret_cast<char *>(uintptr_t{1} << 30);
  std::map<const char *, uint64_t> pieces;
  const auto add = [&](const void *begin, uint64_t bytes) {
    EXPECT_TRUE(pieces.emplace(static_cast<const char *>(begin), bytes).second);
  };
  for (uint32_t peer = 0; peer < 3; ++peer) {
    add(pairs.state(arena, false, peer), sizeof(DirectionState));
    add(pairs.state(arena, true, peer), sizeof(DirectionState));
    for (uint32_t s = 0; s < pairs.numSlots; ++s) {
      add(pairs.header(arena, peer, s), sizeof(SlotHeader));
      add(pairs.emptied(arena, peer, s), sizeof(uint64_t));
      add(pairs.lines(arena, peer, s), 2 * pairs.lineBytes);
      if (peer != 1)
        add(pairs.slot(arena, 1, peer, s), pairs.slotBytes);
    }
  }
  const char *end = arena + pairs.begin;
  for (const auto &[begin, bytes] : pieces) {
    EXPECT_EQ(begin, end) << "a gap or an overlap";
    end = begin + bytes;
  }
  EXPECT_EQ(end, arena + pairs.begin + pairs.bytes());
  EXPECT_EQ(pairs.slot(arena, 1, 0, 0), arena + pairs.begin + pairs.clearedBytes());
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
    const auto of = layoutOf(sent, pairs), to = layoutOf(received, pairs);
    ASSERT_EQ(of.directions.size(), 1u);
    ASSERT_EQ(to.directions.size(), 2u);
    EXPECT_TRUE(to.directions[0].isSend);
    EXPECT_EQ(of.directions[0].numPieces, to.directions[1].numPieces);
    uint64_t pieces = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(of.parts[i].firstPiece, pieces);
      EXPECT_EQ(to.parts[to.directions[1].firstPart + i].firstPiece, pieces);
      pieces += pairs.pieces(counts[i] * 2, false);
    }
    EXPECT_EQ(of.directions[0].numPieces, pieces);
  }
}

TEST(GroupLayout, ThreadGroupsAreAsManyAsPiecesButFew) {
  const auto pairs = usual(8);
  std::vector<daemon::Transfer> group;
  for (uint32_t peer = 0; peer < 8; ++peer)
    for (const bool isSend : {false, true})
      group.push_back(transferOf(isSend, peer, 64 << 20));
  const auto layout = layoutOf(group, pairs);
  EXPECT_EQ(layout.directions.size(), 16u);
  EXPECT_EQ(layout.numGroups, kSharedGroups);
  EXPECT_FALSE(layout.isSpread);
  uint32_t next = 0;
  for (const TransferDirection &direction : layout.directions) {
    EXPECT_EQ(direction.firstGroup, next);
    next += direction.numGroups;
  }
  EXPECT_EQ(next, layout.numGroups);
  const auto one = layoutOf({transferOf(true, 1, 64 << 20)}, pairs);
  EXPECT_EQ(one.numGroups, kMostDirectionGroups);
  EXPECT_FALSE(one.isSpread);
  // With a group for each piece they end one by one.
  const auto spread =
      layoutOf({transferOf(true, 1, 100'000), transferOf(false, 2, 300'000)}, pairs);
  EXPECT_TRUE(spread.isSpread);
  EXPECT_EQ(spread.numGroups, spread.directions[0].numPieces + spread.directions[1].numPieces);
}

TEST(GroupLayout, SmallGroupsAreForOneThreadBlock) {
  const auto pairs = usual(8);
  const auto warps = [&](const std::vector<daemon::Transfer> &group) {
    return layoutOf(group, pairs).warpsEach;
  };
  EXPECT_EQ(warps({transferOf(true, 1, 0), transferOf(false, 1, 1)}), 1u);
  EXPECT_EQ(warps({transferOf(true, 1, 8000), transferOf(false, 1, 8000)}), 8u);
  EXPECT_EQ(warps({transferOf(true, 1, 16 << 10), transferOf(false, 1, 16 << 10)}), 8u);
  // Too many bytes, parts or pieces, or one that does not go in lines.
  EXPECT_EQ(warps({transferOf(true, 1, (16 << 10) + 1)}), 0u);
  EXPECT_EQ(warps(std::vector(kPartsInline, transferOf(true, 1, 4))), 1u);
  EXPECT_EQ(warps(std::vector(kPartsInline + 1, transferOf(true, 1, 4))), 0u);
  EXPECT_EQ(warps({transferOf(true, 1, 4), transferOf(false, 1, 1 << 20)}), 0u);
  std::vector<daemon::Transfer> all;
  for (uint32_t peer = 0; peer < 8; ++peer)
    for (const bool isSend : {false, true})
      all.push_back(transferOf(isSend, peer, 4000));
  EXPECT_EQ(warps(all), 1u);
  for (daemon::Transfer &one : all)
    one.part.count = 4200;
  EXPECT_EQ(warps(all), 0u); // 65 KiB
  const auto without = PairGeometry::forMemory(4096, 8, uint64_t{256} << 20, false);
  EXPECT_EQ(layoutOf({transferOf(true, 1, 4)}, without).warpsEach, 0u);
}

TEST(GroupLayout, ASendToItselfIsCopiedIfBothSidesAreThere) {
  const auto pairs = usual(4);
  const std::vector group = {transferOf(true, 2, 5), transferOf(false, 2, 5),
                             transferOf(true, 3, 7), transferOf(true, 2, 9),
                             transferOf(false, 2, 9)};
  const auto copied = *GroupLayout::of(group, pairs, 2, true);
  ASSERT_EQ(copied.directions.size(), 2u);
  EXPECT_EQ(copied.directions[0].peer, 3u);
  const TransferDirection &copy = copied.directions[1];
  EXPECT_TRUE(copy.isCopy);
  EXPECT_FALSE(copy.isSend);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(copied.parts[copy.firstPart + i].count, 5 + 4 * i);
    EXPECT_EQ(copied.parts[copy.copiedFrom + i].count, 5 + 4 * i);
    EXPECT_EQ(copied.parts[copy.firstPart + i].firstPiece, i);
  }
  EXPECT_EQ(copy.numPieces, 2u);
  const auto isCopied = [&](std::vector<daemon::Transfer> of, uint32_t rank) {
    return std::ranges::any_of(GroupLayout::of(of, pairs, rank, true)->directions,
                               &TransferDirection::isCopy);
  };
  EXPECT_FALSE(isCopied(group, 3));
  EXPECT_FALSE(isCopied({transferOf(true, 2, 5), transferOf(false, 2, 6)}, 2));
  EXPECT_FALSE(isCopied({transferOf(true, 2, 5), transferOf(false, 2, 5, DataType::Int8)}, 2));
  EXPECT_FALSE(
      isCopied({transferOf(true, 2, 5), transferOf(false, 2, 5), transferOf(true, 2, 1)}, 2));
  EXPECT_EQ(layoutOf(group, pairs).directions.size(), 3u);
}

TEST(GroupLayout, RefusesWhatNumbersDoNotReach) {
  const auto pairs = usual(2);
  const uint64_t half = kMostPieces / 2 * pairs.slotBytes;
  std::vector<daemon::Transfer> group = {transferOf(true, 1, half), transferOf(true, 1, half)};
  EXPECT_TRUE(GroupLayout::of(group, pairs, 0, true).ok());
  group.push_back(transferOf(true, 1, 0));
  const auto refused = GroupLayout::of(group, pairs, 0, true);
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
