// What ranks find on their board: lanes, records and the one order of all calls, call by call.
#include "runtime/cuda/lanes/lane_table.h"
#include "runtime/cuda/lanes/testing/lane_testing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace occl::cuda {
namespace {

TEST(LaneTable, AnIdHasTheSameLaneAgain) {
  LaneTable table(*emptyBoard(), 0, 1, {4}, good);
  std::vector<uint32_t> lanes;
  for (uint64_t id = 10; id < 13; ++id)
    lanes.push_back((**table.laneOf(id, 1, false)).number);
  EXPECT_EQ(lanes, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ((**table.laneOf(12, 1, false)).number, lanes[2]);
  EXPECT_EQ((**table.laneOf(10, 1, false)).number, lanes[0]);
}

TEST(LaneTable, ARankThatDiesWithTheLockIsNamed) {
  LaneBoard *board = emptyBoard();
  board->lock.store(3);
  LaneTable table(*board, 0, 4, {4}, [](uint32_t owner) {
    return Status(StatusCode::PeerFailed, "rank " + std::to_string(owner));
  });
  EXPECT_EQ(table.laneOf(0, 1, false).status().message(), "rank 2");
  EXPECT_EQ(table.make(0, 1, {}).status().message(), "rank 2");
}

/// A rank holds the only lane for a call that this one has not made, and dies: who is refused finds
/// that out, though nothing of it waits.
TEST(LaneTable, ARefusedCallNamesTheRanksThatHoldLanes) {
  LaneBoard *board = emptyBoard();
  LaneTable first(*board, 0, 2, {1}, good), second(*board, 1, 2, {1}, good);
  const auto enters = [](LaneName, uint64_t) { return StatusOr<bool>(true); };
  ASSERT_TRUE(second.makeEarly(7, 0, {}, enters)->has_value());
  ASSERT_TRUE(second.make(8, 0, {})->has_value());
  ASSERT_FALSE(first.makeEarly(8, 0, {}, enters)->has_value());
  EXPECT_EQ(first.notBefore(8), 0u);
  EXPECT_EQ(first.refusing(8, 0), 2u) << "it holds the lane";
  EXPECT_EQ(first.refusing(8, 1), 0u) << "no lane of that kernel is held";
  EXPECT_EQ(first.refusing(9, 1), 2u) << "it has not made the call";
  EXPECT_EQ(second.refusing(9, 0), 1u);
}

/// Then calls wait, and others are asked what is complete.
TEST(LaneTable, AsManyIdsInFlightAsThereAreRecords) {
  LaneBoard *board = emptyBoard();
  LaneTable first(*board, 0, 2, {4}, good), second(*board, 1, 2, {4}, good);
  for (uint64_t id = 0; id < kMostIds; ++id)
    ASSERT_TRUE(first.make(id, 0, {})->has_value());
  EXPECT_FALSE(first.make(kMostIds, 0, {})->has_value());
  EXPECT_TRUE(second.isDoneWanted());
  const CallName made = **second.make(0, 0, {});
  EXPECT_FALSE(second.make(kMostIds, 0, {})->has_value());
  first.noteDone(made.record, 1);
  second.noteDone(made.record, 1);
  bool hasRoom = false; // a few are looked at each time
  for (uint32_t i = 0; i < kMostIds && !hasRoom; ++i)
    hasRoom = second.make(kMostIds, 0, {})->has_value();
  EXPECT_TRUE(hasRoom);
}

/// Whoever goes on has what was held up come into the order.
TEST(LaneTable, AFullOrderIsWaitedFor) {
  LaneBoard *board = emptyBoard();
  LaneTable first(*board, 0, 2, {4}, good), second(*board, 1, 2, {4}, good);
  uint64_t made = 0;
  for (; made < kOrderPlaces + 3; ++made) {
    ASSERT_TRUE(first.make(made % 5, 0, {}).ok());
    ASSERT_TRUE(second.make(made % 5, 0, {}).ok());
    if (second.next())
      second.pass();
  }
  EXPECT_EQ(board->numHeldUp.load(), 3u);
  EXPECT_EQ(board->tail.load(), kOrderPlaces);
  EXPECT_TRUE(second.orderHeldUp().ok());
  EXPECT_EQ(board->numHeldUp.load(), 3u);
  uint64_t seen = 0;
  for (; const auto next = first.next(); ++seen) {
    EXPECT_EQ(next->call.call, seen / 5);
    first.pass();
    ASSERT_TRUE(first.orderHeldUp().ok());
  }
  EXPECT_EQ(seen, made);
  EXPECT_EQ(board->numHeldUp.load(), 0u);
}

/// What an id holds it keeps from others, until its calls are complete on all ranks.
TEST(LaneTable, AHeldLaneIsNobodyElses) {
  LaneBoard *board = emptyBoard();
  LaneTable first(*board, 0, 2, {2}, good), second(*board, 1, 2, {2}, good);
  std::vector<LaneName> lanes;
  std::vector<uint64_t> numbers;
  const auto enters = [&](LaneName lane, uint64_t number) {
    lanes.push_back(lane);
    numbers.push_back(number);
    return StatusOr<bool>(true);
  };
  ASSERT_TRUE(first.makeEarly(1, 0, {}, enters)->has_value());
  const CallName last = **first.makeEarly(1, 0, {}, enters);
  EXPECT_EQ(lanes[0], lanes[1]);
  EXPECT_EQ(numbers, (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(first.holders(0), "1");
  // Ids whose usual lane it is are given the other one.
  for (uint64_t id = 2; id < 6; ++id) {
    ASSERT_TRUE(first.make(id, 0, {}).ok());
    ASSERT_TRUE(second.make(id, 0, {}).ok());
    EXPECT_NE(first.next()->lane, lanes[0]);
    first.pass();
    second.pass();
  }
  // Both are held: others wait, and early ones are refused.
  ASSERT_TRUE(first.makeEarly(7, 0, {}, enters)->has_value());
  EXPECT_NE(lanes[2], lanes[0]);
  EXPECT_FALSE(first.makeEarly(8, 0, {}, enters)->has_value());
  ASSERT_TRUE(first.make(9, 0, {}).ok());
  const CallName waits = **second.make(9, 0, {});
  EXPECT_FALSE(first.next().has_value());
  EXPECT_EQ(first.holders(0), "1, 7");
  EXPECT_TRUE(second.isDoneWanted());
  EXPECT_EQ(first.missing(waits), 0u);
  EXPECT_EQ(first.without(waits), 2u); // nobody can have executed it
  // The other rank makes what holds the first lane, where it was given its number.
  ASSERT_TRUE(second.makeEarly(1, 0, {}, enters)->has_value());
  EXPECT_EQ(lanes.back(), lanes[0]);
  EXPECT_EQ(numbers.back(), 0u);
  second.pass();
  ASSERT_TRUE(second.make(1, 0, {}).ok());
  EXPECT_EQ(second.next()->number, 1u);
  second.pass();
  // It is complete on one rank, then on both.
  for (LaneTable *table : {&first, &second}) {
    EXPECT_TRUE(second.orderHeldUp().ok());
    EXPECT_FALSE(second.next().has_value());
    table->noteDone(last.record, last.call + 1);
  }
  EXPECT_TRUE(second.orderHeldUp().ok());
  EXPECT_EQ(second.holders(0), "7");
  EXPECT_EQ(second.next()->lane, lanes[0]); // that of id 9
  EXPECT_EQ(second.next()->number, 2u);
}

TEST(LaneTable, LargeCallsHaveLanesOfTheirOwn) {
  LaneTable table(*emptyBoard(), 0, 1, {2, 2}, good);
  const auto lanesOf = [&](uint64_t firstId, bool isLarge) {
    std::vector<uint32_t> lanes;
    for (uint64_t id = firstId; id < firstId + 3; ++id)
      lanes.push_back((**table.laneOf(id, 0, isLarge)).number);
    return lanes;
  };
  constexpr uint32_t kFirst = kMaxSmallLanes;
  EXPECT_EQ(lanesOf(0, true), (std::vector<uint32_t>{kFirst, kFirst + 1, kFirst}));
  EXPECT_EQ(lanesOf(0, false), (std::vector<uint32_t>{0, 1, 0}));
  // The other calls of an id that has made a large one are expected there, too.
  ASSERT_TRUE(table.make(1, 0, {.isLarge = true})->has_value());
  EXPECT_EQ(lanesOf(0, false), (std::vector<uint32_t>{0, kFirst + 1, 0}));
  EXPECT_EQ((**table.laneOf(1, 2, false)).number, 0u);
  LaneTable without(*emptyBoard(), 0, 1, {2, 0}, good);
  EXPECT_EQ((**without.laneOf(1, 0, true)).number, 0u);
}

/// Two ranks, and the lanes of what they make; each goes past it at once.
struct TwoTables {
  explicit TwoTables(LaneNumbers numbers)
      : first(*board, 0, 2, numbers, good), second(*board, 1, 2, numbers, good) {}

  /// Of a call before the other rank has made it; nothing: it is refused.
  std::optional<uint32_t> early(uint64_t id, bool isLarge) {
    std::optional<uint32_t> lane;
    made = *first.makeEarly(id, 0, {.isLarge = isLarge}, [&](LaneName name, uint64_t) {
      lane = name.number;
      return StatusOr<bool>(true);
    });
    return made ? lane : std::nullopt;
  }
  /// Of a call that both make; nothing: it waits.
  std::optional<uint32_t> both(uint64_t id, bool isLarge) {
    made = *first.make(id, 0, {.isLarge = isLarge});
    EXPECT_TRUE(second.make(id, 0, {.isLarge = isLarge})->has_value());
    const auto next = first.next();
    if (next) {
      first.pass();
      second.pass();
    }
    return next ? std::optional(next->lane.number) : std::nullopt;
  }
  /// What was made last, and all before it of its id, is complete.
  void complete() {
    for (LaneTable *table : {&first, &second})
      table->noteDone(made->record, made->call + 1);
  }

  LaneBoard *board = emptyBoard();
  LaneTable first, second;
  std::optional<CallName> made;
};

/// Large calls wait for a small lane only if there is no large one either, and small ones have none
/// of the large ones.
TEST(LaneTable, HeldLargeLanes) {
  TwoTables of({1, 2});
  constexpr uint32_t kFirst = kMaxSmallLanes;
  EXPECT_EQ(of.early(1, true), kFirst);
  EXPECT_EQ(of.both(2, true), kFirst + 1);
  EXPECT_EQ(of.early(3, true), 0u); // in the second one is a call of another id
  EXPECT_TRUE(of.second.isDoneWanted());
  EXPECT_EQ(of.both(4, true), kFirst + 1);
  EXPECT_EQ(of.early(4, true), kFirst + 1); // behind its own call
  EXPECT_EQ(of.both(5, true), std::nullopt);
  EXPECT_EQ(of.both(6, false), std::nullopt);
  EXPECT_EQ(of.early(7, false), std::nullopt);
}

/// A small call that lacks a lane has those go on who hold large ones, which are not for it.
TEST(LaneTable, AHolderOfALargeLaneStopsForLargeCallsAlone) {
  TwoTables of({1, 1});
  EXPECT_EQ(of.early(1, true), kMaxSmallLanes);
  EXPECT_EQ(of.early(2, false), 0u);
  EXPECT_EQ(of.both(3, false), std::nullopt);
  for (uint32_t i = 0; i < 20; ++i)
    EXPECT_EQ(of.early(1, true), kMaxSmallLanes) << i;
  EXPECT_EQ(of.early(4, true), std::nullopt);
  EXPECT_EQ(of.early(1, true), std::nullopt);
}

/// An id's calls stay where the one before is, until that is complete; and so do small ones.
TEST(LaneTable, LargeCallsMoveWhenTheCallBeforeIsComplete) {
  TwoTables of({2, 1});
  EXPECT_EQ(of.both(1, false), 0u);
  EXPECT_EQ(of.early(1, true), 0u);
  EXPECT_TRUE(of.second.isDoneWanted());
  of.complete();
  EXPECT_EQ(of.early(1, true), kMaxSmallLanes);
  EXPECT_EQ(of.early(1, false), kMaxSmallLanes);
}

/// However far another rank is ahead of it.
TEST(LaneTable, ACallStaysInTheLaneOfTheOneBefore) {
  TwoTables of({2, 0});
  EXPECT_EQ(of.both(1, false), 0u);
  EXPECT_EQ(of.both(2, false), 1u);
  for (uint32_t i = 0; i < kMostAhead; ++i)
    ASSERT_TRUE(of.first.make(2, 0, {})->has_value());
  EXPECT_FALSE(of.first.make(2, 0, {})->has_value());
  ASSERT_TRUE(of.second.make(2, 0, {})->has_value());
  EXPECT_EQ(of.first.next()->lane.number, 1u);
}

/// In another lane the next call of an id is in the order when the one before is complete
/// everywhere: nobody waits for that who goes through the order.
TEST(LaneTable, AnotherKernelComesIntoTheOrderBehindTheCallBefore) {
  LaneBoard *board = emptyBoard();
  LaneTable first(*board, 0, 2, {2}, good), second(*board, 1, 2, {2}, good);
  for (LaneTable *table : {&first, &second}) {
    ASSERT_TRUE(table->make(1, 0, {}).ok());
    ASSERT_TRUE(table->make(1, 1, {}).ok());
    ASSERT_TRUE(table->make(2, 0, {}).ok());
  }
  const uint32_t record = first.next()->call.record;
  first.pass();
  EXPECT_NE(first.next()->call.record, record);
  // Nor does anything enter early before what is in the order.
  const auto enters = [](LaneName, uint64_t) { return StatusOr<bool>(true); };
  EXPECT_FALSE(first.makeEarly(3, 0, {}, enters)->has_value());
  first.pass();
  EXPECT_TRUE(first.makeEarly(3, 0, {}, enters)->has_value());
  first.noteDone(record, 1);
  EXPECT_TRUE(first.orderHeldUp().ok());
  EXPECT_FALSE(first.next().has_value());
  second.noteDone(record, 1);
  EXPECT_TRUE(first.orderHeldUp().ok());
  EXPECT_EQ(first.next()->call, (CallName{record, 1}));
  EXPECT_EQ(first.next()->lane.kernel, 1u);
}

/// Types and operations by name; what another process stores may be none.
TEST(LaneTable, DifferencesOfACallAreNamed) {
  const auto mismatch = [](const LaneSignature &theirs, const LaneSignature &ours) {
    LaneBoard *board = emptyBoard();
    LaneTable first(*board, 0, 2, {2}, good), second(*board, 1, 2, {2}, good);
    EXPECT_TRUE(first.make(7, 0, theirs).ok());
    return second.make(7, 0, ours).status().message();
  };
  const auto text = [](const std::string &theirs, const std::string &ours) {
    return "the calls of id 7: rank 0 has started one with " + theirs + ", rank 1 with " + ours;
  };
  EXPECT_EQ(mismatch({.type = 5}, {.type = 1}), text("dataType float32", "dataType int32"));
  EXPECT_EQ(mismatch({.type = 200}, {.type = 1}), text("dataType unknown", "dataType int32"));
  EXPECT_EQ(mismatch({.op = 0}, {.op = 3}), text("op sum", "op max"));
  EXPECT_EQ(mismatch({.count = 4}, {.count = 5}), text("count 4", "count 5"));
  EXPECT_EQ(mismatch({.root = 1}, {.root = 0}), text("root 1", "root 0"));
}

} // namespace
} // namespace occl::cuda
