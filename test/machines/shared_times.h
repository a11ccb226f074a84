#pragma once

#include "runtime/api/testing/harness.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <sys/mman.h>

namespace occl::communicator::testing {

/// When something happened in processes that were forked after this was made.
class SharedTimes {
public:
  static constexpr uint32_t kMostRanks = 8;

  SharedTimes()
      : times(static_cast<Times *>(mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_NE(times, MAP_FAILED);
  }
  ~SharedTimes() { munmap(times, sizeof(Times)); }
  SharedTimes(const SharedTimes &) = delete;
  SharedTimes &operator=(const SharedTimes &) = delete;
  /// What this rank notes is now.
  void note(uint32_t rank) { (*times)[rank] = Clock::now().time_since_epoch().count(); }
  std::chrono::duration<double> between(uint32_t first, uint32_t second) const {
    return Clock::duration((*times)[second] - (*times)[first]);
  }

private:
  using Clock = std::chrono::steady_clock;
  using Times = std::array<std::atomic<Clock::rep>, kMostRanks>;
  Times *const times;
};

/// From the end of a process until calls of all others have failed. It takes milliseconds; this is
/// what a busy machine may need, and far from any deadline.
inline constexpr auto kUntilNamed = std::chrono::seconds(2) * kSlowness;

} // namespace occl::communicator::testing
