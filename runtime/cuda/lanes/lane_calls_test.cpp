// Ranks that share a board of lanes: in one thread all orders of their steps for small programs,
// random ones for large ones; and in a thread each.
#include "runtime/cuda/lanes/lane_calls.h"
#include "runtime/cuda/lanes/testing/lane_testing.h"
#include "runtime/cuda/lanes/testing/lane_world.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::cuda {
namespace {

TEST(LaneCalls, AllOrdersOfTwoIdsInOneLane) {
  uint64_t orders = 0;
  EXPECT_EQ(forAllOrders(
                [] {
                  return World({{{1}, {2}}, {{2}, {1}}}, {1}, 256);
                },
                60'000, orders),
            "");
  EXPECT_GT(orders, 100u);
}

TEST(LaneCalls, ManyOrdersOfOneIdTwiceAndAnother) {
  uint64_t orders = 0;
  EXPECT_EQ(forAllOrders(
                [] {
                  return World({{{1}, {1}, {2}}, {{2}, {1}, {1}}}, {1}, 256);
                },
                60'000, orders),
            "");
}

TEST(LaneCalls, ManyOrdersOfAnIdInTwoKernels) {
  uint64_t orders = 0;
  EXPECT_EQ(forAllOrders(
                [] {
                  return World({{{1, 0}, {1, 2}, {1, 0}}, {{1, 0}, {1, 2}, {1, 0}}}, {1}, 256);
                },
                60'000, orders),
            "");
}

TEST(LaneCalls, RandomOrdersOfManyMoreIdsThanLanes) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const uint32_t ranks = 2 + random() % 3, ids = 1 + random() % 12, lanes = 1 + random() % 3;
    Program program;
    for (uint32_t i = 0; i < 40; ++i) {
      const uint64_t id = random() % ids;
      program.push_back({id, static_cast<uint32_t>(id % 2 * 2), 1});
    }
    World world(permuted(ranks, program, random), {lanes}, 64);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

TEST(LaneCalls, WaitsForManyMoreThanThereAreLanes) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 300; ++trial) {
    constexpr uint32_t kLanes = 3;
    std::vector<Program> programs(2 + random() % 3);
    for (uint32_t round = 0; round < 8; ++round) {
      Program group;
      for (uint32_t i = 0; i < 5 * kLanes; ++i)
        group.push_back({random() % 20});
      for (Program &program : programs) {
        std::ranges::shuffle(group, random);
        program.insert(program.end(), group.begin(), group.end());
        program.push_back({.waits = true});
      }
    }
    World world(std::move(programs), {kLanes}, 64);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

TEST(LaneCalls, MoreMayWaitForEachOtherThanThereAreLanes) {
  uint64_t orders = 0;
  EXPECT_EQ(forAllOrders(
                [] {
                  return World({{{1}, {.waits = true}, {2}, {3}}, {{2}, {3}, {1}}}, {1}, 256);
                },
                60'000, orders),
            "");
}

/// Each rank goes through what all have made in its own time, and the window has room for less.
TEST(LaneCalls, TwoGroupsInOppositeOrderThatFillTheWindow) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 300; ++trial) {
    Program first, second;
    for (uint64_t id = 0; id < 40; ++id) {
      first.push_back({id});
      second.push_back({(id + 20) % 40});
    }
    World world({first, second}, {1 + static_cast<uint32_t>(random() % 40)}, 4);
    // At first one rank makes everything, then the other one.
    EXPECT_EQ(run(world, [&](uint32_t n) { return trial % 2 == 0 ? 0 : random() % n; }), "")
        << "trial " << trial;
  }
}

TEST(LaneCalls, AnEarlyCallIsInNobodysWay) {
  // As long as the window is, and longer, another id goes on.
  Program first = {{1}}, second;
  for (uint32_t i = 0; i < 12; ++i)
    for (Program *program : {&first, &second}) {
      program->push_back({2});
      program->push_back({.waits = true});
    }
  // Rank 0 waits for all, so for id 1 as well; only the last wait is.
  std::erase_if(first, [](const Step &step) { return step.waits; });
  second.push_back({1});
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 100; ++trial) {
    World world({first, second}, {2}, 4);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

TEST(LaneCalls, MoreInFlightThanTheWindowHas) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 100; ++trial) {
    Program program;
    for (uint32_t i = 0; i < 200; ++i)
      program.push_back({i % 8});
    World world(permuted(2, program, random), {8}, 16);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

/// In each order of the two ranks' steps somebody says so.
void expectMismatch(const Program &first, const Program &second, const std::string &text) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 200; ++trial) {
    World world({first, second}, {2}, 64);
    const std::string wrong = run(world, [&](uint32_t n) { return random() % n; });
    EXPECT_NE(wrong.find(text), std::string::npos) << wrong;
  }
}

TEST(LaneCalls, AnotherCountIsAMismatch) {
  expectMismatch({{7, 0, 100}}, {{7, 0, 101}}, "rank ");
  expectMismatch({{7, 0, 1}, {7, 0, 100}}, {{7, 0, 1}, {7, 0, 101}},
                 "has started one with count 10");
}

TEST(LaneCalls, AnotherKernelIsAMismatch) {
  expectMismatch({{7, 0, 100}}, {{7, 2, 101}}, "has started one with count 10");
  expectMismatch({{7, 0, 1}, {7, 2, 2}, {7, 0, 100}, {7, 0, 3}},
                 {{7, 0, 1}, {7, 2, 2}, {7, 2, 101}, {7, 2, 3}}, "has started one with count");
}

/// Records of ids whose calls are all in the order are other ids'; a rank that has not gone past
/// those calls does not take one of the new id for one of the old one.
TEST(LaneCalls, MoreIdsThanThereAreRecords) {
  LaneBoard *board = emptyBoard();
  LaneTable first(*board, 0, 2, {4}, good), second(*board, 1, 2, {4}, good);
  const auto enters = [](LaneName, uint64_t) { return StatusOr<bool>(true); };
  for (uint64_t id = 0; id < 3 * kMostIds; ++id) {
    const LaneSignature signature = {.isLarge = id < kMostIds};
    auto early = first.makeEarly(id, 0, signature, enters);
    auto last = second.make(id, 0, signature);
    ASSERT_TRUE(early.ok() && *early && last.ok() && *last) << id;
    EXPECT_EQ(**early, **last);
    EXPECT_EQ(second.next()->call, **last);
    EXPECT_EQ((**last).call, id / kMostIds);
    for (LaneTable *table : {&first, &second}) {
      table->pass();
      table->noteDone((**last).record, (**last).call + 1);
    }
  }
  EXPECT_EQ(board->numUsed, kMostIds);
  EXPECT_FALSE(first.isDoneWanted());
  EXPECT_EQ(board->records[0].wantsLarge, 0u) << "what the first id wanted";
  // One whose call is not complete on a rank stays.
  const CallName stays = **first.make(1ull << 40, 0, {});
  ASSERT_TRUE(second.make(1ull << 40, 0, {})->has_value());
  first.noteDone(stays.record, stays.call + 1);
  for (uint64_t id = 0; id < 2 * kMostIds; ++id) {
    ASSERT_TRUE(first.make(id, 0, {})->has_value());
    const CallName made = **second.make(id, 0, {});
    EXPECT_NE(made.record, stays.record);
    for (LaneTable *table : {&first, &second}) {
      table->pass();
      table->noteDone(made.record, made.call + 1);
    }
  }
}

/// In one order of those that are early on some rank; there are lanes for all ids.
TEST(LaneCalls, RandomOrdersWithEarlyCalls) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const uint32_t numRanks = 2 + random() % 3, ids = 1 + random() % 6;
    std::vector<Program> programs(numRanks);
    for (uint32_t i = 0; i < 30; ++i) {
      Step step = {random() % ids, static_cast<uint32_t>(random() % 2), 1 + random() % 2};
      step.isLarge = step.count == 2 && random() % 2 == 0;
      const bool mayBeEarly = random() % 2 == 0;
      for (Program &program : programs) {
        program.push_back(step);
        program.back().isEarly = mayBeEarly && random() % 4 != 0;
        if (random() % 16 == 0)
          program.push_back({.waits = true});
      }
    }
    const uint32_t small = ids + random() % 2, large = random() % 3;
    World world(std::move(programs), {small, large}, 64);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

/// What stands behind a stream is in nobody's way, though ids share lanes.
TEST(LaneCalls, ACallWhoseStreamWaitsForAnotherCall) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 400; ++trial) {
    // Rank 0's stream comes to id 1 when id 3 is complete, and id 1 has a call of another kernel
    // behind that.
    const Step gated = {.id = 1, .isEarly = true, .gate = 3}, next = {1, 1};
    Program first = {gated, {3}, {2}, {4}}, second = {{1}, {2}, {3}, {4}};
    if (trial % 2 == 0)
      for (Program *program : {&first, &second})
        program->insert(program->begin() + 1, next);
    World world({first, second}, {2}, 16);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

/// Nor if its lane is the only large one: other large calls go on in small ones.
TEST(LaneCalls, ALargeCallWhoseStreamWaitsForAnotherOne) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (uint32_t trial = 0; trial < 400; ++trial) {
    const auto large = [](uint64_t id) { return Step{.id = id, .isLarge = true}; };
    Program first = {large(1), large(3), large(2), {4}},
            second = {large(1), large(2), large(3), {4}};
    first[0].isEarly = true;
    first[0].gate = 3;
    World world({first, second}, {1, 1}, 16);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

/// A rank by itself, whose calls are complete when the test says so.
struct AloneRank : LaneEngine {
  AloneRank(LaneBoard &board, uint32_t rank, LaneNumbers lanes = {2})
      : table(board, rank, 2, lanes, good), calls(table, *this) {}

  StatusOr<bool> prepare(LaneCall &, LaneName lane) override {
    prepared.push_back(lane.number);
    return true;
  }
  void begin(uint32_t) override {}
  StatusOr<std::optional<uint64_t>> execute(LaneCall &, LaneName lane, uint64_t number) override {
    if (!hasRoom)
      return std::optional<uint64_t>();
    lanes.push_back(lane.number);
    numbers.push_back(number);
    return std::optional<uint64_t>(numbers.size() - 1);
  }
  bool isComplete(uint32_t, uint64_t request) const override { return request < numComplete; }
  StatusOr<bool> start(uint64_t id, bool entersEarly = false, bool isLarge = false) {
    auto call = std::make_unique<TestCall>();
    call->id = id;
    call->signature.isLarge = isLarge;
    call->entersEarly = entersEarly;
    LaneCalls::Calls executed;
    auto done = calls.tryNow(*call, executed);
    isMade = calls.isMade(*call);
    if (done.ok() && !*done && !entersEarly)
      calls.enqueue(std::move(call));
    return done;
  }
  Status advance() {
    LaneCalls::Calls executed;
    return calls.advance(executed);
  }

  LaneTable table;
  LaneCalls calls;
  bool hasRoom = true, isMade = false;
  size_t numComplete = 0;
  std::vector<uint64_t> numbers; // of what was executed
  std::vector<uint32_t> lanes;   // likewise
  std::vector<uint32_t> prepared;
};

/// What is far ahead of another rank is made when that has come nearer, by whoever comes by; not
/// while a rank has the lock that does not run.
TEST(LaneCalls, ARankIsNotFarAheadOfAnother) {
  LaneBoard *board = emptyBoard();
  AloneRank first(*board, 0), second(*board, 1);
  constexpr uint64_t kCalls = 3 * kMostAhead;
  for (uint64_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(first.start(7).ok());
    EXPECT_EQ(first.isMade, i < kMostAhead) << i;
  }
  for (uint64_t i = 0; i < kMostAhead; ++i)
    EXPECT_TRUE(*second.start(7));
  EXPECT_FALSE(*second.start(7));
  board->lock.store(2);
  EXPECT_TRUE(first.advance().ok());
  EXPECT_EQ(first.numbers.size(), kMostAhead);
  EXPECT_EQ(first.calls.missingFor(static_cast<LaneCall &>(*first.calls.queue().front())), 0u);
  board->lock.store(0);
  EXPECT_TRUE(first.advance().ok());
  EXPECT_EQ(first.numbers.size(), kMostAhead + 1);
  EXPECT_TRUE(second.advance().ok());
  EXPECT_EQ(second.numbers, first.numbers);
  while (second.numbers.size() < kCalls) {
    ASSERT_TRUE(second.start(7).ok());
    ASSERT_TRUE(first.advance().ok());
    ASSERT_TRUE(second.advance().ok());
  }
  EXPECT_EQ(second.numbers, first.numbers);
  EXPECT_EQ(first.calls.numWaiting(), 0u);
}

/// Records pass from id to id, and ids come again with other ones; ranks forget ids when they like.
TEST(LaneCalls, ManyMoreIdsThanRecordsThatComeAgain) {
  LaneBoard *board = emptyBoard();
  AloneRank first(*board, 0), second(*board, 1);
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  std::vector<uint64_t> ids;
  for (uint32_t i = 0; i < 3 * kMostIds; ++i)
    ids.push_back(random());
  const auto complete = [&] {
    first.numComplete = first.numbers.size();
    second.numComplete = second.numbers.size();
  };
  for (uint32_t round = 0; round < 64 * kMostIds; ++round) {
    const uint64_t id = ids[random() % ids.size()];
    const bool isFirst = random() % 2 == 0;
    ASSERT_TRUE((isFirst ? first : second).start(id).ok());
    ASSERT_TRUE((isFirst ? second : first).start(id).ok());
    const auto areAny = [&] { return first.calls.numWaiting() + second.calls.numWaiting() != 0; };
    for (uint32_t i = 0; i < 400 && areAny(); ++i) {
      ASSERT_TRUE(first.advance().ok());
      ASSERT_TRUE(second.advance().ok());
      complete();
    }
    ASSERT_FALSE(areAny()) << round;
    complete();
    for (AloneRank *rank : {&first, &second})
      if (random() % 3 == 0)
        rank->calls.forget(ids[random() % ids.size()]);
  }
  EXPECT_EQ(first.numbers.size(), second.numbers.size());
}

/// Without room in the window a rank goes past nothing.
TEST(LaneCalls, CallsWithoutRoomWaitInTheOrder) {
  LaneBoard *board = emptyBoard();
  AloneRank first(*board, 0), second(*board, 1);
  first.hasRoom = false;
  for (uint64_t id : {1, 2, 3})
    ASSERT_TRUE(second.start(id).ok());
  for (uint64_t id : {3, 1, 2})
    EXPECT_FALSE(*first.start(id));
  EXPECT_TRUE(first.advance().ok());
  EXPECT_EQ(first.calls.numWaiting(), 3u);
  EXPECT_FALSE(*first.start(9, true)); // nor does what would enter early
  first.hasRoom = true;
  EXPECT_TRUE(first.advance().ok());
  EXPECT_EQ(first.calls.numWaiting(), 0u);
  EXPECT_TRUE(*first.start(9, true));
}

/// It can still be refused: nobody counts on it.
TEST(LaneCalls, EarlyCallsAreNotMadeWithoutRoom) {
  LaneBoard *board = emptyBoard();
  AloneRank rank(*board, 0);
  rank.hasRoom = false;
  auto done = rank.start(7, true);
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(*done);
  EXPECT_FALSE(rank.isMade);
  EXPECT_EQ(rank.table.notBefore(7), 2u);
  EXPECT_EQ(board->lanes[0][0].next, 0u);
  EXPECT_EQ(rank.table.holders(0), "none");
  rank.hasRoom = true;
  done = rank.start(7, true);
  EXPECT_TRUE(done.ok() && *done && rank.isMade);
  EXPECT_EQ(rank.numbers, (std::vector<uint64_t>{0}));
}

/// In the lane of the call before, while that is not complete, calls follow at once; and what an id
/// with large calls needs there is made before others count on it.
TEST(LaneCalls, LargeCallsMoveToALargeLaneWhenTheSmallOnesAreComplete) {
  LaneBoard *board = emptyBoard();
  AloneRank first(*board, 0, {2, 2}), second(*board, 1, {2, 2});
  const auto startBoth = [&](bool entersEarly, bool isLarge) {
    for (AloneRank *rank : {&first, &second}) {
      auto done = rank->start(7, entersEarly, isLarge);
      EXPECT_TRUE(done.ok() && *done);
    }
  };
  startBoth(true, false);
  startBoth(true, true);
  EXPECT_EQ(first.lanes, (std::vector<uint32_t>{0, 0}));
  // Others are asked to say what is complete, which they do when they come by.
  EXPECT_TRUE(second.table.isDoneWanted());
  for (AloneRank *rank : {&first, &second}) {
    rank->numComplete = 2;
    EXPECT_TRUE(rank->advance().ok());
  }
  startBoth(true, true);
  startBoth(true, false);
  EXPECT_EQ(first.lanes, (std::vector<uint32_t>{0, 0, kMaxSmallLanes, kMaxSmallLanes}));
  EXPECT_EQ(second.lanes, first.lanes);
  // Another id, whose calls do not enter early.
  first.prepared.clear();
  ASSERT_TRUE(first.start(8, false, true).ok());
  EXPECT_TRUE(*second.start(8, false, true));
  EXPECT_EQ(second.lanes.back(), kMaxSmallLanes + 1);
  EXPECT_EQ(first.prepared, (std::vector<uint32_t>{kMaxSmallLanes + 1}));
  // One that was in a small lane before.
  for (AloneRank *rank : {&second, &first})
    ASSERT_TRUE(rank->start(9).ok());
  for (AloneRank *rank : {&second, &first}) {
    ASSERT_TRUE(rank->advance().ok());
    rank->numComplete = rank->numbers.size();
    ASSERT_TRUE(rank->advance().ok());
  }
  first.prepared.clear();
  for (AloneRank *rank : {&first, &second})
    ASSERT_TRUE(rank->start(9, false, true).ok());
  EXPECT_EQ(first.prepared, (std::vector<uint32_t>{kMaxSmallLanes}));
  EXPECT_EQ(second.lanes.back(), kMaxSmallLanes);
}

// --- with threads ---

constexpr uint32_t kIdsOfThreads = 300, kCallsOfThreads = 4000;

/// A rank that a thread runs; calls are complete when all ranks have executed them.
struct ThreadRank : LaneEngine {
  using Executed = std::vector<std::array<std::atomic<uint64_t>, 4>>; // calls, by id and rank

  ThreadRank(LaneBoard &board, uint32_t rank, uint32_t numRanks, Executed &executed)
      : rank(rank), numRanks(numRanks), executed(executed),
        table(board, rank, numRanks, {16}, good), calls(table, *this) {}

  StatusOr<bool> prepare(LaneCall &, LaneName) override { return true; }
  void begin(uint32_t) override {}
  StatusOr<std::optional<uint64_t>> execute(LaneCall &call, LaneName lane,
                                            uint64_t number) override {
    constexpr size_t kWindow = 64;
    if (requests.size() >= kWindow && !isComplete(0, requests.size() - kWindow))
      return std::optional<uint64_t>();
    const uint64_t before = occurrences[call.id]++;
    where[{lane.kernel, lane.number, number}] = {call.id, before};
    requests.emplace_back(call.id, before);
    executed[call.id][rank].fetch_add(1);
    return std::optional<uint64_t>(requests.size() - 1);
  }
  bool isComplete(uint32_t, uint64_t request) const override {
    const auto &[id, before] = requests[request];
    for (uint32_t r = 0; r < numRanks; ++r)
      if (executed[id][r].load() <= before)
        return false;
    return true;
  }
  void run(uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<uint64_t> ids;
    for (uint32_t i = 0; i < kCallsOfThreads; ++i)
      ids.push_back(i % kIdsOfThreads);
    std::ranges::shuffle(ids, random);
    LaneCalls::Calls done;
    for (uint64_t id : ids) {
      auto call = std::make_unique<TestCall>();
      call->id = id;
      call->kernel = static_cast<uint32_t>(id % 2);
      auto isExecuted = calls.tryNow(*call, done);
      ASSERT_TRUE(isExecuted.ok()) << isExecuted.status().message();
      if (!*isExecuted)
        calls.enqueue(std::move(call));
      ASSERT_TRUE(calls.advance(done).ok());
    }
    while (calls.numWaiting() != 0)
      ASSERT_TRUE(calls.advance(done).ok());
  }

  const uint32_t rank, numRanks;
  Executed &executed;
  LaneTable table;
  LaneCalls calls;
  std::vector<Occurrence> requests;
  std::map<uint64_t, uint64_t> occurrences;
  std::map<Meeting, Occurrence> where;
};

TEST(LaneCalls, RanksInThreads) {
  constexpr uint32_t kRanks = 3;
  LaneBoard *board = emptyBoard();
  ThreadRank::Executed executed(kIdsOfThreads);
  std::vector<std::unique_ptr<ThreadRank>> ranks;
  for (uint32_t r = 0; r < kRanks; ++r)
    ranks.push_back(std::make_unique<ThreadRank>(*board, r, kRanks, executed));
  const uint32_t seed = static_cast<uint32_t>(printedSeed());
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] { ranks[r]->run(seed + r); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(ranks[0]->where.size(), kCallsOfThreads);
  for (const auto &rank : ranks)
    EXPECT_EQ(rank->where, ranks[0]->where);
}

} // namespace
} // namespace occl::cuda
