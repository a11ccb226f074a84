#include "runtime/control/records/announce_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace occl::transport {
namespace {

/// A table in memory of its own, and its owner.
class Table {
public:
  explicit Table(size_t numCells)
      : numCells(numCells), cells(new AnnounceCell[numCells]),
        index(new Line[(AnnounceTable::indexBytes(numCells) + 63) / 64]),
        table({cells.get(), numCells}, index[0].bytes), owner(table) {}

  /// Overwrites the index, but for its first `skip` bytes.
  void damage(int with, size_t skip = 0) {
    std::memset(index[0].bytes + skip, with, AnnounceTable::indexBytes(numCells) - skip);
  }
  /// All places hold this number, but for the first one.
  void damageWithNumber(uint32_t number, uint32_t first) {
    auto *words = reinterpret_cast<uint32_t *>(index[0].bytes);
    std::fill(words + 16, words + AnnounceTable::indexBytes(numCells) / 4, number);
    words[16] = first;
  }

private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  size_t numCells;
  std::unique_ptr<AnnounceCell[]> cells;
  std::unique_ptr<Line[]> index;

public:
  const AnnounceTable table;
  AnnounceOwner owner;
};

TEST(AnnounceTable, FindsWhatWasTakenAndNothingElse) {
  Table t(64);
  for (uint64_t id : {0ull, 1ull, 64ull, ~0ull}) {
    EXPECT_EQ(t.table.find(id), nullptr);
    EXPECT_EQ(t.table.lifeOf(id)->phase, CellPhase::Vacant);
  }
  AnnounceCell *zero = t.owner.take(0);
  AnnounceCell *last = t.owner.take(~0ull);
  EXPECT_NE(zero, last);
  EXPECT_EQ(t.table.find(0), zero);
  EXPECT_EQ(t.table.find(~0ull), last);
  EXPECT_EQ(t.table.find(1), nullptr);
  EXPECT_EQ(t.table.lifeOf(0)->phase, CellPhase::Active);
  EXPECT_EQ(zero->done.load(), 0u);
}

TEST(AnnounceTable, ADamagedIndexEndsNoLoopLateAndLeadsNowhere) {
  constexpr uint64_t kCells = 64;
  for (int with : {0xff, 0x01, 0x00})
    for (size_t skip : {0, 64}) { // with the version, without it
      Table t(kCells);
      std::vector<AnnounceCell *> taken;
      for (uint64_t id = 0; id < kCells / 2; ++id)
        taken.push_back(t.owner.take(id));
      t.damage(with, skip);
      EXPECT_EQ(t.table.find(3), nullptr);
      EXPECT_FALSE(t.table.lifeOf(3) && t.table.lifeOf(3)->phase != CellPhase::Vacant);
      t.table.firstOf(3);
      EXPECT_EQ(t.owner.take(1000) == nullptr, with != 0);
      for (AnnounceCell *cell : taken)
        t.owner.giveBack(*cell);
    }
}

TEST(AnnounceTable, AnIndexFullOfOneCellEnds) {
  Table t(64);
  AnnounceCell *cell = t.owner.take(5);
  t.damageWithNumber(1, 1);
  EXPECT_EQ(t.table.find(5), cell);
  EXPECT_EQ(t.table.find(6), nullptr);
  EXPECT_FALSE(t.table.lifeOf(6));
  EXPECT_EQ(t.owner.take(6), nullptr);
  t.owner.giveBack(*cell);
}

TEST(AnnounceTable, NumbersBehindAPlaceThatBecomesFreeLeadNowhere) {
  Table t(64);
  AnnounceCell *cell = t.owner.take(5);
  t.damageWithNumber(0xfffffff0, 1);
  t.owner.giveBack(*cell);
  EXPECT_EQ(t.table.find(5), nullptr);
}

TEST(AnnounceTable, AllCellsCanBeTakenAndNoMore) {
  Table t(8);
  std::vector<AnnounceCell *> taken;
  for (uint64_t id = 0; id < 8; ++id) {
    EXPECT_EQ(t.owner.numFree(), 8 - id);
    ASSERT_NE(taken.emplace_back(t.owner.take(id * 1000)), nullptr);
  }
  EXPECT_EQ(t.owner.take(9), nullptr);
  EXPECT_EQ(t.table.find(9), nullptr);
  for (uint64_t id = 0; id < 8; ++id)
    EXPECT_EQ(t.table.find(id * 1000), taken[id]);
  t.owner.giveBack(*taken[3]);
  EXPECT_EQ(t.table.find(3000), nullptr);
  EXPECT_EQ(t.owner.take(9), taken[3]);
  EXPECT_EQ(t.table.find(9), taken[3]);
  EXPECT_EQ(t.owner.take(10), nullptr);
}

TEST(AnnounceTable, AnEntryAboutToLeaveIsNotFound) {
  Table t(8);
  AnnounceCell *cell = t.owner.take(7);
  cell->enter(CellPhase::Leaving, 3);
  EXPECT_EQ(t.table.find(7), nullptr);
  EXPECT_EQ(t.table.lifeOf(7)->phase, CellPhase::Leaving);
  EXPECT_EQ(t.table.lifeOf(7)->ordinal, 3u);
  cell->enter(CellPhase::Active);
  EXPECT_EQ(t.table.find(7), cell);
}

TEST(AnnounceTable, AnotherGenerationIsAnother) {
  Table t(1);
  AnnounceCell *cell = t.owner.take(1);
  uint64_t generation = cell->readLife().generation;
  t.owner.giveBack(*cell);
  EXPECT_EQ(cell->readLife().phase, CellPhase::Vacant);
  EXPECT_EQ(t.owner.take(2), cell);
  EXPECT_NE(cell->readLife().generation, generation);
  EXPECT_EQ(t.table.find(1), nullptr);
}

/// Against a map, for long: the index neither loses nor keeps anything.
TEST(AnnounceTable, AHundredThousandComeAndGo) {
  constexpr uint64_t kSeed = 3, kSteps = 100000, kCells = 64;
  Table t(kCells);
  std::unordered_map<uint64_t, AnnounceCell *> expected;
  std::mt19937_64 random(kSeed);
  for (uint64_t step = 0; step < kSteps; ++step) {
    uint64_t id = random() % 150;
    auto known = expected.find(id);
    if (known != expected.end()) {
      ASSERT_EQ(t.table.find(id), known->second);
      t.owner.giveBack(*known->second);
      expected.erase(known);
    } else if (AnnounceCell *cell = t.owner.take(id)) {
      expected[id] = cell;
    } else {
      ASSERT_EQ(expected.size(), kCells);
    }
    ASSERT_EQ(t.owner.numFree(), kCells - expected.size());
    for (uint64_t other = 0; step % 1000 == 0 && other < 150; ++other)
      ASSERT_EQ(t.table.find(other), expected.count(other) ? expected[other] : nullptr);
  }
}

TEST(AnnounceTable, ReadersSeeWholeCellsWhileTheOwnerTakes) {
  constexpr uint64_t kCollectives = 200;
  Table t(256);
  std::thread reader([&] {
    for (uint64_t id = 0; id < kCollectives; ++id) {
      const AnnounceCell *cell = nullptr;
      while (!cell)
        cell = t.table.find(id);
      const AnnounceRecord *record = nullptr;
      while (!record)
        record = cell->find(0);
      EXPECT_EQ(record->read().arenaOffset, id * 64);
      EXPECT_EQ(record->read().traits.count, id);
    }
  });
  for (uint64_t id = 0; id < kCollectives; ++id)
    t.owner.take(id)->publish(0, id * 64, {id, id, 0, 0});
  reader.join();
}

TEST(AnnounceTable, EntriesThatStayAreFoundWhileOthersComeAndGo) {
  constexpr uint64_t kStays = 20, kRounds = 20000;
  Table t(64);
  std::vector<AnnounceCell *> stays;
  for (uint64_t id = 0; id < kStays; ++id)
    stays.push_back(t.owner.take(id));
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    for (uint64_t i = 0; !ended; ++i) {
      // All that is found is right; that nothing is found is said only if that is so.
      auto life = t.table.lifeOf(i % kStays);
      EXPECT_TRUE(!life || life->phase == CellPhase::Active);
      const AnnounceCell *cell = t.table.find(i % kStays);
      EXPECT_TRUE(!cell || cell == stays[i % kStays]);
      life = t.table.lifeOf(1000 + i % 50);
      EXPECT_TRUE(!life || life->phase == CellPhase::Vacant || life->phase == CellPhase::Active);
    }
  });
  std::deque<AnnounceCell *> passing;
  for (uint64_t i = 0; i < kRounds; ++i) {
    passing.push_back(t.owner.take(1000 + i % 50));
    if (passing.size() < 40)
      continue;
    t.owner.giveBack(*passing.front());
    passing.pop_front();
  }
  ended = true;
  reader.join();
}

} // namespace
} // namespace occl::transport
