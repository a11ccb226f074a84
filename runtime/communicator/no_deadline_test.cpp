// Without a timeout nothing ends but by what ranks do: a late rank is waited for, longer than any
// bound there once was, and the wait is reported. All cases wait at the same time.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/testing/harness.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLate = 31s;

size_t countIn(const std::string &text, const std::string &part) {
  size_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++number;
  return number;
}

occlResult_t registerWith(Job &job, occlComm_t comm, const PlanHandle &plan, uint32_t timeoutMs) {
  occlPlan_t handle = plan.get();
  occlCollective_t given = OCCL_COLLECTIVE_INITIALIZER;
  given.id = job.id();
  given.plans = &handle;
  given.numPlans = 1;
  given.count = 10;
  given.timeoutMs = timeoutMs;
  return occlRegister(comm, &given);
}

void aLateRankIsWaitedFor() {
  Ranks ranks(2);
  Job job(1, handleOf(plan::testing::twoShotAllReduce(2)), 10);
  ranks.run([&](uint32_t rank) {
    ASSERT_EQ(job.registerOn(ranks[rank]), occlSuccess);
    std::this_thread::sleep_for(rank * kLate);
    EXPECT_EQ(occlRun(ranks[rank], 1, job.input(rank), job.output(rank)), occlSuccess)
        << occlGetLastError();
    EXPECT_EQ(job.check(rank), "");
  });
}

/// Of a communicator that has a timeout, a collective that has none.
void aCollectiveWithoutOneIsWaitedFor() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = 300;
  Ranks ranks(2, config);
  PlanHandle plan = handleOf(plan::testing::twoShotAllReduce(2));
  Job endless(1, plan, 10), usual(2, plan, 10);
  ranks.run([&](uint32_t rank) {
    ASSERT_EQ(registerWith(endless, ranks[rank], plan, OCCL_NO_TIMEOUT), occlSuccess);
    ASSERT_EQ(registerWith(usual, ranks[rank], plan, 0), occlSuccess);
    std::this_thread::sleep_for(rank * 2s);
    EXPECT_EQ(occlRun(ranks[rank], 1, endless.input(rank), endless.output(rank)), occlSuccess)
        << occlGetLastError();
    if (rank == 0) {
      EXPECT_EQ(occlRun(ranks[rank], 2, usual.input(rank), usual.output(rank)), occlTimeout);
    }
  });
}

/// Who destroys the communicator waits for no longer than half a minute all the same.
void destroyIsBounded() {
  Ranks ranks(2);
  Job job(1, handleOf(plan::testing::twoShotAllReduce(2)), 10);
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_EQ(job.registerOn(ranks[r]), occlSuccess);
  occlRequest_t request = 0;
  ASSERT_EQ(job.submit(ranks[0], 0, &request), occlSuccess);
  const auto begin = Clock::now();
  ranks.destroy(0);
  EXPECT_GE(Clock::now() - begin, 29s);
  EXPECT_EQ(job.submit(ranks[1], 1, &request), occlAborted);
  EXPECT_NE(std::string(occlGetLastError()).find("rank 0 has destroyed its communicator"),
            std::string::npos)
      << occlGetLastError();
}

TEST(NoDeadline, OnlyRanksEndWhatIsInFlight) {
  setenv("OCCL_LONG_WAIT_MS", "500", 1); // before anybody has asked
  ::testing::internal::CaptureStderr();
  std::vector<std::thread> cases;
  for (void (*one)() : {aLateRankIsWaitedFor, aCollectiveWithoutOneIsWaitedFor, destroyIsBounded})
    cases.emplace_back(one);
  for (std::thread &one : cases)
    one.join();
  const std::string said = ::testing::internal::GetCapturedStderr();
  // Each once, whom it waits for included.
  EXPECT_EQ(countIn(said, "has been in flight on rank 0 for 500 ms and goes on"), 3u) << said;
  EXPECT_GE(countIn(said, "rank 1"), 3u) << said;
  EXPECT_EQ(countIn(said, "in flight on rank 1"), 0u) << said;
}

} // namespace
} // namespace occl::communicator::testing
