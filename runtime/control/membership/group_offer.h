// What a rank brings along when some ranks of a communicator make a new one: memory that the others
// map, or where they come if they share none.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/bootstrap/subgroup.h"
#include "runtime/control/fabric.h"
#include "runtime/net/machine_group.h"
#include "runtime/sync/deadline.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::daemon {

class GroupOffer {
public:
  struct Sizes {
    uint64_t segmentBytes = 0; // the same on all members
    uint64_t heapBytes = 0;    // of these, the user's shared heap
  };

  /// Whoever gives up before form() destroys it, which the others see.
  static StatusOr<GroupOffer> make(const Fabric &from, const Sizes &sizes);
  bootstrap::OfferHandle handle() const;

  /// Rank i of the new group is members[i], with what its handle() was. `name`: the same on all
  /// members, and another one each time. `hasGivenUp`: of a rank of `from` that may be one, if that
  /// is known. Errors as of bootstrap::formSubgroup().
  StatusOr<std::unique_ptr<bootstrap::Group>>
  form(const Fabric &from, const std::vector<bootstrap::SubgroupMember> &members,
       const std::string &name, const Deadline &deadline,
       std::function<bool(uint32_t rank)> hasGivenUp = {}) &&;

private:
  Sizes sizes;
  std::unique_ptr<bootstrap::SubgroupOffer> memory;
  net::DivisionListener listener; // if there is no memory
};

} // namespace occl::daemon
