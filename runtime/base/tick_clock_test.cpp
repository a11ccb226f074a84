#include "runtime/base/tick_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace occl {
namespace {

uint64_t steadyNow() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

TEST(TickClock, AgreesWithTheSteadyClock) {
  TickScale first;
  uint64_t steadyBegin = steadyNow();
  Ticks begin = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  Ticks end = ticks();
  uint64_t steadyEnd = steadyNow();
  TickScale scale;
  uint64_t passed = scale.nanoseconds(end - begin);
  // One thousandth, and what this thread may have been kept from between the two clocks' reads.
  EXPECT_LE(passed, (steadyEnd - steadyBegin) * 1001 / 1000);
  EXPECT_GE(passed, 50'000'000u * 999 / 1000);
  EXPECT_GE(scale.timeOf(end) + 100'000, steadyBegin + 50'000'000);
  EXPECT_LE(scale.timeOf(begin), steadyEnd);
}

TEST(TickClock, NeverGoesBack) {
  EXPECT_EQ(elapsed(7, 5), 0u);
  EXPECT_EQ(elapsed(5, 7), 2u);
}

} // namespace
} // namespace occl
