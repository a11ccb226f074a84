// Spin budgets are times, not counts; this measures the machine for them.
#pragma once

#include "runtime/scheduler/policy.h"

#include <cstdint>

namespace occl::scheduler {

/// How long a flag takes from one running thread to another and back. Measured at the first call
/// (under 2 ms), then remembered. Where threads have no two cores to run on, the result is its
/// upper bound of 2 us: polling longer would not help.
Nanoseconds flagRoundTrip();

/// Floor: two round trips. Cap: `requestedCap` if not zero, else twenty round trips; never below
/// the floor.
BudgetLimits budgetLimits(Nanoseconds roundTrip, Nanoseconds requestedCap);

} // namespace occl::scheduler
