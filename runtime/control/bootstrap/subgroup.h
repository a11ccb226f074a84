// Groups of some of the ranks of a group, formed through the memory that these share already. The
// parent may go before the subgroup or after it.
#pragma once

#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/shm/mapping.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::bootstrap {

/// How the others find what a rank offers.
struct OfferHandle {
  /// A thread of the rank's process << 32 | a descriptor of that; or a number in it.
  uint64_t place = 0;
  /// Stands in what is offered: by the time that somebody looks, the place may hold another offer.
  uint64_t nonce = 0;
};

struct SubgroupMember {
  uint32_t parentRank = 0;
  OfferHandle offer; // SubgroupOffer::handle() there
};

/// The memory that a rank brings along: its segment in the subgroup. Exists until the subgroup is
/// formed; who gives up before destroys it, and the others get PeerFailed.
class SubgroupOffer {
public:
  /// segmentBytes is rounded up to whole pages. The calling thread is the one that forms the group.
  static StatusOr<std::unique_ptr<SubgroupOffer>> make(const Group &parent, uint64_t segmentBytes);
  ~SubgroupOffer();
  SubgroupOffer(const SubgroupOffer &) = delete;
  SubgroupOffer &operator=(const SubgroupOffer &) = delete;

  /// What the other members need to map it.
  OfferHandle handle() const { return {place, nonce}; }
  const std::shared_ptr<Mapping> &memory() const { return mapping; }

private:
  friend StatusOr<std::unique_ptr<Group>> formSubgroup(const Group &,
                                                       const std::vector<SubgroupMember> &,
                                                       SubgroupOffer &, const Deadline &);
  SubgroupOffer() = default;

  Descriptor file;
  std::shared_ptr<Mapping> mapping;
  uint64_t place = 0, nonce = 0;
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
