#include "runtime/transport/announce.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace occl::transport {
namespace {

std::unique_ptr<AnnounceCell[]> cellsOf(size_t n) { return std::make_unique<AnnounceCell[]>(n); }

TEST(AnnounceTable, FindsWhatWasInsertedAndNothingElse) {
  auto memory = cellsOf(64);
  AnnounceTable table(std::span(memory.get(), 64));
  for (uint64_t id : {0ull, 1ull, 64ull, ~0ull})
    EXPECT_EQ(table.find(id), nullptr);
  AnnounceCell *zero = table.findOrInsert(0);
  AnnounceCell *last = table.findOrInsert(~0ull);
  EXPECT_NE(zero, last);
  EXPECT_EQ(table.findOrInsert(0), zero);
  EXPECT_EQ(table.find(~0ull), last);
  EXPECT_EQ(table.find(1), nullptr);
}

TEST(AnnounceTable, FullTableSaysSo) {
  auto memory = cellsOf(8);
  AnnounceTable table(std::span(memory.get(), 8));
  for (uint64_t id = 0; id < 8; ++id)
    EXPECT_NE(table.findOrInsert(id * 1000), nullptr);
  EXPECT_EQ(table.findOrInsert(9), nullptr);
  EXPECT_EQ(table.find(9), nullptr);
  for (uint64_t id = 0; id < 8; ++id)
    EXPECT_NE(table.find(id * 1000), nullptr);
}

TEST(AnnounceCell, RecordIsFoundByItsOrdinalOnly) {
  auto memory = cellsOf(1);
  AnnounceCell &cell = memory[0];
  CollectiveTraits traits{1, 2, 3, 4};
  EXPECT_EQ(cell.find(0), nullptr);
  cell.publish(0, 128, traits);
  ASSERT_NE(cell.find(0), nullptr);
  EXPECT_EQ(cell.find(0)->arenaOffset(), 128u);
  EXPECT_EQ(cell.find(0)->traits(), traits);
  EXPECT_EQ(cell.find(AnnounceCell::kRecords), nullptr);
  cell.publish(AnnounceCell::kRecords, 256, traits);
  EXPECT_EQ(cell.find(0), nullptr);
  EXPECT_EQ(cell.find(AnnounceCell::kRecords)->arenaOffset(), 256u);
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
  constexpr uint64_t kLast = (uint64_t{1} << 48) - 1;
  memory[0].publish(0, kLast, {});
  EXPECT_EQ(memory[0].find(0)->arenaOffset(), kLast);
}

TEST(AnnounceCell, ALeaseIsForWhatItWasMadeFor) {
  auto memory = cellsOf(1);
  AnnounceCell &cell = memory[0];
  CollectiveTraits traits{1, 2, 3, 4}, others{1, 2, 3, 0};
  EXPECT_EQ(cell.findLease(traits), nullptr);
  cell.publishLease(640, traits);
  ASSERT_NE(cell.findLease(traits), nullptr);
  EXPECT_EQ(cell.findLease(traits)->arenaOffset, 640u);
  EXPECT_EQ(cell.findLease(others), nullptr);
}

TEST(AnnounceTable, ReadersSeeWholeCellsWhileTheOwnerInserts) {
  auto memory = cellsOf(256);
  AnnounceTable table(std::span(memory.get(), 256));
  constexpr uint64_t kCollectives = 200;
  std::thread reader([&] {
    for (uint64_t id = 0; id < kCollectives; ++id) {
      const AnnounceCell *cell = nullptr;
      while (!cell)
        cell = table.find(id);
      const AnnounceRecord *record = nullptr;
      while (!record)
        record = cell->find(0);
      EXPECT_EQ(record->arenaOffset(), id * 64);
      EXPECT_EQ(record->traits().count, id);
    }
  });
  for (uint64_t id = 0; id < kCollectives; ++id)
    table.findOrInsert(id)->publish(0, id * 64, {id, id, 0, 0});
  reader.join();
}

} // namespace
} // namespace occl::transport
