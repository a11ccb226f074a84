// The memory, or the port, that a rank brings along to a smaller group.
#include "runtime/control/membership/group_offer.h"

#include <utility>

namespace occl::daemon {

StatusOr<GroupOffer> GroupOffer::make(const Fabric &from, const Sizes &sizes) {
  GroupOffer offer;
  offer.sizes = sizes;
  // Ranks of several machines meet by TCP; those of one machine map each other's memory.
  if (from.network()) {
    auto listener = net::listenForDivision();
    if (!listener.ok())
      return listener.status();
    offer.listener = std::move(*listener);
    return offer;
  }
  auto memory = bootstrap::SubgroupOffer::make(from.ranks(), sizes.segmentBytes);
  if (!memory.ok())
    return memory.status();
  offer.memory = std::move(*memory);
  return offer;
}

bootstrap::OfferHandle GroupOffer::handle() const {
  return memory ? memory->handle() : bootstrap::OfferHandle{listener.port, 0};
}

StatusOr<std::unique_ptr<bootstrap::Group>>
GroupOffer::form(const Fabric &from, const std::vector<bootstrap::SubgroupMember> &members,
                 const std::string &name, const Deadline &deadline,
                 std::function<bool(uint32_t rank)> hasGivenUp) && {
  if (memory)
    return bootstrap::formSubgroup(from.ranks(), members, *memory, deadline);
  net::Division division = {
      name, {}, sizes.segmentBytes, sizes.heapBytes, from.own().header().orderPolicy};
  // Between machines an offer is the port of its rank.
  for (const bootstrap::SubgroupMember &member : members)
    division.members.push_back({member.parentRank, static_cast<uint16_t>(member.offer.place)});
  division.hasGivenUp = std::move(hasGivenUp);
  return net::divideMachineGroup(from.ranks(), division, std::move(listener), deadline);
}

} // namespace occl::daemon
