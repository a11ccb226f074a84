// Marks are those of who asked for them, on a device of the host's own that executes nothing.
#include "runtime/cuda/resident/resident_daemon.h"

#include "runtime/cuda/resident/testing/test_tenant.h"
#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace occl::cuda::resident {

int loadClockProbe() { return cudaSuccess; }

/// Before it is asked, so that nobody waits.
int launchClockProbe(ClockProbe *probe, void *) {
  for (uint32_t round = 0; round < ClockProbe::kRounds; ++round)
    probe->answers[round] = uint64_t(round) + 1;
  return cudaSuccess;
}

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// Keeps the daemon's thread as long as it is told to.
struct Occupying : TestTenant {
  std::function<void()> comeBy() override {
    ++visits;
    while (keeps)
      std::this_thread::sleep_for(1ms);
    return {};
  }

  std::atomic<bool> keeps{false};
  std::atomic<uint32_t> visits{0};
};

class MarkingTest : public ::testing::Test {
protected:
  void SetUp() override {
    resetHostCuda();
    DaemonOptions options;
    options.kernel = &kernel;
    options.settings.numExecutors = 1;
    auto made = ResidentDaemon::make(options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    daemon = std::move(*made);
    ASSERT_TRUE(daemon->attach(tenant).ok());
    inCall("cudaMemsetAsync", [this] { ++clears; });
  }
  void TearDown() override {
    tenant.keeps = false;
    daemon->detach(tenant);
    daemon.reset();
    resetHostCuda();
  }

  const Kernel kernel = {[](const ExecutorArguments &, void *) { return 0; }, [] { return 0; }};
  Occupying tenant;
  std::unique_ptr<ResidentDaemon> daemon;
  std::atomic<uint32_t> clears{0}; // of rings
};

TEST_F(MarkingTest, TheFirstOneClearsTheRings) {
  ASSERT_TRUE(daemon->startMarks().ok());
  ASSERT_TRUE(daemon->startMarks().ok());
  EXPECT_EQ(clears, 1u) << "the marks of the first one are lost";
  EXPECT_TRUE(daemon->takeMarks(tenant).ok());
  EXPECT_TRUE(daemon->takeMarks(tenant).ok());
  EXPECT_EQ(daemon->takeMarks(tenant).status().code(), StatusCode::InvalidArgument);
  ASSERT_TRUE(daemon->startMarks().ok());
  EXPECT_EQ(clears, 2u);
}

/// Ten seconds, as the daemon's patience.
TEST_F(MarkingTest, MarksThatCameOnTooLateAreNotTheNextOnes) {
  tenant.keeps = true;
  const uint32_t before = tenant.visits;
  while (tenant.visits == before)
    std::this_thread::yield();
  EXPECT_EQ(daemon->startMarks().code(), StatusCode::Timeout);
  EXPECT_EQ(clears, 0u);
  tenant.keeps = false;
  while (clears == 0) // the daemon's thread turns them on all the same
    std::this_thread::yield();
  ASSERT_TRUE(daemon->startMarks().ok());
  EXPECT_EQ(clears, 2u) << "what nobody asked for is still in the rings";
  EXPECT_TRUE(daemon->takeMarks(tenant).ok());
}

} // namespace
} // namespace occl::cuda::resident
