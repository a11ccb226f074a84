// What a rank's watch says of its kernels to the others of the process.
#include "runtime/cuda/watch/host_watch.h"

#include "runtime/control/testing/thread_fabrics.h"
#include "runtime/cuda/testing/host_cuda.h"
#include "runtime/cuda/watch/waiting.h"
#include "runtime/sync/atomic.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace occl::cuda {
namespace {

using namespace std::chrono_literals;
using namespace testing;

constexpr int kDevice = 0;

/// Whether it comes to that, in time enough; `meanwhile` is done now and then.
bool comesTo(
    const std::function<bool()> &isSo, const std::function<void()> &meanwhile = [] {}) {
  for (const auto end = SteadyClock::now() + 20s; !isSo(); std::this_thread::sleep_for(1ms)) {
    if (SteadyClock::now() > end)
      return false;
    meanwhile();
  }
  return true;
}

class HostWatchTest : public ::testing::Test {
protected:
  void SetUp() override {
    resetHostCuda();
    auto made = daemon::testing::makeThreadFabrics(2, 1 << 16);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ranks = std::move(*made);
    auto started =
        HostWatch::start(*ranks.fabrics[0], kDevice,
                         {[](const GivingUp &) { return ""; }, [](uint32_t) { return ""; },
                          [](uint32_t) { return ""; }, [] {}});
    ASSERT_TRUE(started.ok()) << started.status().message();
    watch = std::move(*started);
  }
  void TearDown() override {
    watch.reset();
    resetHostCuda();
  }
  /// As a kernel does that waits for rank 1.
  void sayThatItWaits() {
    HostWords &words = *watch->bound(kPlace, 0).host;
    storeShared(&words.waiting[kPlace], now += 1'000'000, std::memory_order_relaxed);
    storeShared(&words.waitsFor, 2, std::memory_order_relaxed);
  }

  static constexpr uint32_t kPlace = 3;
  daemon::testing::ThreadFabrics ranks;
  std::unique_ptr<HostWatch> watch;
  uint64_t now = 1'000'000'000;
};

TEST_F(HostWatchTest, AFailedCallCountsAsWaitingNoMore) {
  const auto isWaiting = [] { return waitingOnDevices().waitingNow(kDevice) == 1; };
  ASSERT_TRUE(comesTo(isWaiting, [&] { sayThatItWaits(); }));
  ranks.fabrics[1]->fail({StatusCode::Aborted, "somebody aborts it"});
  // Kernels have said nothing since, or go on for a moment.
  EXPECT_TRUE(comesTo([] { return waitingOnDevices().waitingNow(kDevice) == 0; }));
  EXPECT_NE(loadShared(&watch->bound(kPlace, 0).host->abort, std::memory_order_acquire), 0u);
}

} // namespace
} // namespace occl::cuda
