// Correct plans written by hand, for the tests of whatever reads, verifies or executes plans. Each
// takes any number of ranks from 1 on. Source locations point into files that do not exist.
#pragma once

#include "plan/model/plan.h"

#include <cstdint>
#include <vector>

namespace occl::plan::testing {

/// One thread block a rank; chunk c starts at rank c and goes around twice. Needs depth 2 from two
/// ranks on.
Plan ringAllReduce(uint32_t numRanks);

/// Every rank multicasts its whole input and reduces everything itself, in rank order: one chunk,
/// one message a rank.
Plan oneShotAllReduce(uint32_t numRanks);

/// Rank r reduces chunk r of all ranks and multicasts it. Four thread blocks a rank (send parts,
/// reduce, send the result, receive results), tied by dependencies.
Plan twoShotAllReduce(uint32_t numRanks);

/// The root's buffer goes from rank to rank, in `chunks` chunks.
Plan chainBroadcast(uint32_t numRanks, uint32_t chunks = 4, uint32_t root = 0);

/// The same along `order`, all ranks, the root first.
Plan chainBroadcastAlong(const std::vector<uint32_t> &order, uint32_t chunks = 4);

/// The partial sums go from rank to rank and end at the root, in `chunks` chunks.
Plan chainReduce(uint32_t numRanks, uint32_t chunks = 4, uint32_t root = 0);

Plan ringAllGather(uint32_t numRanks);
Plan ringReduceScatter(uint32_t numRanks);

/// One message for each pair of ranks; one thread block a rank.
Plan allToAll(uint32_t numRanks);

/// The same, pair after pair: of two ranks the lower one sends first, the higher one when it has
/// received. Valid out of place only, from two ranks on.
Plan allToAllInTurn(uint32_t numRanks);

/// A collective of a user's own, "shift", with explicit requirements: rank r's output is rank r-1's
/// input, through scratch. Rank 0 has no output.
Plan shift(uint32_t numRanks, uint32_t chunks = 3);

} // namespace occl::plan::testing
