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

/// Of each collective that was submitted at all its name, means over its invocations, and waits,
/// under a head with the rank and the unit of each column. Lines have at most 80 columns, but for
/// words that are longer.
std::string describeStats(uint32_t rank, uint32_t numRanks,
                          const std::vector<NamedStats> &collectives);

} // namespace occl::communicator
