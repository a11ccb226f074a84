// Collectives that are registered and deregistered all the time, for ever, on each rank when it
// likes; and what there can be at most.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/testing/harness.h"
#include "runtime/communicator/testing/processes.h"
#include "runtime/communicator/testing/resident_memory.h"
#include "runtime/communicator/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;

/// How many a rank can have at once.
constexpr uint64_t kMost = 16384;

/// A small collective that is registered under many ids.
class Visitor {
public:
  Visitor(PlanHandle handle, uint32_t rank, uint64_t count = 4)
      : handle(std::move(handle)), input(count, static_cast<int32_t>(rank + 1)), output(count) {}

  std::string enter(occlComm_t comm, uint64_t id) const {
    occlPlan_t plan = handle.get();
    occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
    collective.id = id;
    collective.plans = &plan;
    collective.numPlans = 1;
    collective.count = input.size();
    collective.dataType = occlInt32;
    return occlRegister(comm, &collective) == occlSuccess ? "" : lastError("occlRegister");
  }
  occlResult_t submit(occlComm_t comm, uint64_t id, occlRequest_t *request) {
    return occlSubmit(comm, id, input.data(), output.data(), nullptr, nullptr, request);
  }
  /// Submits once there is room, waits, checks.
  std::string run(occlComm_t comm, uint64_t id) {
    output.assign(output.size(), 0);
    occlRequest_t request = 0;
    occlResult_t result = occlAgain;
    while ((result = submit(comm, id, &request)) == occlAgain)
      std::this_thread::yield();
    if (result != occlSuccess || occlWait(comm, request) != occlSuccess)
      return lastError("submission") + " of id " + std::to_string(id);
    int32_t sum = 0, numRanks = static_cast<int32_t>(sizeOf(comm));
    for (int32_t r = 1; r <= numRanks; ++r)
      sum += r;
    return std::ranges::all_of(output, [&](int32_t element) { return element == sum; })
               ? ""
               : "id " + std::to_string(id) + " has a wrong result";
  }
  static std::string leave(occlComm_t comm, uint64_t id) {
    return occlDeregister(comm, id) == occlSuccess ? "" : lastError("occlDeregister");
  }

private:
  static uint32_t sizeOf(occlComm_t comm) {
    uint32_t numRanks = 0;
    occlCommSize(comm, &numRanks);
    return numRanks;
  }

  PlanHandle handle;
  std::vector<int32_t> input, output;
};

PlanHandle planFor(uint32_t numRanks, bool inLines) {
  plan::Plan plan = oneShotAllReduce(numRanks);
  if (inLines)
    plan.protocol = plan::Protocol::LL128;
  return handleOf(std::move(plan));
}

/// The ids from first to end, which never come back, `kept` of them registered at a time.
std::string passThrough(occlComm_t comm, uint32_t rank, uint32_t numRanks, uint64_t end,
                        uint64_t kept, uint64_t first = 0) {
  Visitor messages(planFor(numRanks, false), rank), lines(planFor(numRanks, true), rank);
  std::string wrong;
  for (uint64_t id = first; id < end && wrong.empty(); ++id) {
    Visitor &visitor = id % 2 == 0 ? messages : lines;
    wrong = visitor.enter(comm, id);
    if (wrong.empty())
      wrong = visitor.run(comm, id);
    if (wrong.empty() && id >= kept)
      wrong = Visitor::leave(comm, id - kept);
  }
  return wrong;
}

/// `make soak` lets a million of them pass.
TEST(LifeCycle, AHundredThousandIdsComeAndGoAndNothingOfThemStays) {
  constexpr uint32_t kRanks = 2;
  const char *given = std::getenv("OCCL_LIFE_CYCLE_IDS");
  const uint64_t ids =
      given ? std::strtoull(given, nullptr, 10) : std::max(100000 / kSlowness, 20000u);
  Ranks ranks(kRanks);
  auto pass = [&](uint64_t first, uint64_t end) {
    // Each keeps some longer than the other does.
    ranks.run(
        [&](uint32_t r) {
          EXPECT_EQ(passThrough(ranks[r], r, kRanks, end, 1 + 50 * r, first), "");
        },
        std::chrono::hours(1));
  };
  pass(0, ids / 5); // more than there are cells
  uint64_t before = residentKilobytes();
  pass(ids / 5, ids);
  uint64_t after = residentKilobytes();
  std::printf("%llu ids, %llu KiB after a fifth of them and %llu KiB at the end\n",
              static_cast<unsigned long long>(ids), static_cast<unsigned long long>(before),
              static_cast<unsigned long long>(after));
  // 20 bytes an id and rank would be more.
  if (kSlowness == 1) {
    EXPECT_LT(after, before + 3000);
  }
}

TEST(LifeCycle, ManyIdsComeAndGoBetweenProcesses) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "come-and-go", [](occlComm_t comm, uint32_t rank) {
    return passThrough(comm, rank, kRanks, kMost + 1000, 3 * rank);
  });
}

/// A few ids again and again; each rank deregisters when it likes, so that some have given a cell
/// back, or are about to, when others submit again.
std::string comeAndGo(occlComm_t comm, uint32_t rank, uint32_t numRanks, uint32_t rounds) {
  constexpr uint64_t kIds = 5, kSeed = 7;
  Visitor messages(planFor(numRanks, false), rank), lines(planFor(numRanks, true), rank);
  std::mt19937 random(kSeed + rank);
  std::vector<bool> isRegistered(kIds, false);
  std::string wrong;
  for (uint32_t round = 0; round < rounds && wrong.empty(); ++round) {
    uint64_t id = round % kIds;
    Visitor &visitor = id % 2 == 0 ? messages : lines;
    if (!isRegistered[id])
      wrong = visitor.enter(comm, id);
    isRegistered[id] = true;
    if (wrong.empty())
      wrong = visitor.run(comm, id);
    for (uint64_t other = 0; other < kIds && wrong.empty(); ++other)
      if (isRegistered[other] && random() % 4 == 0) {
        wrong = Visitor::leave(comm, other);
        isRegistered[other] = false;
      }
  }
  return wrong;
}

TEST(LifeCycle, RanksDeregisterAtDifferentTimesAndComeBack) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) { EXPECT_EQ(comeAndGo(ranks[r], r, kRanks, 20000 / kSlowness), ""); });
}

TEST(LifeCycle, ProcessesDeregisterAtDifferentTimesAndComeBack) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "come-back",
              [](occlComm_t comm, uint32_t rank) { return comeAndGo(comm, rank, kRanks, 5000); });
}

TEST(LifeCycle, AsManyAsThereCanBeAreRegisteredAndNoMore) {
  Ranks ranks(1);
  Visitor visitor(planFor(1, false), 0);
  for (uint64_t id = 0; id < kMost; ++id)
    ASSERT_EQ(visitor.enter(ranks[0], id), "");
  std::string text = visitor.enter(ranks[0], kMost);
  EXPECT_NE(text.find("(id 16384): 16384 are registered, which is the most"), std::string::npos)
      << text;
  EXPECT_EQ(visitor.run(ranks[0], kMost - 1), "");
  EXPECT_EQ(Visitor::leave(ranks[0], 5), "");
  EXPECT_EQ(visitor.enter(ranks[0], kMost), "");
  EXPECT_EQ(visitor.run(ranks[0], kMost), "");
  EXPECT_NE(visitor.enter(ranks[0], kMost + 1), "");
}

/// 64 KiB of slots each, which later ones use again. What stays of a collective is what it has
/// registered: its bound plan, its counters, a cell.
TEST(LifeCycle, MemoryDoesNotGrowWithWhatHasBeenUsedOnce) {
  constexpr uint32_t kRanks = 2, kFirst = 500, kCollectives = 2500;
  constexpr int64_t kMostEach = 6; // KiB of a rank; 3 here
  Ranks ranks(kRanks);
  std::vector<Visitor> visitors;
  for (uint32_t r = 0; r < kRanks; ++r)
    visitors.emplace_back(planFor(kRanks, false), r, 16384);
  auto use = [&](uint64_t from, uint64_t to) {
    ranks.run([&](uint32_t r) {
      for (uint64_t id = from; id < to; ++id) {
        ASSERT_EQ(visitors[r].enter(ranks[r], id), "");
        ASSERT_EQ(visitors[r].run(ranks[r], id), "");
      }
    });
  };
  use(0, kFirst); // what is used at the same time, and the allocator's first pages
  const auto before = static_cast<int64_t>(residentKilobytes());
  use(kFirst, kCollectives);
  const int64_t grown = static_cast<int64_t>(residentKilobytes()) - before;
  const int64_t each = grown / (kRanks * (kCollectives - kFirst));
  std::printf("%lld KiB, %lld a collective of a rank\n", static_cast<long long>(grown),
              static_cast<long long>(each));
  EXPECT_LE(each, kMostEach) << "its slots are 64 KiB";
}

/// Rank 0 deregisters all; their cells are not free before rank 1 has done so too.
TEST(LifeCycle, WithoutAFreeCellASubmissionIsToldWhoHoldsThem) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  std::atomic<bool> hasTried{false};
  ranks.run([&](uint32_t r) {
    Visitor visitor(planFor(kRanks, false), r);
    for (uint64_t id = 0; id < kMost; ++id) {
      ASSERT_EQ(visitor.enter(ranks[r], id), "");
      ASSERT_EQ(visitor.run(ranks[r], id), "");
    }
    if (r == 1) {
      while (!hasTried)
        std::this_thread::yield();
    }
    for (uint64_t id = 0; id < kMost; ++id)
      ASSERT_EQ(Visitor::leave(ranks[r], id), "");
    ASSERT_EQ(visitor.enter(ranks[r], kMost), "");
    if (r == 0) {
      occlRequest_t request = 0;
      EXPECT_EQ(visitor.submit(ranks[r], kMost, &request), occlAgain);
      std::string text = occlGetLastError();
      EXPECT_NE(text.find("an announce cell for collective"), std::string::npos) << text;
      EXPECT_NE(text.find("id 0 (rank 1 may still use it)"), std::string::npos) << text;
      EXPECT_NE(text.find("Deregister them on all ranks"), std::string::npos) << text;
      hasTried = true;
    }
    EXPECT_EQ(visitor.run(ranks[r], kMost), "");
  });
}

} // namespace
} // namespace occl::communicator::testing
