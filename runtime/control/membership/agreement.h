// How ranks agree who goes on in a smaller group, while ranks die or do not answer.
//
// An attempt has two steps. First every rank that takes part says so, and whom it wants to be left
// out; when all have answered, are gone or are left out, or the deadline has passed, those who have
// answered become the members. Then the members form their group; when all have, it is confirmed.
// If one cannot, a new attempt begins, without those that are gone by then. At most one group of a
// call is confirmed, and that on all ranks: no rank goes on with a group that another has given up.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/bootstrap/subgroup.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace occl::daemon {

/// What a rank brings along: a segment, or the port where the others come.
struct MemberOffer {
  bootstrap::OfferHandle handle;
  uint64_t segmentBytes = 0; // the same on all ranks
};

struct Agreed {
  std::vector<uint32_t> members; // ascending; this rank is one
  /// No members then: the group of an earlier attempt is confirmed after all.
  std::optional<uint64_t> confirmed;
};

struct Verdict {
  enum Kind : uint8_t {
    Confirmed, // the group of `attempt`, which this rank has joined
    Refused,   // this attempt's will never be
    Open,      // this attempt's may be still
  };
  Kind kind = Refused;
  uint64_t attempt = 0;
};

/// One rank's part in the attempts on one communicator. Thread safety: none, but what is said.
class Agreement {
public:
  virtual ~Agreement() = default;

  /// Another call of the user's; `timeout` is that of each of its steps.
  virtual void begin(std::chrono::milliseconds timeout) = 0;
  /// Begins an attempt: the members, the same on all that get any and form a group. Ranks that have
  /// not begun the same attempt by the deadline are not among them. PeerFailed if the others go on
  /// without this rank, who or why; from then on every call returns that. Mismatch where ranks
  /// offer segments of different sizes.
  virtual StatusOr<Agreed> agree(const std::vector<bool> &excluded, const MemberOffer &offer,
                                 const Deadline &deadline) = 0;
  /// What a member has offered in this attempt; without a segment, only that of the first member.
  virtual MemberOffer offerOf(uint32_t member) const = 0;
  virtual uint64_t attempt() const = 0;
  /// This rank has formed the group of the members, or could not. Unless it is confirmed, all that
  /// are left begin a new attempt.
  virtual StatusOr<Verdict> conclude(const std::vector<uint32_t> &members, bool formed,
                                     const Deadline &deadline) = 0;
  /// This rank's call ends with an error: the others wait for it no more.
  virtual void abandon() = 0;
};

inline Status notAMember(uint32_t rank, const std::string &why) {
  return {StatusCode::PeerFailed,
          "rank " + std::to_string(rank) + " is not a member of the smaller communicator: " + why};
}

inline Status differentSizes(uint32_t rank, uint64_t bytes, uint32_t other, uint64_t otherBytes) {
  return {StatusCode::Mismatch,
          "shrinking the communicator: rank " + std::to_string(other) + " wants a segment of " +
              std::to_string(otherBytes) + " bytes, rank " + std::to_string(rank) + " one of " +
              std::to_string(bytes) + "; use the same arenaBytes and heapBytes"};
}

} // namespace occl::daemon
