// Ids that come and go for ever, and are forgotten by each rank when it has called enough others;
// and what there can be at most.
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/resident_memory.h"
#include "runtime/api/testing/steps.h"

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

/// A small collective that is started under many ids.
class Visitor {
public:
  Visitor(PlanHandle handle, uint32_t rank, uint64_t count = 4)
      : handle(std::move(handle)), input(count, static_cast<int32_t>(rank + 1)), output(count) {}

  occlResult_t submit(occlComm_t comm, uint64_t id, occlRequest_t *request) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.plan = handle.get();
    call.sendBuffer = input.data();
    call.recvBuffer = output.data();
    call.count = input.size();
    call.dataType = occlInt32;
    call.id = id;
    return occlStart(comm, &call, nullptr, nullptr, request);
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

/// From now on the rank forgets ids that are not in flight once it has called so many others.
void keepOnly(occlComm_t comm, size_t ids) { comm->daemon->setMostActiveSequences(ids); }

/// The ids from first to end, which never come back.
std::string passThrough(occlComm_t comm, uint32_t rank, uint32_t numRanks, uint64_t end,
                        uint64_t first = 0) {
  Visitor messages(planFor(numRanks, false), rank), lines(planFor(numRanks, true), rank);
  std::string wrong;
  for (uint64_t id = first; id < end && wrong.empty(); ++id)
    wrong = (id % 2 == 0 ? messages : lines).run(comm, id);
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
    ranks.run([&](uint32_t r) { EXPECT_EQ(passThrough(ranks[r], r, kRanks, end, first), ""); },
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
    if (rank != 0) // which does as it does by default
      keepOnly(comm, 3 * rank);
    return passThrough(comm, rank, kRanks, kMost + 1000);
  });
}

/// A few ids again and again; each rank keeps now more, now fewer, so that some have given a cell
/// back, or are about to, when others start again.
std::string comeAndGo(occlComm_t comm, uint32_t rank, uint32_t numRanks, uint32_t rounds) {
  constexpr uint64_t kIds = 5, kSeed = 7;
  Visitor messages(planFor(numRanks, false), rank), lines(planFor(numRanks, true), rank);
  std::mt19937 random(kSeed + rank), common(kSeed);
  std::string wrong;
  for (uint32_t round = 0; round < rounds && wrong.empty(); ++round) {
    keepOnly(comm, 1 + random() % kIds);
    const uint64_t id = common() % kIds;
    wrong = (id % 2 == 0 ? messages : lines).run(comm, id);
  }
  return wrong.empty() ? "" : wrong + ", seed " + std::to_string(kSeed);
}

TEST(LifeCycle, RanksForgetAtDifferentTimesAndComeBack) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) { EXPECT_EQ(comeAndGo(ranks[r], r, kRanks, 20000 / kSlowness), ""); });
}

TEST(LifeCycle, ProcessesForgetAtDifferentTimesAndComeBack) {
  constexpr uint32_t kRanks = 3;
  inProcesses(kRanks, "come-back",
              [](occlComm_t comm, uint32_t rank) { return comeAndGo(comm, rank, kRanks, 5000); });
}

/// By default a rank keeps as many as it says, whatever comes and goes: those called last, and
/// what is in flight.
TEST(LifeCycle, IdsCalledLastAreKept) {
  constexpr uint32_t kRanks = 2, kKept = 10, kIds = 30;
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    keepOnly(ranks[r], kKept);
    Visitor visitor(planFor(kRanks, false), r);
    for (uint64_t id = 0; id < kIds; ++id) {
      ASSERT_EQ(visitor.run(ranks[r], id), "");
      ASSERT_EQ(visitor.run(ranks[r], 1000), ""); // so it stays
    }
  });
  ranks.run([&](uint32_t r) {
    // What is kept by no rank goes when they look: each new id goes on with some.
    Visitor visitor(planFor(kRanks, false), r);
    for (uint64_t id = 0; id < 3; ++id)
      ASSERT_EQ(visitor.run(ranks[r], kIds + id), "");
    occlCollectiveStats_t stats{};
    stats.size = sizeof stats;
    ASSERT_EQ(occlCollectiveGetStats(ranks[r], 1000, &stats), occlSuccess) << occlGetLastError();
    EXPECT_EQ(stats.completed, kIds);
    EXPECT_EQ(occlCollectiveGetStats(ranks[r], 0, &stats), occlInvalidArgument);
    EXPECT_STREQ(occlGetLastError(), "no collective with id 0 has been started, or none for long");
    size_t known = 0;
    ASSERT_EQ(occlCommGetCollectives(ranks[r], nullptr, 0, &known), occlSuccess);
    EXPECT_GE(known, kKept);
    EXPECT_LE(known, 2 * kKept);
  });
}

/// An id in lines that both ranks retire and only rank 1 gives back, by looking again: rank 0,
/// which has counted to as many as there are records, is not held up by what all have finished.
TEST(LifeCycle, CallsThatAllHaveFinishedHoldNobodyUp) {
  constexpr uint32_t kRanks = 2, kRecords = 8;
  Ranks ranks(kRanks);
  PlanHandle plan = planFor(kRanks, true);
  ranks.run([&](uint32_t r) {
    keepOnly(ranks[r], 1);
    Visitor visitor(plan, r);
    for (uint32_t i = 0; i < kRecords; ++i)
      ASSERT_EQ(visitor.run(ranks[r], 7), "");
    for (uint64_t id = 100; id < 104; ++id) // 7 retires, and is at rest everywhere
      ASSERT_EQ(visitor.run(ranks[r], id), "");
  });
  Visitor zero(plan, 0), one(plan, 1);
  occlRequest_t requests[2];
  ASSERT_EQ(zero.submit(ranks[0], 7, &requests[0]), occlSuccess) << occlGetLastError();
  ASSERT_EQ(one.submit(ranks[1], 7, &requests[1]), occlSuccess) << occlGetLastError();
  EXPECT_EQ(occlWait(ranks[0], requests[0]), occlSuccess);
  EXPECT_EQ(occlWait(ranks[1], requests[1]), occlSuccess);
}

/// The root of broadcasts, each under an id of its own, whose reader has left: all cells stay, and
/// the one that finds none learns why.
TEST(LifeCycle, CellsOfTheGoneAreNotWaitedFor) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  ranks.destroy(1);
  plan::Plan plan = chainBroadcast(kRanks, 1);
  plan.protocol = plan::Protocol::LL128;
  Job job(0, handleOf(plan), 2);
  occlResult_t result = occlSuccess;
  uint64_t id = 0;
  for (; id < 2 * kMost && result == occlSuccess; ++id) {
    occlCall_t call = job.call(0);
    call.id = id;
    occlRequest_t request = 0;
    result = occlStart(ranks[0], &call, nullptr, nullptr, &request);
    if (result == occlSuccess)
      result = occlWait(ranks[0], request);
  }
  EXPECT_EQ(result, occlPeerFailed) << id << ": " << occlGetLastError();
  EXPECT_NE(std::string(occlCommGetLastError(ranks[0])).find("rank 1 has destroyed"),
            std::string::npos)
      << occlCommGetLastError(ranks[0]);
}

/// 64 KiB of slots each, which later ones use again. What stays of a collective is its counters and
/// a cell.
TEST(LifeCycle, MemoryDoesNotGrowWithWhatHasBeenUsedOnce) {
  constexpr uint32_t kRanks = 2, kFirst = 500, kCollectives = 2500;
  constexpr int64_t kMostEach = 6; // KiB of a rank
  Ranks ranks(kRanks);
  std::vector<Visitor> visitors;
  for (uint32_t r = 0; r < kRanks; ++r)
    visitors.emplace_back(planFor(kRanks, false), r, 16384);
  auto use = [&](uint64_t from, uint64_t to) {
    ranks.run([&](uint32_t r) {
      for (uint64_t id = from; id < to; ++id)
        ASSERT_EQ(visitors[r].run(ranks[r], id), "");
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

/// Rank 0 would give back all; their cells are not free before rank 1 would do so, too.
TEST(LifeCycle, WithoutAFreeCellACallIsToldWhoHoldsThem) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  std::atomic<bool> hasTried{false};
  ranks.run([&](uint32_t r) {
    keepOnly(ranks[r], 2 * kMost);
    Visitor visitor(planFor(kRanks, false), r);
    for (uint64_t id = 0; id < kMost; ++id)
      ASSERT_EQ(visitor.run(ranks[r], id), "");
    if (r == 1) {
      while (!hasTried)
        std::this_thread::yield();
    } else {
      occlRequest_t request = 0;
      EXPECT_EQ(visitor.submit(ranks[r], kMost, &request), occlAgain);
      std::string text = occlGetLastError();
      EXPECT_NE(text.find("an announce cell for id 16384"), std::string::npos) << text;
      EXPECT_NE(text.find("(rank 1 may still use it)"), std::string::npos) << text;
      hasTried = true;
    }
    EXPECT_EQ(visitor.run(ranks[r], kMost), "");
  });
}

} // namespace
} // namespace occl::communicator::testing
