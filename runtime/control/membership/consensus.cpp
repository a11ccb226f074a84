// One rank's steps of Paxos: it catches up, proposes, votes and learns.
#include "runtime/control/membership/consensus.h"

#include <algorithm>
#include <chrono>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;

/// At first: a ballot takes some looks of each voter.
constexpr auto kPause = 20ms;
constexpr uint32_t kMostDoublings = 4;

} // namespace

void Consensus::want(const Value &value, Time from) {
  if (!wanted)
    nextBallot = std::max(nextBallot, from);
  wanted = value;
}

void Consensus::step(std::span<const Record *const> all, Time now) {
  others = all;
  // A rank that is behind takes over the results of the others.
  if (catchUp())
    return;
  propose(now);
  vote();
  // A choice goes into the history, where ranks that are behind find it.
  if (const auto chosen = learn()) {
    own.history[own.instance % Record::kHistory] = {own.instance, *chosen};
    begin(own.instance + 1);
  }
}

const Consensus::Value *Consensus::chosenIn(const Record &record, uint64_t instance) {
  const Record::Chosen &kept = record.history[instance % Record::kHistory];
  return kept.instance == instance ? &kept.value : nullptr;
}

/// Whoever is in a later instance has the earlier ones behind it.
bool Consensus::catchUp() {
  const Record *latest = &own;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (of(r).instance > latest->instance)
      latest = &of(r);
  if (latest == &own)
    return false;
  own.history = latest->history;
  begin(latest->instance);
  return true;
}

void Consensus::begin(uint64_t instance) {
  Record next;
  next.instance = instance;
  next.history = own.history;
  own = next;
  wanted.reset();
  nextBallot = {};
  lastSeen = 0;
  numPauses = 0;
}

template <class Do> void Consensus::forAllHere(const Do &act) const {
  // Records of other instances say nothing about this one.
  for (uint32_t r = 0; r < numRanks; ++r)
    if (of(r).instance == own.instance)
      act(of(r), r);
}

template <class Counts> bool Consensus::isQuorum(const Counts &counts) const {
  uint32_t numFor = 0;
  bool hasFirst = false;
  forAllHere([&](const Record &record, uint32_t r) {
    const bool isFor = counts(record);
    numFor += isFor;
    hasFirst |= isFor && r == 0;
  });
  return isMajority(numRanks, numFor, hasFirst);
}

void Consensus::propose(Time now) {
  // Find the largest ballot that any record of this instance has.
  uint64_t largest = 0;
  forAllHere([&](const Record &record, uint32_t) {
    largest = std::max({largest, record.promised, record.ballot});
  });
  // Somebody else's ballot is left alone for a while.
  if (largest > std::max(lastSeen, own.ballot)) {
    lastSeen = largest;
    const auto pause = kPause * (1u << std::min(numPauses++, kMostDoublings));
    nextBallot = std::max(nextBallot, now + pause + pause * static_cast<int>(random() % 64) / 64);
  }
  // This rank's ballot is larger than all that it sees, and no other rank's.
  if (wanted && now >= nextBallot && (own.ballot == 0 || largest > own.ballot)) {
    own.ballot = (largest / numRanks + 1) * numRanks + self;
    own.isAccepting = 0;
  }
  const auto hasPromised = [&](const Record &record) { return record.promised == own.ballot; };
  // Nothing can be proposed before a quorum has promised this ballot.
  if (own.ballot == 0 || own.isAccepting || own.promised > own.ballot || !isQuorum(hasPromised))
    return;
  // A value that one of the quorum has accepted may be chosen already, so it is kept.
  const Record *last = nullptr;
  forAllHere([&](const Record &record, uint32_t) {
    if (hasPromised(record) && record.accepted != 0 && (!last || record.accepted > last->accepted))
      last = &record;
  });
  own.proposal = last ? last->acceptedValue : *wanted;
  own.isAccepting = 1;
}

void Consensus::vote() {
  // Promise the largest ballot, then accept its value if it is proposed.
  forAllHere([&](const Record &record, uint32_t) {
    own.promised = std::max(own.promised, record.ballot);
  });
  forAllHere([&](const Record &record, uint32_t) {
    if (record.isAccepting && record.ballot == own.promised) {
      own.accepted = record.ballot;
      own.acceptedValue = record.proposal;
    }
  });
}

std::optional<Consensus::Value> Consensus::learn() const {
  std::optional<Value> chosen;
  forAllHere([&](const Record &candidate, uint32_t) {
    if (!chosen && candidate.accepted != 0 &&
        isQuorum([&](const Record &record) { return record.accepted == candidate.accepted; }))
      chosen = candidate.acceptedValue;
  });
  return chosen;
}

} // namespace occl::daemon
