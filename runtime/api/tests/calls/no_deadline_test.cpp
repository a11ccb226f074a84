// Without a timeout nothing ends but by what ranks do: a late rank is waited for, longer than any
// bound there once was, and the wait is reported. All cases wait at the same time.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"

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

occlResult_t callWith(Job &job, occlComm_t comm, uint32_t rank, uint32_t timeoutMs) {
  occlCall_t call = job.call(rank);
  call.timeoutMs = timeoutMs;
  return occlCall(comm, &call, nullptr);
}

void aLateRankIsWaitedFor() {
  Ranks ranks(2);
  Job job(1, handleOf(plan::testing::twoShotAllReduce(2)), 10);
  ranks.run([&](uint32_t rank) {
    std::this_thread::sleep_for(rank * kLate);
    EXPECT_EQ(job.run(ranks[rank], rank), occlSuccess) << occlGetLastError();
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
    std::this_thread::sleep_for(rank * 2s);
    EXPECT_EQ(callWith(endless, ranks[rank], rank, OCCL_NO_TIMEOUT), occlSuccess)
        << occlGetLastError();
    if (rank == 0) {
      EXPECT_EQ(callWith(usual, ranks[rank], rank, 0), occlTimeout);
    }
  });
}

/// Who destroys the communicator waits for no longer than half a minute all the same.
void destroyIsBounded() {
  Ranks ranks(2);
  Job job(1, handleOf(plan::testing::twoShotAllReduce(2)), 10);
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
