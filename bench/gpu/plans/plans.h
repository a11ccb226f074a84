// A plan that no source gives, since the compiler would drop what it is there for: steps that wait
// for nobody. Its thread blocks share nothing, each has a channel of its own.
#pragma once

#include "plan/model/plan.h"

#include <cstdint>

namespace occl::bench {

/// An all-reduce: every rank copies block b's part of its input to scratch `copies` times, then
/// multicasts it, and everybody sums everything in rank order.
plan::Plan oneShotAfterCopies(uint32_t numRanks, uint32_t numBlocks, uint32_t copies);

} // namespace occl::bench
