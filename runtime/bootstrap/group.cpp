#include "runtime/bootstrap/bootstrap.h"

#include <algorithm>

namespace occl::bootstrap {

StatusOr<uint32_t> Group::placeIn(const std::vector<uint32_t> &newMembers) const {
  auto found = std::find(newMembers.begin(), newMembers.end(), ownRank);
  if (found == newMembers.end())
    return Status(StatusCode::InvalidArgument,
                  "rank " + std::to_string(ownRank) + " is not a member of the new group");
  return static_cast<uint32_t>(found - newMembers.begin());
}

} // namespace occl::bootstrap
