#include "runtime/control/records/announce.h"

#include <gtest/gtest.h>

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

TEST(AnnounceCell, ALeaseIsForWhatItWasMadeFor) {
  auto memory = cellsOf(1);
  AnnounceCell &cell = memory[0];
  CollectiveTraits traits{1, 2, 3, 4}, others{1, 2, 3, 0};
  EXPECT_FALSE(cell.leaseFor(traits));
  cell.publishLease(640, traits);
  EXPECT_EQ(cell.leaseFor(traits), 640u);
  EXPECT_FALSE(cell.leaseFor(others));
}

TEST(AnnounceCell, ARenewedOneTellsNothingOfBefore) {
  auto memory = cellsOf(1);
  AnnounceCell &cell = memory[0];
  CollectiveTraits traits{1, 2, 3, 4};
  cell.publish(3, 128, traits);
  cell.publishLease(640, traits);
  cell.done.store(4);
  cell.renew();
  for (uint64_t ordinal = 0; ordinal < 16; ++ordinal) {
    EXPECT_EQ(cell.find(ordinal), nullptr);
    EXPECT_FALSE(cell.hasPublished(ordinal));
  }
  EXPECT_FALSE(cell.leaseFor(traits));
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
