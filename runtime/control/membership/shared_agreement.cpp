// The agreement on members between ranks that share memory.
#include "runtime/control/membership/shared_agreement.h"

#include "runtime/sync/thread.h"

#include <chrono>
#include <string>
#include <utility>

namespace occl::daemon {

namespace {

using transport::ShrinkBoard;

constexpr auto kLookPeriod = std::chrono::milliseconds(1);
constexpr uint64_t kConfirmed = 1, kRefused = 2;

uint64_t pack(uint32_t attempt, uint64_t value) { return uint64_t{attempt} << 32 | value; }
uint32_t attemptIn(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
uint32_t valueIn(uint64_t word) { return static_cast<uint32_t>(word); }

ShrinkBoard &boardOf(const Fabric &fabric, uint32_t r) { return fabric.of(r).header().shrink; }

/// All ranks write it.
transport::ShrinkWords &decisionOf(const Fabric &fabric) { return fabric.of(0).words().shrink; }

/// More often than this no word changes under correct ranks once a deadline has passed.
constexpr uint32_t kMostLateTries = 10000;

/// The set that belongs to an attempt.
template <class Sets> auto &ofAttempt(Sets &sets, uint32_t attempt) {
  return sets[attempt % ShrinkBoard::kGenerations];
}

} // namespace

StatusOr<Agreed> SharedAgreement::agree(const std::vector<bool> &excluded, const MemberOffer &offer,
                                        const Deadline &deadline) {
  if (!outcome.ok())
    return outcome;
  ++current;
  ShrinkBoard &own = boardOf(fabric, fabric.rank());
  // The words of the attempt are stored before `entered` makes them valid.
  ofAttempt(own.excluded, current).store(excluded);
  ofAttempt(own.offer, current).store(offer.handle.place, std::memory_order_relaxed);
  ofAttempt(own.offerNonce, current).store(offer.handle.nonce, std::memory_order_relaxed);
  ofAttempt(own.offeredBytes, current).store(offer.segmentBytes, std::memory_order_relaxed);
  own.entered.store(current, std::memory_order_release);
  auto members = awaitDecision(deadline);
  if (!members.ok())
    return members.status();
  // A member with a segment of another size cannot join the group.
  for (uint32_t r : *members)
    if (const uint64_t bytes = offerOf(r).segmentBytes; bytes != offer.segmentBytes)
      return differentSizes(fabric.rank(), offer.segmentBytes, r, bytes);
  return Agreed{std::move(*members), std::nullopt};
}

MemberOffer SharedAgreement::offerOf(uint32_t member) const {
  const ShrinkBoard &board = boardOf(fabric, member);
  return {{ofAttempt(board.offer, current).load(std::memory_order_relaxed),
           ofAttempt(board.offerNonce, current).load(std::memory_order_relaxed)},
          ofAttempt(board.offeredBytes, current).load(std::memory_order_relaxed)};
}

StatusOr<std::vector<uint32_t>> SharedAgreement::awaitDecision(const Deadline &deadline) {
  const auto &decision = decisionOf(fabric).decision;
  for (uint32_t lateTries = 0; lateTries < kMostLateTries;) {
    uint64_t decided = decision.load(std::memory_order_acquire);
    // A rank has decided this attempt, or a later one.
    if (attemptIn(decided) >= current)
      return readDecision(decided);
    const bool isLate = deadline.passed();
    lateTries += isLate;
    if (!propose(decided, isLate))
      sleepFor(kLookPeriod);
  }
  return leftOut("the decision about the members is overwritten again and again");
}

bool SharedAgreement::isExcluded(uint32_t r) const {
  for (uint32_t by = 0; by < fabric.numRanks(); ++by) {
    const ShrinkBoard &board = boardOf(fabric, by);
    if (board.entered.load(std::memory_order_acquire) == current &&
        ofAttempt(board.excluded, current).contains(r))
      return true;
  }
  return false;
}

/// Proposes those who have answered if it is time to; also a rank that is not among them.
bool SharedAgreement::propose(uint64_t decided, bool isLate) {
  std::vector<bool> members(fabric.numRanks(), false);
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    bool hasAnswered = boardOf(fabric, r).entered.load(std::memory_order_acquire) == current;
    bool isOut = isExcluded(r) || fabric.isGone(r);
    // There is time, and some rank has not answered.
    if (!hasAnswered && !isOut && !isLate)
      return false;
    members[r] = hasAnswered && !isOut;
  }
  // The proposal is stored before the word that may choose it.
  ofAttempt(boardOf(fabric, fabric.rank()).proposed, current).store(members);
  decisionOf(fabric).decision.compare_exchange_strong(decided, pack(current, fabric.rank() + 1),
                                                      std::memory_order_acq_rel);
  return true;
}

StatusOr<std::vector<uint32_t>> SharedAgreement::readDecision(uint64_t decided) {
  uint32_t proposer = valueIn(decided) - 1;
  if (proposer >= fabric.numRanks())
    return leftOut("the decision about the members is damaged");
  std::vector<uint32_t> members;
  bool isMember = false;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    if (ofAttempt(boardOf(fabric, proposer).proposed, current).contains(r)) {
      members.push_back(r);
      isMember |= r == fabric.rank();
    }
  // If the decision is still the same, what was read was whole.
  threadFence(std::memory_order_acquire);
  if (attemptIn(decided) == current && isMember &&
      decisionOf(fabric).decision.load(std::memory_order_relaxed) == decided)
    return members;
  return leftOut("rank " + std::to_string(proposer) +
                 " went on without it, since it was excluded or did not answer in time");
}

StatusOr<Verdict> SharedAgreement::conclude(const std::vector<uint32_t> &members, bool formed,
                                            const Deadline &deadline) {
  ShrinkBoard &own = boardOf(fabric, fabric.rank());
  // Joining is said before the verdict is looked for.
  if (formed)
    own.joined.store(current, std::memory_order_release);
  auto &verdict = decisionOf(fabric).verdict;
  for (uint32_t tries = 0; tries < kMostLateTries;) {
    uint64_t seen = verdict.load(std::memory_order_acquire);
    // The first verdict that is stored counts on all ranks.
    if (attemptIn(seen) >= current)
      return Verdict{seen == pack(current, kConfirmed) ? Verdict::Confirmed : Verdict::Refused,
                     current};
    // The group is complete, or never will be.
    bool allJoined = formed, isOver = !formed || deadline.passed();
    for (uint32_t r : members)
      if (boardOf(fabric, r).joined.load(std::memory_order_acquire) < current) {
        allJoined = false;
        isOver |= fabric.isGone(r);
      }
    // Only one rank succeeds; the others read its verdict in the next round.
    if (allJoined || isOver) {
      verdict.compare_exchange_strong(seen, pack(current, allJoined ? kConfirmed : kRefused),
                                      std::memory_order_acq_rel);
      ++tries;
    } else {
      sleepFor(kLookPeriod);
    }
  }
  return Verdict{};
}

} // namespace occl::daemon
