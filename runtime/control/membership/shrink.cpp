#include "runtime/control/membership/shrink.h"

#include "runtime/control/bootstrap/subgroup.h"

#include <mutex>
#include <string>
#include <utility>

namespace occl::daemon {

namespace {

/// Forms the group and connects it.
StatusOr<std::unique_ptr<Fabric>> form(const Fabric &from, const Agreement &agreement,
                                       const std::vector<uint32_t> &ranks,
                                       bootstrap::SubgroupOffer &own,
                                       const ShrinkRequest &request) {
  Deadline deadline(request.timeout);
  std::vector<bootstrap::SubgroupMember> members;
  for (uint32_t r : ranks) {
    SegmentOffer offer = agreement.offerOf(r);
    if (offer.bytes != request.segmentBytes)
      return Status(StatusCode::Mismatch, "shrinking the communicator: rank " + std::to_string(r) +
                                              " wants a segment of " + std::to_string(offer.bytes) +
                                              " bytes, rank " + std::to_string(from.rank()) +
                                              " one of " + std::to_string(request.segmentBytes) +
                                              "; use the same arenaBytes and heapBytes");
    members.push_back({r, offer.handle});
  }
  auto group = bootstrap::formSubgroup(from.ranks(), members, own, deadline);
  if (!group.ok())
    return group.status();
  return makeFabric(std::move(*group), from.own().header().orderPolicy, deadline,
                    request.heapBytes);
}

} // namespace

/// isRefused: the members could not form their group, and those that are left may try again.
StatusOr<std::unique_ptr<Fabric>> Shrinker::attempt(const ShrinkRequest &request, bool &isRefused) {
  auto offer = bootstrap::SubgroupOffer::make(fabric.ranks(), request.segmentBytes);
  if (!offer.ok())
    return offer.status();
  auto members = agreement.agree(request.excluded, {(*offer)->handle(), request.segmentBytes},
                                 Deadline(request.timeout));
  if (!members.ok())
    return members.status();
  auto formed = form(fabric, agreement, *members, **offer, request);
  if (agreement.conclude(*members, formed.ok(), Deadline(request.timeout)))
    return formed;
  StatusCode code = formed.status().code();
  isRefused = formed.ok() || code == StatusCode::PeerFailed || code == StatusCode::Timeout;
  return formed.ok() ? Status(StatusCode::PeerFailed,
                              "shrinking the communicator: a rank was lost meanwhile")
                     : formed.status();
}

StatusOr<std::unique_ptr<Fabric>> Shrinker::shrink(ShrinkRequest request) {
  std::lock_guard lock(mutex);
  request.excluded.resize(fabric.numRanks(), false);
  for (uint32_t tries = 0;; ++tries) {
    bool isRefused = false;
    auto formed = attempt(request, isRefused);
    // Each attempt that is refused has lost a rank.
    if (!isRefused || tries == fabric.numRanks())
      return formed;
  }
}

} // namespace occl::daemon
