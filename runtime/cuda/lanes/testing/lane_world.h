// Ranks that share a board of lanes, in one thread, which takes their steps in any order. What
// executes calls is simple: a call is complete on a rank some time after all ranks have executed
// it.
#pragma once

#include "runtime/cuda/lanes/lane_calls.h"
#include "runtime/cuda/lanes/testing/lane_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace occl::cuda {

struct Step {
  uint64_t id = 0;
  uint32_t kernel = 0;
  uint64_t count = 1;
  bool waits = false;   // for all that was started before; nothing is started
  bool isEarly = false; // it is tried again until it enters
  uint64_t gate = 0;    // it begins when that id's first call is complete here
  bool isLarge = false;
};
using Program = std::vector<Step>;

struct TestCall : LaneCall {};

/// A call as ranks meet in it: lane and number.
using Meeting = std::tuple<uint32_t, uint32_t, uint64_t>;
/// What it is: the id, and the how many-th of it.
using Occurrence = std::pair<uint64_t, uint64_t>;

class World {
public:
  World(std::vector<Program> programs, LaneNumbers lanes, uint32_t window)
      : board(emptyBoard()), window(window) {
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
    Rank(World &world, Program program, uint32_t rank, uint32_t numRanks, LaneNumbers lanes)
        : world(world), program(std::move(program)), rank(rank),
          table(*world.board, rank, numRanks, lanes, good), calls(table, *this) {}

    bool canStep() const {
      return at < program.size() && (!program[at].waits || numDone == numStarted);
    }
    void step() {
      const Step &step = program[at];
      if (step.waits) {
        ++at;
        return;
      }
      auto call = std::make_unique<TestCall>();
      call->id = step.id;
      call->kernel = step.kernel;
      call->signature.count = step.count;
      call->signature.isLarge = step.isLarge;
      call->entersEarly = step.isEarly;
      if (step.gate != 0)
        gates[{step.id, occurrences[step.id]}] = step.gate;
      LaneCalls::Calls executed;
      auto done = calls.tryNow(*call, executed);
      if (!done.ok())
        world.failed = done.status();
      else if (step.isEarly && !*done)
        return; // it is tried again
      else if (!*done)
        calls.enqueue(std::move(call));
      ++at;
      ++numStarted;
    }
    bool advance() {
      const size_t before = calls.numWaiting();
      LaneCalls::Calls executed;
      if (Status status = calls.advance(executed); !status.ok())
        world.failed = status;
      return calls.numWaiting() != before;
    }
    bool isOver() const { return at == program.size() && numDone == numStarted; }

    StatusOr<bool> prepare(LaneCall &call, LaneName) override {
      EXPECT_FALSE(calls.isMade(call));
      return true;
    }
    void begin(uint32_t) override {}
    /// A ring: who comes takes the place of the one that came `window` before.
    StatusOr<std::optional<uint64_t>> execute(LaneCall &call, LaneName lane,
                                              uint64_t number) override {
      if (requests.size() >= world.window && !requests[requests.size() - world.window].isComplete)
        return std::optional<uint64_t>();
      const Occurrence what = {call.id, occurrences[call.id]++};
      uint64_t &next = numbers[{lane.kernel, lane.number}];
      if (number < next)
        world.wrong = "numbers of a lane go back";
      next = number + 1;
      const auto [met, isFirst] =
          world.meetings.try_emplace(Meeting{lane.kernel, lane.number, number}, what);
      if (!isFirst && met->second != what)
        world.wrong = "ranks meet in different calls";
      ++world.executed[what];
      // In another lane nobody orders it: what came before must be complete.
      if (auto last = lastOf.find(call.id); last != lastOf.end())
        if (requests[last->second].lane != lane && !requests[last->second].isComplete)
          world.wrong = "calls of an id run beside each other";
      lastOf[call.id] = requests.size();
      requests.push_back({lane, number, what, false});
      return std::optional<uint64_t>(requests.size() - 1);
    }
    bool isComplete(uint32_t, uint64_t request) const override {
      return requests[request].isComplete;
    }

    /// All ranks have it, and what is before it in its lane is complete here.
    bool isReady(const auto &request) const {
      return !request.isComplete && world.executed[request.what] == world.ranks.size() &&
             std::ranges::all_of(world.ranks,
                                 [&](const auto &each) { return each->isBegun(request.what); }) &&
             std::ranges::none_of(requests, [&](const auto &other) {
               return other.lane == request.lane && other.number < request.number &&
                      !other.isComplete;
             });
    }
    bool isBegun(const Occurrence &what) const {
      auto gate = gates.find(what);
      return gate == gates.end() || std::ranges::any_of(requests, [&](const auto &request) {
               return request.what == Occurrence{gate->second, 0} && request.isComplete;
             });
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
      LaneName lane;
      uint64_t number;
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
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> numbers; // by lane: of the next call at least
    std::map<uint64_t, size_t> lastOf;
    std::map<Occurrence, uint64_t> gates;
  };

  LaneBoard *const board;
  const uint32_t window;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::map<Meeting, Occurrence> meetings;
  std::map<Occurrence, size_t> executed;
};

/// Runs it to its end. choose(n): one of n things. "" or what is wrong.
inline std::string run(World &world, const std::function<uint32_t(uint32_t)> &choose) {
  uint64_t steps = 0;
  for (bool hasTicked = false;;) {
    if (++steps == 200'000)
      return "nothing ends";
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

inline std::vector<Program> permuted(uint32_t ranks, const Program &program, std::mt19937 &random) {
  std::vector<Program> programs(ranks, program);
  for (Program &each : programs)
    std::ranges::shuffle(each, random);
  return programs;
}

/// All orders of steps, up to so many. What happened in the last one that went wrong.
inline std::string forAllOrders(const std::function<World()> &make, uint64_t atMost,
                                uint64_t &orders) {
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

} // namespace occl::cuda
