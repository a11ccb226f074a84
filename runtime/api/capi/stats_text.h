// The counters of a rank's collectives as a table for people.
#pragma once

#include "runtime/api/occl_insight.h"

#include <string>
#include <vector>

namespace occl::communicator {

struct NamedStats {
  std::string name; // "'grad3' (id 3)"
  occlCollectiveStats_t collective{};
  occlBlockStats_t blocks{}; // of all thread blocks together
};

/// A line a collective that was submitted at all, with means over its invocations, under a headline
/// with the rank and the unit of each column.
std::string describeStats(uint32_t rank, uint32_t numRanks,
                          const std::vector<NamedStats> &collectives);

} // namespace occl::communicator
