// How a majority of all ranks chooses one value although some die, stop or are cut off: Paxos, in
// which a voter answers a proposer by what stands in its record. Nothing is sent but records, of
// which each reader sees some in order, the last one in the end.
//
// A proposer writes its ballot; voters promise the largest that they see; when a quorum has
// promised its ballot, it proposes the value that one of these has accepted last, or its own, and
// voters that have promised nothing larger accept it. What a quorum has accepted by one ballot is
// chosen: any later ballot meets one of that quorum, and so takes the same value.
#pragma once

#include "runtime/control/records/shrink_record.h"
#include "runtime/sync/clock.h"

#include <cstdint>
#include <optional>
#include <random>
#include <span>

namespace occl::daemon {

/// More than half of them, or half with the first one: any two majorities have a rank in common.
inline bool isMajority(uint32_t numRanks, uint32_t numFor, bool hasFirst) {
  return 2 * numFor > numRanks || (2 * numFor == numRanks && hasFirst);
}

/// One rank's part in a sequence of choices, of which the first has the number 1. Nobody forgets
/// what it has promised or accepted before it knows what was chosen. Thread safety: none.
class Consensus {
public:
  using Value = transport::ShrinkDecision;
  using Record = transport::ConsensusRecord;
  using Time = SteadyClock::time_point;

  Consensus(uint32_t self, uint32_t numRanks) : self(self), numRanks(numRanks), random(self) {
    own.instance = 1;
  }

  /// What this rank would have chosen in the present instance, and from when on it says so. Another
  /// value counts where that is on its way already.
  void want(const Value &value, Time from);
  /// Looks at the last records of all ranks that this one has; the own one is not looked at.
  /// Changes record(), which is to be published before the next step. If the present instance is
  /// decided the next one begins.
  void step(std::span<const Record *const> all, Time now);

  const Record &record() const { return own; }
  /// What has been chosen in one of the last instances; null: nothing yet, or it was long ago.
  const Value *chosenIn(uint64_t instance) const { return chosenIn(own, instance); }

private:
  static const Value *chosenIn(const Record &record, uint64_t instance);
  template <class Counts> bool isQuorum(const Counts &counts) const;
  const Record &of(uint32_t rank) const { return rank == self ? own : *others[rank]; }
  template <class Do> void forAllHere(const Do &act) const;
  bool catchUp();
  void begin(uint64_t instance);
  void propose(Time now);
  void vote();
  std::optional<Value> learn() const;

  const uint32_t self, numRanks;
  Record own;
  std::span<const Record *const> others; // in step()
  std::optional<Value> wanted;
  Time nextBallot{};
  uint64_t lastSeen = 0;  // the largest ballot of others
  uint32_t numPauses = 0; // in this instance
  std::minstd_rand random;
};

} // namespace occl::daemon
