// Groups of some of the ranks of a group, formed through the memory that these share already. The
// parent may go before the subgroup or after it.
#pragma once

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/mapping.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::bootstrap {

struct SubgroupMember {
  uint32_t parentRank = 0;
  uint64_t offer = 0; // SubgroupOffer::handle() there
};

/// The memory that a rank brings along: its segment in the subgroup. Exists until the subgroup is
/// formed; who gives up before destroys it, and the others get PeerFailed.
class SubgroupOffer {
public:
  /// segmentBytes is rounded up to whole pages.
  static StatusOr<std::unique_ptr<SubgroupOffer>> make(const Group &parent, uint64_t segmentBytes);
  ~SubgroupOffer();
  SubgroupOffer(const SubgroupOffer &) = delete;
  SubgroupOffer &operator=(const SubgroupOffer &) = delete;

  /// What the other members need to map it: a descriptor of this process, or a number in it.
  uint64_t handle() const { return number; }
  const std::shared_ptr<Mapping> &memory() const { return mapping; }

private:
  friend StatusOr<std::unique_ptr<Group>> formSubgroup(const Group &,
                                                       const std::vector<SubgroupMember> &,
                                                       SubgroupOffer &, const Deadline &);
  SubgroupOffer() = default;

  Descriptor file;
  std::shared_ptr<Mapping> mapping;
  uint64_t number = 0;
  bool isListed = false; // in this process
  bool isFormed = false; // the subgroup, whose memory it is now
};

/// Rank i of the new group is members[i]; `own` is what this rank has offered, of as many bytes as
/// all others. Returns when all members have mapped all segments. Timeout names the members that
/// have not; PeerFailed one that is gone or has given up; ranks are those of the parent in both.
StatusOr<std::unique_ptr<Group>> formSubgroup(const Group &parent,
                                              const std::vector<SubgroupMember> &members,
                                              SubgroupOffer &own, const Deadline &deadline);

} // namespace occl::bootstrap
