// Attempts to form a smaller group, until one is confirmed.
#include "runtime/control/membership/shrink.h"

#include "runtime/control/membership/group_offer.h"
#include "runtime/control/membership/majority_agreement.h"
#include "runtime/control/membership/shared_agreement.h"
#include "runtime/net/network.h"

#include <mutex>
#include <string>
#include <utility>

namespace occl::daemon {

namespace {

/// For so long a group that was formed in vain may take to go.
constexpr std::chrono::milliseconds kMostFarewell{2000};

/// In the segments of this machine's ranks, and in mirrors of the others.
class RecordsInSegments final : public ShrinkRecords {
public:
  explicit RecordsInSegments(const Fabric &fabric) : fabric(fabric) {}

  std::optional<transport::ShrinkRecord> load(uint32_t rank) const override {
    return fabric.of(rank).header().shrinkRecord.load();
  }
  void store(const transport::ShrinkRecord &record) override {
    fabric.own().header().shrinkRecord.store(record);
    fabric.network()->wakeSender();
  }
  bool isGone(uint32_t rank) const override { return fabric.isGone(rank); }

private:
  const Fabric &fabric;
};

std::unique_ptr<Agreement> makeAgreement(const Fabric &fabric) {
  if (!fabric.network())
    return std::make_unique<SharedAgreement>(fabric);
  auto made = std::make_unique<MajorityAgreement>(fabric.rank(), fabric.numRanks(),
                                                  std::make_unique<RecordsInSegments>(fabric));
  fabric.network()->setVoter([voter = made.get()] { return voter->vote(); });
  return made;
}

/// Forms the group and connects it. Its name: no other group of this communicator has it.
StatusOr<std::unique_ptr<Fabric>> form(const Fabric &from, const Agreement &agreement,
                                       const std::vector<uint32_t> &ranks, GroupOffer own,
                                       const ShrinkRequest &request) {
  Deadline deadline(request.timeout);
  // Collect the members' offers, and a name that no other attempt has.
  std::vector<bootstrap::SubgroupMember> members;
  std::string name =
      "shrinking the communicator, attempt " + std::to_string(agreement.attempt()) + ", to ranks";
  for (uint32_t r : ranks) {
    members.push_back({r, agreement.offerOf(r).handle});
    name += " " + std::to_string(r);
  }
  auto group = std::move(own).form(from, members, name, deadline);
  if (!group.ok())
    return group.status();
  return makeFabric(std::move(*group), from.own().header().orderPolicy, deadline,
                    request.heapBytes);
}

} // namespace

Shrinker::Shrinker(Fabric &fabric) : fabric(fabric), agreement(makeAgreement(fabric)) {}

Shrinker::~Shrinker() {
  if (fabric.network())
    fabric.network()->setVoter(nullptr);
}

/// Nothing: the members could not form their group, and those that are left try again.
std::optional<StatusOr<std::unique_ptr<Fabric>>> Shrinker::attempt(const ShrinkRequest &request,
                                                                   Status &whyRefused) {
  using Result = StatusOr<std::unique_ptr<Fabric>>;
  // Between machines some find out later than others that a group could not be formed.
  const bool isFirst = whyRefused.ok();
  const auto patience =
      isFirst || !fabric.network() ? request.timeout : 2 * request.timeout + kMostFarewell;
  // The offer lives until the group is formed, or this attempt is given up.
  auto offer = GroupOffer::make(fabric, {request.segmentBytes, request.heapBytes});
  if (!offer.ok())
    return Result(offer.status());
  auto agreed = agreement->agree(request.excluded, {offer->handle(), request.segmentBytes},
                                 Deadline(patience));
  if (!agreed.ok())
    return Result(agreed.status());
  // A group of an earlier attempt is confirmed after all.
  if (agreed->confirmed)
    return take(*agreed->confirmed);
  // Form the group, and hear whether all members have.
  auto made = form(fabric, *agreement, agreed->members, std::move(*offer), request);
  const Status status = made.status();
  if (made.ok())
    formed[agreement->attempt()] = std::move(*made);
  const auto verdict = agreement->conclude(agreed->members, status.ok(), Deadline(request.timeout));
  if (!verdict.ok())
    return Result(verdict.status());
  if (verdict->kind == Verdict::Confirmed)
    return take(verdict->attempt);
  if (verdict->kind == Verdict::Refused)
    formed.erase(agreement->attempt());
  // Another attempt is of use only after the loss of a rank.
  if (!status.ok() && status.code() != StatusCode::PeerFailed &&
      status.code() != StatusCode::Timeout)
    return Result(status);
  whyRefused = status.ok() ? Status(StatusCode::PeerFailed,
                                    "shrinking the communicator: a rank was lost meanwhile")
                           : status;
  return std::nullopt;
}

StatusOr<std::unique_ptr<Fabric>> Shrinker::take(uint64_t attempt) {
  auto found = formed.extract(attempt);
  // Groups of all other attempts are given up.
  formed.clear();
  if (!found)
    return Status(StatusCode::PeerFailed,
                  "shrinking the communicator: the others go on with a group that rank " +
                      std::to_string(fabric.rank()) + " could not form");
  return std::move(found.mapped());
}

StatusOr<std::unique_ptr<Fabric>> Shrinker::shrink(ShrinkRequest request) {
  std::lock_guard lock(mutex);
  request.excluded.resize(fabric.numRanks(), false);
  agreement->begin(request.timeout);
  Status whyRefused;
  // Each attempt that is refused has lost a rank.
  for (uint32_t tries = 0; tries <= fabric.numRanks(); ++tries)
    if (auto result = attempt(request, whyRefused)) {
      if (!result->ok())
        agreement->abandon();
      if (result->status().code() == StatusCode::PeerFailed)
        formed.clear(); // this rank is in none
      return std::move(*result);
    }
  agreement->abandon();
  return whyRefused;
}

} // namespace occl::daemon
