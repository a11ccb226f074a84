// Whole communicators of two ranks with one thread block each, under all schedules that are near to
// those without preemption. Environment: OCCL_EXPLORE_DELAYS, 1 unless given; `make explore` has 2.
#include "test/explore/communicators.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace occl::explore {
namespace {

Settings withOnePreemption() {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.preemptions = 1;
  settings.schedules = uint64_t{1} << 40;
  return settings;
}

Settings withDelays() {
  Settings settings = withOnePreemption();
  const char *given = std::getenv("OCCL_EXPLORE_DELAYS");
  settings.preemptions = given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 1;
  settings.boundsDelays = true;
  return settings;
}

void expectNoDefectInAny(const Settings &settings, const std::function<void()> &body) {
  Outcome outcome = explore(settings, body);
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
  std::printf("all schedules with %u %s: %llu, of %llu steps on average\n", settings.preemptions,
              settings.boundsDelays ? "delays" : "preemptions",
              static_cast<unsigned long long>(outcome.schedules),
              static_cast<unsigned long long>(outcome.steps / outcome.schedules));
}

/// Each rank submits all jobs, rank 1 the other way round, and waits.
void runInOppositeOrders(std::vector<Job> &jobs) {
  const auto number = static_cast<uint32_t>(jobs.size());
  occlConfig_t config = withWorkers(1);
  config.maxInFlight = 2; // little to set up
  Ranks ranks(kRanks, config);
  bindAll(ranks, jobs);
  exploreFromHere();
  runRanks([&](uint32_t r) {
    std::vector<occlRequest_t> requests(number);
    for (uint32_t i = 0; i < number; ++i)
      require(jobs[r == 0 ? i : number - 1 - i].submit(ranks[r], r, &requests[i]) == occlSuccess,
              "submit");
    for (occlRequest_t request : requests)
      require(occlWait(ranks[r], request) == occlSuccess, "wait");
    expectRight(jobs, r);
  });
}

class Exhaustive : public Daemon {};

TEST_F(Exhaustive, OneCollectiveFromSetUpToTearDown) {
  std::vector<Job> jobs = makeJobs(1, ring);
  expectNoDefectInAny(withOnePreemption(), [&] { runInOppositeOrders(jobs); });
  expectNoDefectInAny(withDelays(), [&] { runInOppositeOrders(jobs); });
}

TEST_F(Exhaustive, TwoCollectivesInOppositeOrders) {
  std::vector<Job> jobs = makeJobs(2, ring);
  Settings settings = withDelays();
  settings.fromMark = true;
  expectNoDefectInAny(settings, [&] { runInOppositeOrders(jobs); });
}

} // namespace
} // namespace occl::explore
