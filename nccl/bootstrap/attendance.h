// A rank's side of the decision about its communicator (meeting.h is the root's).
#pragma once

#include "nccl/bootstrap/network.h"

#include <chrono>
#include <functional>
#include <optional>

namespace occl::nccl {

/// Of ranks on several machines that OCCL joins: the name for occlCommInitRank. On rank 0 `held`
/// keeps its port from others until they have come together.
struct Across {
  std::string name;
  HeldPort held;
};

/// Used by one thread.
class Attendance {
public:
  /// `wish`: why OCCL does not do for this communicator, "" if it does. As soon as isCancelled(),
  /// waits end, and others hear that this rank has left. With `mayBeEarly` the id's root may not
  /// listen yet.
  Attendance(const IdLayout &id, uint32_t numRanks, uint32_t rank, std::string wish,
             bool mayBeEarly, std::function<bool()> isCancelled);

  /// Opens the other library; the first rank makes an id there. Fills in `version` and `id`.
  using Prepare = std::function<Outcome(FromRank &prepared)>;
  struct Decision {
    bool isOther = false; // the other library's communicator
    std::string why;
    ncclUniqueId id{}; // of the other library
    std::optional<Across> across;
  };
  /// Returns when ranks have decided. Without deadline as long as all that have come are on one
  /// machine and have no wish.
  Outcome decide(const Prepare &prepare, Decision &decision);

  /// Of another library's communicator, while it is made: the error of another rank, if there is
  /// one. Does not wait.
  Outcome othersFailure();
  /// Says how it has ended here; returns how it has ended on all.
  Outcome finish(const Outcome &own);

private:
  Outcome listen(HeldPort &held);
  Outcome connect();
  Outcome connectTo(Address address, const std::string &what);
  /// The next message; until `end`, if there is one.
  Outcome receive(FromRoot &message, std::optional<std::chrono::steady_clock::time_point> end);
  /// False if none is there whole.
  bool poll(std::chrono::milliseconds wait, FromRoot &message, Outcome &outcome);
  FromRank messageOf(FromRankKind kind) const;
  Outcome say(const FromRank &message);

  const IdLayout id;
  const uint32_t numRanks, rank;
  const std::string wish;
  const bool mayBeEarly;
  const std::function<bool()> isCancelled;
  Socket socket;
  FromRoot incoming{};
  size_t numReceived = 0;
  std::optional<Outcome> failure; // that was received: nothing more comes
};

} // namespace occl::nccl
