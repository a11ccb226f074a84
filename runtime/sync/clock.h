// The clock that budgets, deadlines and sleeps are measured by; see atomic.h. When schedules are
// explored, time is what the scheduler says.
#pragma once

#ifdef OCCL_EXPLORE
#include "runtime/sync/explored.h"

namespace occl {

inline SteadyClock::time_point coarseNow() { return SteadyClock::now(); }

} // namespace occl

#else

#include <chrono>

#ifdef __linux__
#include <time.h>
#endif

namespace occl {

using SteadyClock = std::chrono::steady_clock;

/// Now or up to 10 milliseconds later, at a third of the price: for what is counted in milliseconds
/// and must not end too early.
inline SteadyClock::time_point coarseNow() {
#ifdef CLOCK_MONOTONIC_COARSE
  // The clock that steady_clock reads, as of the system's last tick.
  constexpr auto kLongestTick = std::chrono::milliseconds(10);
  timespec last{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &last) == 0)
    return SteadyClock::time_point(std::chrono::seconds(last.tv_sec) +
                                   std::chrono::nanoseconds(last.tv_nsec) + kLongestTick);
#endif
  return SteadyClock::now();
}

} // namespace occl

#endif
