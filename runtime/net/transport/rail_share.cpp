#include "runtime/net/transport/rail_share.h"

#include <algorithm>

namespace occl::net {

size_t RailShare::choose(std::span<const uint64_t> backlogs) const {
  const uint64_t shortest = *std::ranges::min_element(backlogs);
  size_t best = backlogs.size();
  if (shortest == kNoRoom)
    return best;
  for (size_t r = 0; r < backlogs.size(); ++r)
    if (backlogs[r] != kNoRoom && backlogs[r] <= shortest + kSlack &&
        (best == backlogs.size() || given[r] < given[best]))
      best = r;
  return best;
}

void RailShare::count(size_t rail, uint64_t bytes, size_t numRails) {
  given[rail] += bytes;
  const uint64_t least = given[rail] - std::min(given[rail], kMostToMakeUp);
  for (uint64_t &each : std::span(given).first(numRails))
    each = std::max(each, least);
}

} // namespace occl::net
