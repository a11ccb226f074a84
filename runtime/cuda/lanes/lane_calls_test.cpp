// Ranks that share a board of lanes, in one thread: all orders of their steps for small programs,
// random ones for large ones. What executes calls is simple: a call is complete on a rank some time
// after all ranks have executed it.
#include "runtime/cuda/lanes/lane_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace occl::cuda {
namespace {

struct Step {
  uint64_t id = 0;
  uint32_t kernel = 0;
  uint64_t count = 1;
  bool waits = false; // for all that was started before; nothing is started
};
using Program = std::vector<Step>;

struct TestCall : LaneCall {
  uint32_t place = 0; // in the program
};

/// A call as ranks meet in it: lane and number.
using Meeting = std::tuple<uint32_t, uint32_t, uint64_t>;
/// What it is: the id, and the how many-th of it.
using Occurrence = std::pair<uint64_t, uint64_t>;

/// The one that there is; nobody uses it any more.
LaneBoard *emptyBoard(uint32_t lanes) {
  static auto board = std::make_unique<LaneBoard>();
  board->lock.store(0);
  board->wanted.store(0);
  board->clock = 0;
  for (auto &ofKernel : board->lanes)
    for (uint32_t l = 0; l < lanes; ++l)
      new (&ofKernel[l]) LaneBoard::Lane();
  return board.get();
}

class World {
public:
  World(std::vector<Program> programs, uint32_t lanes, uint32_t window)
      : board(emptyBoard(lanes)), window(window) {
    for (uint32_t r = 0; r < programs.size(); ++r)
      ranks.push_back(std::make_unique<Rank>(*this, std::move(programs[r]), r,
                                             static_cast<uint32_t>(programs.size()), lanes));
  }

  /// Things that may happen next; go(i) has the i-th happen.
  uint32_t numChoices() {
    uint32_t choices = 0;
    for (auto &rank : ranks)
      choices += rank->canStep() + rank->numCompletable();
    return choices;
  }
  void go(uint32_t choice) {
    for (auto &rank : ranks) {
      if (rank->canStep() && choice-- == 0)
        return rank->step();
      if (const uint32_t n = rank->numCompletable(); choice < n)
        return rank->complete(choice);
      else
        choice -= n;
    }
  }
  /// The daemons' threads. Whether anything has changed.
  bool tick() {
    bool has = false;
    for (auto &rank : ranks)
      has |= rank->advance();
    return has;
  }
  bool isOver() const {
    return std::ranges::all_of(ranks, [](const auto &rank) { return rank->isOver(); });
  }
  std::string wrong;
  Status failed;

private:
  struct Rank : LaneEngine {
    Rank(World &world, Program program, uint32_t rank, uint32_t numRanks, uint32_t lanes)
        : world(world), program(std::move(program)), rank(rank),
          table(*world.board, rank, numRanks, lanes, [] { return Status(); }), calls(table, *this) {
    }

    bool canStep() const {
      return at < program.size() && (!program[at].waits || numDone == numStarted);
    }
    void step() {
      const Step &step = program[at++];
      if (step.waits)
        return;
      auto call = std::make_unique<TestCall>();
      call->id = step.id;
      call->kernel = step.kernel;
      call->signature.count = step.count;
      call->place = numStarted++;
      auto done = calls.tryNow(*call);
      if (!done.ok())
        world.failed = done.status();
      else if (!*done)
        calls.enqueue(std::move(call));
    }
    bool advance() {
      const size_t before = calls.numWaiting();
      std::vector<std::unique_ptr<LaneCall>> executed;
      // Some are looked at, as if calls were started meanwhile, and then all.
      uint32_t looked = 0;
      Status status = calls.advance(executed, [&] { return looked++ == 1; });
      if (status.ok())
        status = calls.advance(executed, [] { return false; });
      if (!status.ok())
        world.failed = status;
      return calls.numWaiting() != before;
    }
    bool isOver() const { return at == program.size() && numDone == numStarted; }

    StatusOr<bool> prepare(LaneCall &call, LaneName) override {
      EXPECT_FALSE(calls.hasNumber(call));
      return true;
    }
    /// A ring: who comes takes the place of the one that came `window` before.
    StatusOr<std::optional<uint64_t>> execute(LaneCall &call, LaneName lane,
                                              uint64_t number) override {
      if (requests.size() >= world.window && !requests[requests.size() - world.window].isComplete)
        return std::optional<uint64_t>();
      const Occurrence what = {call.id, occurrences[call.id]++};
      const auto [met, isFirst] =
          world.meetings.try_emplace(Meeting{lane.kernel, lane.number, number}, what);
      if (!isFirst && met->second != what)
        world.wrong = "ranks meet in different calls";
      ++world.executed[what];
      // Another daemon executes it: what came before must be complete.
      if (auto last = lastOf.find(call.id); last != lastOf.end())
        if (requests[last->second].kernel != lane.kernel && !requests[last->second].isComplete)
          world.wrong = "calls of an id run beside each other";
      lastOf[call.id] = requests.size();
      requests.push_back({lane.kernel, what, false});
      return std::optional<uint64_t>(requests.size() - 1);
    }
    bool isComplete(uint32_t, uint64_t request) const override {
      return requests[request].isComplete;
    }

    bool isReady(const auto &request) const {
      return !request.isComplete && world.executed[request.what] == world.ranks.size();
    }
    uint32_t numCompletable() const {
      return static_cast<uint32_t>(
          std::ranges::count_if(requests, [&](const auto &r) { return isReady(r); }));
    }
    void complete(uint32_t which) {
      for (auto &request : requests)
        if (isReady(request) && which-- == 0) {
          request.isComplete = true;
          ++numDone;
          return;
        }
    }

    struct Request {
      uint32_t kernel;
      Occurrence what;
      bool isComplete;
    };
    World &world;
    const Program program;
    const uint32_t rank;
    LaneTable table;
    LaneCalls calls;
    size_t at = 0;
    uint32_t numStarted = 0, numDone = 0;
    std::vector<Request> requests;
    std::map<uint64_t, uint64_t> occurrences;
    std::map<uint64_t, size_t> lastOf;
  };

  LaneBoard *const board;
  const uint32_t window;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::map<Meeting, Occurrence> meetings;
  std::map<Occurrence, size_t> executed;
};

/// Runs it to its end. choose(n): one of n things. "" or what is wrong.
std::string run(World &world, const std::function<uint32_t(uint32_t)> &choose) {
  for (bool hasTicked = false;;) {
    if (!world.failed.ok())
      return world.failed.message();
    if (!world.wrong.empty())
      return world.wrong;
    if (world.isOver())
      return "";
    const uint32_t choices = world.numChoices();
    // The last one: the threads of the daemons come by; once is enough.
    const uint32_t choice = choices == 0 ? 0 : choose(choices + !hasTicked);
    hasTicked = choice == choices;
    if (!hasTicked) {
      world.go(choice);
      continue;
    }
    bool has = world.tick();
    for (uint32_t i = 0; i < 3 && !has; ++i)
      has = world.tick();
    if (choices == 0 && !has && world.failed.ok() && world.numChoices() == 0)
      return "deadlock";
  }
}

std::vector<Program> permuted(uint32_t ranks, const Program &program, std::mt19937 &random) {
  std::vector<Program> programs(ranks, program);
  for (Program &each : programs)
    std::ranges::shuffle(each, random);
  return programs;
}

/// All orders of steps, up to so many. What happened in the last one that went wrong.
std::string forAllOrders(const std::function<World()> &make, uint64_t atMost, uint64_t &orders) {
  std::vector<std::pair<uint32_t, uint32_t>> path; // choice, of how many
  for (orders = 0; orders < atMost; ++orders) {
    World world = make();
    size_t depth = 0;
    const std::string wrong = run(world, [&](uint32_t n) {
      if (depth == path.size())
        path.emplace_back(0, n);
      return path[depth++].first;
    });
    if (!wrong.empty())
      return wrong;
    while (!path.empty() && path.back().first + 1 >= path.back().second)
      path.pop_back();
    if (path.empty())
      return "";
    ++path.back().first;
  }
  return "";
}

uint32_t seedOf() {
  const char *given = std::getenv("OCCL_TEST_SEED");
  const uint32_t seed = given ? static_cast<uint32_t>(std::atoi(given)) : std::random_device()();
  std::printf("seed %u\n", seed);
  return seed;
}

TEST(LaneCalls, AllOrdersOfTwoIdsInOneLane) {
  uint64_t orders = 0;
  EXPECT_EQ(forAllOrders(
                [] {
                  return World({{{1}, {2}}, {{2}, {1}}}, 1, 256);
                },
                60'000, orders),
            "");
  EXPECT_GT(orders, 100u);
}

TEST(LaneCalls, AllOrdersOfOneIdTwiceAndAnother) {
  uint64_t orders = 0;
  EXPECT_EQ(forAllOrders(
                [] {
                  return World({{{1}, {1}, {2}}, {{2}, {1}, {1}}}, 1, 256);
                },
                60'000, orders),
            "");
}

TEST(LaneCalls, AllOrdersOfAnIdInTwoKernels) {
  uint64_t orders = 0;
  EXPECT_EQ(forAllOrders(
                [] {
                  return World({{{1, 0}, {1, 2}, {1, 0}}, {{1, 0}, {1, 2}, {1, 0}}}, 1, 256);
                },
                60'000, orders),
            "");
}

TEST(LaneCalls, RandomOrdersOfManyMoreIdsThanLanes) {
  std::mt19937 random(seedOf());
  for (uint32_t trial = 0; trial < 300; ++trial) {
    const uint32_t ranks = 2 + random() % 3, ids = 1 + random() % 12, lanes = 1 + random() % 3;
    Program program;
    for (uint32_t i = 0; i < 40; ++i) {
      const uint64_t id = random() % ids;
      program.push_back({id, static_cast<uint32_t>(id % 2 * 2), 1});
    }
    World world(permuted(ranks, program, random), lanes, 64);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

TEST(LaneCalls, WaitsForAsManyAsThereAreLanes) {
  std::mt19937 random(seedOf());
  for (uint32_t trial = 0; trial < 300; ++trial) {
    constexpr uint32_t kLanes = 3;
    std::vector<Program> programs(2 + random() % 3);
    for (uint32_t round = 0; round < 8; ++round) {
      Program group;
      for (uint32_t i = 0; i < kLanes; ++i)
        group.push_back({random() % 20});
      for (Program &program : programs) {
        std::ranges::shuffle(group, random);
        program.insert(program.end(), group.begin(), group.end());
        program.push_back({.waits = true});
      }
    }
    World world(std::move(programs), kLanes, 64);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

TEST(LaneCalls, MoreThatWaitForEachOtherThanThereAreLanesAreADeadlock) {
  World world({{{1}, {.waits = true}, {2}}, {{2}, {1}}}, 1, 64);
  // Rank 1 comes first, and its id 2 has the only lane.
  uint32_t step = 0;
  EXPECT_EQ(run(world, [&](uint32_t n) { return step++ == 0 ? n - 2 : 0; }), "deadlock");
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
  std::mt19937 random(seedOf());
  for (uint32_t trial = 0; trial < 100; ++trial) {
    World world({first, second}, 2, 4);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

TEST(LaneCalls, MoreInFlightThanTheWindowHas) {
  std::mt19937 random(seedOf());
  for (uint32_t trial = 0; trial < 100; ++trial) {
    Program program;
    for (uint32_t i = 0; i < 200; ++i)
      program.push_back({i % 8});
    World world(permuted(2, program, random), 8, 16);
    EXPECT_EQ(run(world, [&](uint32_t n) { return random() % n; }), "") << "trial " << trial;
  }
}

/// In each order of the two ranks' steps somebody says so.
void expectMismatch(const Program &first, const Program &second, const std::string &text) {
  std::mt19937 random(seedOf());
  for (uint32_t trial = 0; trial < 200; ++trial) {
    World world({first, second}, 2, 64);
    const std::string wrong = run(world, [&](uint32_t n) { return random() % n; });
    EXPECT_NE(wrong.find(text), std::string::npos) << wrong;
  }
}

TEST(LaneCalls, AnotherCountIsAMismatch) {
  expectMismatch({{7, 0, 100}}, {{7, 0, 101}}, "rank ");
  expectMismatch({{7, 0, 1}, {7, 0, 100}}, {{7, 0, 1}, {7, 0, 101}},
                 "has started one with count 10");
}

TEST(LaneCalls, AnotherKernelOfWhichNoLaneIsFreeIsAMismatch) {
  std::mt19937 random(seedOf());
  for (uint32_t trial = 0; trial < 100; ++trial) {
    // Id 3 has the only lane of kernel 2 and never ends.
    World world({{{3, 2, 1}, {7, 2, 100}}, {{7, 0, 101}}}, 1, 64);
    uint32_t step = 0;
    const std::string wrong =
        run(world, [&](uint32_t n) { return step++ == 0 ? 0 : random() % n; });
    EXPECT_NE(wrong.find("has started one with count 10"), std::string::npos) << wrong;
  }
}

TEST(LaneCalls, AnotherKernelIsAMismatch) {
  expectMismatch({{7, 0, 100}}, {{7, 2, 101}}, "has started one with count 10");
  expectMismatch({{7, 0, 1}, {7, 2, 2}, {7, 0, 100}, {7, 0, 3}},
                 {{7, 0, 1}, {7, 2, 2}, {7, 2, 101}, {7, 2, 3}}, "has started one with count");
}

TEST(LaneTable, AnIdComesBackToTheLaneThatItHad) {
  auto board = std::make_unique<LaneBoard>();
  LaneTable table(*board, 0, 1, 4, [] { return Status(); });
  std::vector<uint32_t> lanes;
  for (uint64_t id = 10; id < 13; ++id)
    lanes.push_back((**table.join(1, id)).number);
  for (uint32_t lane : lanes)
    ASSERT_TRUE(table.leave({1, lane}).ok());
  EXPECT_EQ((**table.join(1, 12)).number, lanes[2]);
  EXPECT_EQ((**table.join(1, 10)).number, lanes[0]);
  EXPECT_EQ(table.holders(1), "10, 12");
}

TEST(LaneTable, ARankThatDiesWithTheLockIsNamed) {
  auto board = std::make_unique<LaneBoard>();
  board->lock.store(3);
  LaneTable table(*board, 0, 4, 4,
                  [] { return Status(StatusCode::PeerFailed, "the process of rank 2 is gone"); });
  EXPECT_EQ(table.join(0, 1).status().message(), "the process of rank 2 is gone");
}

/// A rank by itself, whose calls are complete when the test says so.
struct AloneRank : LaneEngine {
  AloneRank(LaneBoard &board, uint32_t rank)
      : table(board, rank, 2, 2, [] { return Status(); }), calls(table, *this) {}

  StatusOr<bool> prepare(LaneCall &, LaneName) override { return true; }
  StatusOr<std::optional<uint64_t>> execute(LaneCall &, LaneName, uint64_t number) override {
    if (!hasRoom)
      return std::optional<uint64_t>();
    numbers.push_back(number);
    return std::optional<uint64_t>(numbers.size() - 1);
  }
  bool isComplete(uint32_t, uint64_t request) const override { return request < numComplete; }
  StatusOr<bool> start(uint32_t kernel, bool entersEarly = false) {
    auto call = std::make_unique<TestCall>();
    call->id = 7;
    call->kernel = kernel;
    call->entersEarly = entersEarly;
    auto done = calls.tryNow(*call);
    hasNumber = calls.hasNumber(*call);
    if (done.ok() && !*done && !entersEarly)
      calls.enqueue(std::move(call));
    return done;
  }
  Status advance() {
    std::vector<std::unique_ptr<LaneCall>> executed;
    return calls.advance(executed, [] { return false; });
  }

  LaneTable table;
  LaneCalls calls;
  bool hasRoom = true, hasNumber = false;
  size_t numComplete = 0;
  std::vector<uint64_t> numbers; // of what was executed
};

/// Where an id has lanes of two kernels, their comparison needs the lock. A call that finds it
/// taken has its number all the same, and one only.
TEST(LaneCalls, ACallHasOneNumberThoughTheLockIsTaken) {
  LaneBoard *board = emptyBoard(2);
  AloneRank first(*board, 0), second(*board, 1);
  AloneRank *const ranks[] = {&first, &second};
  for (uint32_t kernel : {0, 1, 0}) { // the last one is in flight
    for (AloneRank *rank : ranks)
      ASSERT_TRUE(rank->start(kernel).ok());
    for (AloneRank *rank : ranks)
      ASSERT_TRUE(rank->advance().ok());
    for (AloneRank *rank : ranks)
      rank->numComplete = kernel == 0 && rank->numbers.size() == 3 ? 2 : rank->numbers.size();
  }
  ASSERT_EQ(first.numbers, (std::vector<uint64_t>{0, 0, 1}));
  for (AloneRank *rank : ranks) {
    auto done = rank->start(1); // another kernel: waits for what is in flight
    ASSERT_TRUE(done.ok() && !*done);
    rank->numComplete = 3;
  }
  board->lock.store(2); // the other rank's, which does not run
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(first.advance().ok());
  board->lock.store(0);
  for (int i = 0; i < 3; ++i)
    for (AloneRank *rank : ranks)
      EXPECT_TRUE(rank->advance().ok());
  EXPECT_EQ(first.numbers, (std::vector<uint64_t>{0, 0, 1, 1}));
  EXPECT_EQ(second.numbers, first.numbers);
}

/// It can still be refused: nobody counts on it.
TEST(LaneCalls, WhatEntersEarlyHasNoNumberWithoutRoom) {
  AloneRank rank(*emptyBoard(2), 0);
  rank.hasRoom = false;
  auto done = rank.start(0, true);
  ASSERT_TRUE(done.ok());
  EXPECT_FALSE(*done);
  EXPECT_FALSE(rank.hasNumber);
  EXPECT_EQ(rank.table.next({0, 0}), 0u);
  rank.hasRoom = true;
  done = rank.start(0, true);
  EXPECT_TRUE(done.ok() && *done && rank.hasNumber);
  EXPECT_EQ(rank.numbers, (std::vector<uint64_t>{0}));
}

} // namespace
} // namespace occl::cuda
