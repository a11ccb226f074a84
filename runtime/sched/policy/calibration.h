// Spin budgets are times, not counts; this measures the machine for them.
#pragma once

#include "runtime/sched/policy/policy.h"

#include <chrono>

namespace occl::scheduler {

using Nanoseconds = std::chrono::nanoseconds;

/// How long a flag takes from one running thread to another and back. Measured at the first call
/// (under 2 ms), then remembered. At most 500 ns: longer means that the threads had no two
/// processors to run on, and then polling does not help.
Nanoseconds flagRoundTrip();

/// Floor: two round trips. Cap: `requestedCap` if not zero, else twenty round trips but at most
/// 1 us: after that the processor is offered to others, which costs less than that if nobody wants
/// it, and lets the awaited peer run if it does. Never below the floor.
BudgetLimits budgetLimits(Nanoseconds roundTrip, Nanoseconds requestedCap);

} // namespace occl::scheduler
