// Checks the names and the sizes of groups.
#include "runtime/control/bootstrap/name.h"

#include "runtime/control/bootstrap/bootstrap.h"

#include <algorithm>

namespace occl::bootstrap {

static bool isAllowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

Status checkName(std::string_view name) {
  if (!name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), isAllowed))
    return {};
  return {StatusCode::InvalidArgument, "the name of a group of ranks is '" +
                                           std::string(name.substr(0, 80)) +
                                           "', expected 1 to 64 of [A-Za-z0-9_-]"};
}

Status checkGroup(uint32_t numRanks, uint32_t rank) {
  if (numRanks == 0 || numRanks > kMaxRanks)
    return {StatusCode::InvalidArgument, "a group of " + std::to_string(numRanks) +
                                             " ranks, expected 1 to " + std::to_string(kMaxRanks)};
  if (rank >= numRanks)
    return {StatusCode::InvalidArgument, "rank " + std::to_string(rank) + " of a group of " +
                                             std::to_string(numRanks) + ", expected 0 to " +
                                             std::to_string(numRanks - 1)};
  return {};
}

} // namespace occl::bootstrap
