// The agreement on members between machines, by records and a majority.
#include "runtime/control/membership/majority_agreement.h"

#include "runtime/control/bootstrap/list_ranks.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;
using transport::contains;

constexpr auto kLookPeriod = 500us;
/// Of ranks that are inside no call, while records change, and while they do not.
constexpr std::chrono::nanoseconds kVotePeriod = 1ms, kQuietPeriod = 50ms;
constexpr auto kQuietAfter = 1s;
/// Ranks propose one after another, so that they seldom meet.
constexpr auto kTurn = 20ms;
/// Of a call's steps.
constexpr int kMostTimeouts = 8;

} // namespace

MajorityAgreement::MajorityAgreement(uint32_t rank, uint32_t numRanks,
                                     std::unique_ptr<ShrinkRecords> records)
    : rank(rank), numRanks(numRanks), records(std::move(records)), consensus(rank, numRanks),
      seen(numRanks) {
  own.consensus = consensus.record();
  seen[rank] = own; // the others need not know
}

// --- What every rank does all the time.

std::chrono::nanoseconds MajorityAgreement::vote() {
  std::lock_guard lock(mutex);
  look();
  return SteadyClock::now() - lastChange > kQuietAfter ? kQuietPeriod : kVotePeriod;
}

/// What the others have published meanwhile, and the answer to it.
void MajorityAgreement::look() {
  // Take the latest record of each rank; the own one counts as published.
  const auto now = SteadyClock::now();
  std::vector<const Consensus::Record *> all(numRanks, &own.consensus);
  for (uint32_t r = 0; r < numRanks; ++r) {
    if (r == rank)
      continue;
    // A record that is just being written is taken at the next look.
    if (const auto record = records->load(r);
        record && std::memcmp(&*record, &seen[r], sizeof *record) != 0) {
      seen[r] = *record;
      lastChange = now;
    }
    all[r] = &seen[r].consensus;
  }
  consensus.step(all, now);
  // Consensus needs the own record published before its next step.
  publish();
}

void MajorityAgreement::publish() {
  own.consensus = consensus.record();
  if (std::memcmp(&seen[rank], &own, sizeof own) == 0)
    return;
  seen[rank] = own;
  lastChange = SteadyClock::now();
  records->store(own);
}

// --- A call.

void MajorityAgreement::begin(std::chrono::milliseconds timeout) {
  std::lock_guard lock(mutex);
  call = numTaken + 1;
  // All steps of a call together have a bounded time, unless the user wants no deadline.
  callDeadline.emplace(timeout >= kNoDeadline ? timeout : kMostTimeouts * timeout);
}

void MajorityAgreement::abandon() {
  std::lock_guard lock(mutex);
  own.abandoned = own.attempt;
  publish();
}

/// Of this call: the attempt whose group is confirmed, or that this rank is in none; nothing yet.
std::optional<StatusOr<uint64_t>> MajorityAgreement::decided() {
  if (consensus.record().instance <= call)
    return std::nullopt;
  // The call is over for this rank; the next one gets another number.
  numTaken = call;
  hasJoined = false;
  const Consensus::Value *chosen = consensus.chosenIn(call);
  if (chosen && contains(chosen->members, rank) && chosen->attempt <= own.attempt)
    return StatusOr<uint64_t>(chosen->attempt);
  return StatusOr<uint64_t>(
      leaveOut("the others have gone on without it, since it was excluded, did not answer in time, "
               "or some of them do not reach it"));
}

// --- Members.

StatusOr<Agreed> MajorityAgreement::agree(const std::vector<bool> &excluded,
                                          const MemberOffer &offer, const Deadline &deadline) {
  const auto patience = std::max<std::chrono::nanoseconds>(deadline.remaining(), 1ms);
  {
    std::lock_guard lock(mutex);
    if (!outcome.ok())
      return outcome;
    look();
    own.call = call; // with all that belongs to it
    own.port = offer.handle.place;
    own.segmentBytes = offer.segmentBytes;
    own.excluded = {};
    for (uint32_t r = 0; r < numRanks; ++r)
      if (excluded[r])
        transport::add(own.excluded, r);
    enter(std::max(own.attempt + 1, latestAttempt()));
  }
  // The lock is free between looks, so that vote() goes on.
  for (;; sleepFor(kLookPeriod)) {
    std::lock_guard lock(mutex);
    if (auto agreed = agreeOnce(offer.segmentBytes, patience))
      return *agreed;
  }
}

/// All waiting begins anew.
void MajorityAgreement::enter(uint64_t attempt) {
  own.attempt = attempt;
  enteredAt = SteadyClock::now();
  lateSince.reset();
}

std::optional<StatusOr<Agreed>> MajorityAgreement::agreeOnce(uint64_t segmentBytes,
                                                             std::chrono::nanoseconds patience) {
  seeWhoIsGone();
  look(); // what they have said before they went
  if (const auto confirmed = decided())
    return confirmed->ok() ? StatusOr<Agreed>(Agreed{{}, **confirmed}) : confirmed->status();
  if (const uint64_t latest = latestAttempt(); latest > own.attempt)
    enter(latest);
  if (Status same = checkSizes(segmentBytes); !same.ok())
    return StatusOr<Agreed>(same);
  if (callDeadline->passed() || !isMajorityThere())
    return StatusOr<Agreed>(giveUp());
  // Each rank that should name the members gets half as long again.
  const bool late = isLate(patience);
  lead(late, late ? static_cast<uint64_t>((SteadyClock::now() - *lateSince) / (patience / 2)) : 0);
  publish();
  if (auto members = named())
    return StatusOr<Agreed>(Agreed{std::move(*members), std::nullopt});
  return std::nullopt;
}

void MajorityAgreement::seeWhoIsGone() {
  for (uint32_t r = 0; r < numRanks; ++r)
    if (r != rank && records->isGone(r))
      transport::add(own.unreachable, r);
}

/// The first deadline counts, whoever has it: so whoever should name the members knows as soon as
/// those who wait for that.
bool MajorityAgreement::isLate(std::chrono::nanoseconds patience) {
  if (SteadyClock::now() - enteredAt >= patience)
    own.late = own.attempt;
  bool late = own.late == own.attempt;
  for (uint32_t r = 0; r < numRanks; ++r)
    late |= hasEntered(r) && seen[r].late == own.attempt;
  if (late && !lateSince)
    lateSince = SteadyClock::now();
  return late;
}

/// Else nothing can be confirmed any more, unless a group that this rank has joined is by others.
bool MajorityAgreement::isMajorityThere() const {
  if (hasJoined)
    return true;
  uint32_t numThere = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    numThere += !contains(own.unreachable, r);
  return isMajority(numRanks, numThere, !contains(own.unreachable, 0));
}

uint64_t MajorityAgreement::latestAttempt() const {
  uint64_t latest = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (isHere(r))
      latest = std::max(latest, seen[r].attempt);
  return latest;
}

Status MajorityAgreement::checkSizes(uint64_t segmentBytes) const {
  for (uint32_t r = 0; r < numRanks; ++r)
    if (hasEntered(r) && !isExcluded(r) && seen[r].segmentBytes != segmentBytes)
      return differentSizes(rank, segmentBytes, r, seen[r].segmentBytes);
  return {};
}

bool MajorityAgreement::isExcluded(uint32_t r) const {
  for (uint32_t by = 0; by < numRanks; ++by)
    if (hasEntered(by) && contains(seen[by].excluded, r))
      return true;
  return false;
}

bool MajorityAgreement::isGone(uint32_t r) const {
  return r != rank &&
         (contains(own.unreachable, r) || (isHere(r) && seen[r].abandoned >= own.attempt));
}

/// Those who have answered, if it is time to. Of two that do not reach each other the lower one: of
/// up to six ranks that leaves as many as possible, whichever do not.
std::optional<std::vector<uint32_t>> MajorityAgreement::candidates(bool isLate) const {
  std::vector<uint32_t> taken;
  for (uint32_t r = 0; r < numRanks; ++r) {
    const bool isOut = isGone(r) || isExcluded(r);
    // An answer, the end of a rank, or the end of time settles each rank.
    if (!hasEntered(r) && !isOut && !isLate)
      return std::nullopt;
    if (hasEntered(r) && !isOut && std::ranges::none_of(taken, [&](uint32_t t) {
          return contains(seen[t].unreachable, r) || contains(seen[r].unreachable, t);
        }))
      taken.push_back(r);
  }
  return taken;
}

/// Names the members if that is up to this rank: the lowest one, or the one behind `mostSkipped`
/// that have not done it.
void MajorityAgreement::lead(bool isLate, uint64_t mostSkipped) {
  if (own.proposing == own.attempt)
    return;
  const auto taken = candidates(isLate);
  if (!taken)
    return;
  // Lower ranks come first, but for those that have let their time go by.
  auto first = taken->begin();
  while (first != taken->end() && *first != rank && !hasNamed(*first) && mostSkipped-- > 0)
    ++first;
  if (first == taken->end() || *first != rank)
    return;
  own.proposing = own.attempt;
  own.proposed = {};
  for (auto member = first; member != taken->end(); ++member)
    transport::add(own.proposed, *member);
}

/// As the lowest rank says that has.
std::optional<std::vector<uint32_t>> MajorityAgreement::named() {
  for (uint32_t r = 0; r < numRanks; ++r) {
    // A group counts only if the rank that names it is there, and names this rank.
    if (!hasNamed(r) || isGone(r) || !contains(seen[r].proposed, rank))
      continue;
    leaderPort = seen[r].port;
    std::vector<uint32_t> members;
    for (uint32_t member = 0; member < numRanks; ++member)
      if (contains(seen[r].proposed, member))
        members.push_back(member);
    return members;
  }
  return std::nullopt;
}

MemberOffer MajorityAgreement::offerOf(uint32_t) const {
  return {{leaderPort, 0}, own.segmentBytes};
}

// --- Verdict.

StatusOr<Verdict> MajorityAgreement::conclude(const std::vector<uint32_t> &members, bool formed,
                                              const Deadline &deadline) {
  {
    std::lock_guard lock(mutex);
    if (formed)
      own.joined = own.attempt;
    hasJoined |= formed;
  }
  for (;; sleepFor(kLookPeriod)) {
    std::lock_guard lock(mutex);
    if (auto verdict = concludeOnce(members, formed, deadline))
      return *verdict;
  }
}

std::optional<StatusOr<Verdict>>
MajorityAgreement::concludeOnce(const std::vector<uint32_t> &members, bool formed,
                                const Deadline &deadline) {
  seeWhoIsGone();
  look();
  // A confirmed group ends the call, whichever attempt it is of.
  if (const auto confirmed = decided())
    return confirmed->ok() ? StatusOr<Verdict>(Verdict{Verdict::Confirmed, **confirmed})
                           : confirmed->status();
  // Find out whether all members have joined, and whether one of them cannot.
  bool allHave = formed, isOver = !formed || deadline.passed() || latestAttempt() > own.attempt;
  uint32_t place = 0;
  Consensus::Value value{own.attempt, {}};
  for (uint32_t r : members) {
    transport::add(value.members, r);
    place += r < rank;
    if (isHere(r) && seen[r].joined == own.attempt)
      continue;
    allHave = false;
    isOver |= isGone(r);
  }
  if (allHave) {
    // Members propose in turn, by their place, so that ballots seldom meet.
    consensus.want(value, SteadyClock::now() + place * kTurn);
    look();
  }
  // The others may still confirm a group that this rank has joined.
  if (isOver)
    return StatusOr<Verdict>(Verdict{formed ? Verdict::Open : Verdict::Refused, own.attempt});
  return std::nullopt;
}

Status MajorityAgreement::giveUp() {
  // The error names the ranks that did not come or cannot be reached.
  std::vector<uint32_t> missing;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (r != rank && !isExcluded(r) && (!isHere(r) || contains(own.unreachable, r)))
      missing.push_back(r);
  own.abandoned = own.attempt;
  publish();
  return {
      StatusCode::Timeout,
      "shrinking the communicator: nothing was confirmed in time. Of its " +
          std::to_string(numRanks) +
          " ranks a majority has to, or half of them with rank 0, since those on the other side "
          "of a cable that is cut may go on as well; " +
          (missing.empty()
               ? "all ranks have called, and did not reach each other"
               : bootstrap::listRanks(missing) + " did not answer rank " + std::to_string(rank))};
}

Status MajorityAgreement::leaveOut(const std::string &why) {
  outcome = notAMember(rank, why);
  own.abandoned = own.attempt;
  publish();
  return outcome;
}

} // namespace occl::daemon
