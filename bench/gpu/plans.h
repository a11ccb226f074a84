// The plans of the slice: all-reduces whose thread blocks share nothing, each with a channel of its
// own, so that a block's number is all that it needs to find its peers'.
#pragma once

#include "plan/plan.h"

#include <cstdint>

namespace occl::bench {

/// Every rank multicasts block b's part of its input; everybody sums everything in rank order.
plan::Plan oneShotAllReduce(uint32_t numRanks, uint32_t numBlocks);

/// The same after `copies` copies of the part to scratch: what so many steps cost that wait for
/// nobody.
plan::Plan oneShotAfterCopies(uint32_t numRanks, uint32_t numBlocks, uint32_t copies);

/// Every rank sends each other rank the part that that one sums, sums its own in rank order and
/// multicasts the result.
plan::Plan twoShotAllReduce(uint32_t numRanks, uint32_t numBlocks);

/// Partial sums go around the ring, then the results.
plan::Plan ringAllReduce(uint32_t numRanks, uint32_t numBlocks);

} // namespace occl::bench
