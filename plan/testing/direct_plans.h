// Correct plans with direct access, written by hand: see example_plans.h.
#pragma once

#include "plan/model/plan.h"

namespace occl::plan::testing {

/// Rank r reduces chunk r of all ranks where it lies and stores it in all outputs: one
/// loadReduceStore, one signal, one wait a rank.
Plan directAllReduce(uint32_t numRanks);

/// Every rank copies its input to scratch and says so; then each takes all scratches and says that
/// it is done. Waits for the first and the second signal of a counter.
Plan directAllGather(uint32_t numRanks);

/// Every rank adds all inputs where they lie and stores the sum in its own output, when the ranks
/// below it have done so. Valid out of place only, from two ranks on.
Plan directInTurn(uint32_t numRanks);

} // namespace occl::plan::testing
