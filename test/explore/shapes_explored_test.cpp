// Calls of one sequence that have several shapes in turn, under made-up schedules: small ones share
// the sequence's ring of blocks, a larger one takes a block each time.
#include "runtime/api/capi/handles.h"
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace occl::explore {
namespace {

class Shapes : public Daemon {
protected:
  Shapes() {
    jobs = makeJobs(1, plansOfOneBlock()[1]);
    // Larger than a block of the ring, in an arena as small as this.
    jobs.emplace_back(1, plansOfOneBlock()[1], 120, DataType::Int32);
    plan::Plan broadcast = plan::testing::chainBroadcast(kRanks, 1);
    broadcast.protocol = plan::Protocol::LL128;
    jobs.emplace_back(2, handleOf(std::move(broadcast)), 4, DataType::Int32);
    plan::Plan other = plan::testing::chainBroadcast(kRanks, 1, 1);
    other.protocol = plan::Protocol::LL128;
    jobs.emplace_back(3, handleOf(std::move(other)), 4, DataType::Int32);
  }

  void callWell(occlComm_t comm, uint32_t rank, uint32_t job) {
    jobs[job].clear(rank);
    occlCall_t call = jobs[job].call(rank);
    require(occlCall(comm, &call, nullptr) == occlSuccess, "call");
    require(jobs[job].check(rank).empty(), "wrong result");
  }
  /// The calls of each rank, one after the other, once the shapes are known.
  void exploreCalls(uint64_t schedules, const std::vector<uint32_t> &calls) {
    Settings random;
    random.schedules = schedules;
    for (const Settings &settings : {random, allWithOneDelay()}) {
      Outcome outcome = explore(settings, [&] {
        Ranks ranks(kRanks, withWorkers(1));
        runRanks([&](uint32_t r) {
          for (uint32_t job : {0, 0, 1})
            callWell(ranks[r], r, job);
        });
        exploreFromHere();
        runRanks([&](uint32_t r) {
          for (uint32_t job : calls)
            callWell(ranks[r], r, job);
        });
      });
      EXPECT_EQ(outcome.defect, "");
    }
  }

  std::vector<Job> jobs;
};

TEST_F(Shapes, TwoInTurn) { exploreCalls(200, {0, 1, 0, 1, 1, 0, 0}); }

/// The root of a broadcast goes on while its reader reads.
TEST_F(Shapes, WithOtherReaders) { exploreCalls(100, {2, 0, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 0}); }

/// Two ranks that do not wait for each other disagree: one of them sees it, and the next call says
/// so on both, however they are interleaved. In the lane, or on the usual way, which has only the
/// fence of the comparison.
TEST_F(Shapes, ARankThatDisagreesIsFound) {
  Settings random;
  random.schedules = 200;
  for (uint32_t before : {0u, 2u})
    for (const Settings &settings : {random, allWithOneDelay()}) {
      Outcome outcome = explore(settings, [&] {
        Ranks ranks(kRanks, withWorkers(1));
        runRanks([&](uint32_t r) { callWell(ranks[r], r, before); });
        exploreFromHere();
        runRanks([&](uint32_t r) {
          occlCall_t call = jobs[2 + r].call(r);
          occlCall(ranks[r], &call, nullptr);
        });
        for (uint32_t r = 0; r < kRanks; ++r)
          require(ranks[r]->daemon->failure().code() == StatusCode::Mismatch, "nobody has seen it");
      });
      EXPECT_EQ(outcome.defect, "");
    }
}

} // namespace
} // namespace occl::explore
