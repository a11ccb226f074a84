// How ranks agree who goes on in a smaller group, while ranks die or do not answer.
//
// An attempt has two steps. First every rank that takes part says so, and whom it wants to be left
// out; who sees that all ranks have answered, are gone or are left out, or that its deadline has
// passed, proposes those who have answered; the first proposal counts. Then the members form their
// group; when all have, somebody confirms it, and if one cannot, somebody refuses it and a new
// attempt begins, without those that are gone by then. Both verdicts are one word, so no rank goes
// on with a group that another has given up.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/bootstrap/subgroup.h"
#include "runtime/control/fabric.h"
#include "runtime/sync/deadline.h"

#include <cstdint>
#include <vector>

namespace occl::daemon {

/// The segment that a rank brings along.
struct SegmentOffer {
  bootstrap::OfferHandle handle;
  uint64_t bytes = 0;
};

/// One rank's part in the attempts on one communicator. Thread safety: none.
class Agreement {
public:
  explicit Agreement(const Fabric &fabric) : fabric(fabric) {}

  /// Begins an attempt: the members, ascending, the same on all that get any. Ranks that have not
  /// begun the same attempt by the deadline are not among them. PeerFailed if the others go on
  /// without this rank, who or why; from then on every call returns that.
  StatusOr<std::vector<uint32_t>> agree(const std::vector<bool> &excluded,
                                        const SegmentOffer &offer, const Deadline &deadline);
  /// What a member has offered in this attempt.
  SegmentOffer offerOf(uint32_t member) const;
  /// This rank has formed the group of the members, or could not. Whether all have; if not, all
  /// that are left begin a new attempt.
  bool conclude(const std::vector<uint32_t> &members, bool formed, const Deadline &deadline);

private:
  StatusOr<std::vector<uint32_t>> awaitDecision(const Deadline &deadline);
  bool propose(uint64_t decided, bool isLate);
  bool isExcluded(uint32_t r) const;
  StatusOr<std::vector<uint32_t>> readDecision(uint64_t decided);
  Status leftOut(const std::string &why);

  const Fabric &fabric;
  uint32_t current = 0;
  Status outcome; // of a rank that is left out
};

} // namespace occl::daemon
