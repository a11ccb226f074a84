#include "runtime/control/records/announce.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>

namespace occl::transport {
namespace {

std::unique_ptr<AnnounceCell[]> cellsOf(size_t n) { return std::make_unique<AnnounceCell[]>(n); }

TEST(AnnounceCell, RecordIsFoundByItsOrdinalOnly) {
  auto memory = cellsOf(1);
  AnnounceCell &cell = memory[0];
  CollectiveTraits traits{1, 2, 3, 4};
  EXPECT_EQ(cell.find(0), nullptr);
  cell.publish(0, 128, traits);
  ASSERT_NE(cell.find(0), nullptr);
  EXPECT_EQ(cell.find(0)->read().arenaOffset, 128u);
  EXPECT_EQ(cell.find(0)->read().traits, traits);
  EXPECT_EQ(cell.find(AnnounceCell::kRecords), nullptr);
  cell.publish(AnnounceCell::kRecords, 256, traits);
  EXPECT_EQ(cell.find(0), nullptr);
  EXPECT_EQ(cell.find(AnnounceCell::kRecords)->read().arenaOffset, 256u);
}

TEST(AnnounceCell, UrgencyIsToldUntilTheRecordIsUsedAgain) {
  auto memory = cellsOf(1);
  AnnounceCell &cell = memory[0];
  EXPECT_FALSE(cell.hasPublished(0));
  EXPECT_FALSE(cell.urgencyOf(0));
  for (Urgency urgency : {Urgency{-7, ~0u}, Urgency{INT32_MAX, 0}, Urgency{INT32_MIN, 1}}) {
    cell.publish(0, 0, {}, {}, urgency);
    EXPECT_EQ(cell.urgencyOf(0), urgency);
  }
  EXPECT_TRUE(cell.hasPublished(0));
  EXPECT_FALSE(cell.hasPublished(AnnounceCell::kRecords));
  cell.publish(AnnounceCell::kRecords, 0, {});
  EXPECT_TRUE(cell.hasPublished(0));
  EXPECT_FALSE(cell.urgencyOf(0));
}

TEST(AnnounceCell, TheLargestOffsetIsKept) {
  auto memory = cellsOf(1);
  constexpr uint64_t kLast = (uint64_t{1} << 40) - 1;
  memory[0].publish(0, kLast, {});
  EXPECT_EQ(memory[0].find(0)->read().arenaOffset, kLast);
}

TEST(PrepostedRing, IsOneWord) {
  EXPECT_EQ(PrepostedRing().packed(), 0u);
  EXPECT_EQ(PrepostedRing::unpack(0).largest, 0u);
  EXPECT_FALSE(PrepostedRing().isSound(1 << 20));
  for (uint64_t offset : {uint64_t{0}, uint64_t{640}, (uint64_t{1} << 40) - 128})
    for (uint64_t smallest : {128, 384, 8192})
      for (uint64_t largest : {smallest, 4 * smallest, 1024 * smallest}) {
        const auto ring = PrepostedRing::unpack(PrepostedRing{offset, smallest, largest}.packed());
        EXPECT_EQ(ring.arenaOffset, offset);
        EXPECT_EQ(ring.smallest, smallest);
        EXPECT_EQ(ring.largest, largest);
        EXPECT_TRUE(ring.isSound(offset + ring.bytes()));
        EXPECT_FALSE(ring.isSound(offset + ring.bytes() - 1));
      }
}

TEST(PrepostedRing, BlocksLieSideBySide) {
  const PrepostedRing ring{640, 384, 3072};
  std::map<uint64_t, uint64_t> blocks; // begin -> end
  for (uint64_t needed : {0, 1, 384, 385, 768, 900, 1536, 1537, 3072})
    for (uint64_t ordinal = 0; ordinal < 8; ++ordinal) {
      const uint64_t begin = ring.offsetOf(ordinal, needed);
      EXPECT_GE(ring.blockBytes(needed), needed);
      EXPECT_EQ(ring.offsetOf(ordinal + 8, needed), begin);
      blocks[begin] = begin + ring.blockBytes(needed);
    }
  EXPECT_EQ(blocks.size(), 32u);
  uint64_t end = 640;
  for (const auto &[from, to] : blocks) {
    EXPECT_EQ(from, end);
    end = to;
  }
  EXPECT_EQ(end, 640 + ring.bytes());
}

TEST(PrepostedRing, ADamagedRecordIsNotSound) {
  const auto isSound = [](uint64_t word) { return PrepostedRing::unpack(word).isSound(1 << 20); };
  EXPECT_TRUE(isSound((PrepostedRing{1024, 256, 512}).packed()));
  EXPECT_FALSE(isSound((PrepostedRing{64, 256, 512}).packed()));
  EXPECT_FALSE(isSound((PrepostedRing{1024, 64, 64}).packed()));
  EXPECT_FALSE(isSound((PrepostedRing{1 << 20, 256, 256}).packed()));
  EXPECT_FALSE(isSound((PrepostedRing{0, 256, 1 << 20}).packed()));
  for (unsigned bit = 40; bit < 64; ++bit)
    EXPECT_FALSE(isSound(uint64_t{1} << bit)) << bit;
  EXPECT_FALSE(isSound(~uint64_t{0}));
  EXPECT_FALSE(isSound(~uint64_t{0} << 40));
}

TEST(AnnounceCell, ARenewedOneTellsNothingOfBefore) {
  auto memory = cellsOf(1);
  AnnounceCell &cell = memory[0];
  CollectiveTraits traits{1, 2, 3, 4};
  cell.publish(3, 128, traits);
  cell.ring.store(PrepostedRing{640, 128, 128}.packed());
  cell.done.store(4);
  cell.renew();
  for (uint64_t ordinal = 0; ordinal < 16; ++ordinal) {
    EXPECT_EQ(cell.find(ordinal), nullptr);
    EXPECT_FALSE(cell.hasPublished(ordinal));
  }
  EXPECT_EQ(cell.ring.load(), 0u);
  EXPECT_EQ(cell.done.load(), 0u);
  EXPECT_EQ(cell.first.load(), AnnounceCell::kUnknown);
  cell.beginAt(7);
  EXPECT_EQ(cell.done.load(), 7u);
  EXPECT_EQ(cell.begun.load(), 7u);
  EXPECT_EQ(cell.first.load(), 7u);
}

TEST(CellLife, IsOneWord) {
  CellLife life{CellPhase::Ready, CellLife::kGenerations - 1, CellLife::kOrdinals - 1};
  CellLife read = CellLife::unpack(life.packed());
  EXPECT_EQ(read.phase, CellPhase::Ready);
  EXPECT_EQ(read.generation, life.generation);
  EXPECT_EQ(read.ordinal, life.ordinal);
  EXPECT_TRUE(read.isAtRest(2 * CellLife::kOrdinals - 1)) << "the count has gone round";
  EXPECT_FALSE(read.isAtRest(0));
  EXPECT_EQ(
      CellLife::unpack(CellLife{CellPhase::Active, CellLife::kGenerations, 0}.packed()).generation,
      0u);
}

} // namespace
} // namespace occl::transport
