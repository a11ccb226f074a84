// The clock that budgets, deadlines and sleeps are measured by; see atomic.h. When schedules are
// explored, time is what the scheduler says.
#pragma once

#ifdef OCCL_EXPLORE
#include "runtime/base/explored.h"
#else

#include <chrono>

namespace occl {

using SteadyClock = std::chrono::steady_clock;

} // namespace occl

#endif
