// The agreement of ranks of several machines. They see each other's records (ShrinkRecord). The
// lowest one that takes part in an attempt names its members. A group that all of these have formed
// is confirmed by a majority of all ranks of the communicator, so of one that is cut in two at most
// one part goes on: docs/decisions/hosts/shrinking.md.
#pragma once

#include "runtime/control/membership/agreement.h"
#include "runtime/control/membership/consensus.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/mutex.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace occl::daemon {

/// The records of all ranks, as this one has them. Thread safety: one thread at a time.
class ShrinkRecords {
public:
  virtual ~ShrinkRecords() = default;
  /// Nothing: it is just being written. Of each rank never one that is older than the last.
  virtual std::optional<transport::ShrinkRecord> load(uint32_t rank) const = 0;
  /// This rank's own.
  virtual void store(const transport::ShrinkRecord &record) = 0;
  /// It takes part in nothing any more, as far as this rank can see. For good.
  virtual bool isGone(uint32_t rank) const = 0;
};

class MajorityAgreement final : public Agreement {
public:
  MajorityAgreement(uint32_t rank, uint32_t numRanks, std::unique_ptr<ShrinkRecords> records);

  void begin(std::chrono::milliseconds timeout) override;
  /// Timeout, too, if nothing is confirmed within eight timeouts of the call, or can be any more.
  StatusOr<Agreed> agree(const std::vector<bool> &excluded, const MemberOffer &offer,
                         const Deadline &deadline) override;
  MemberOffer offerOf(uint32_t member) const override;
  uint64_t attempt() const override { return own.attempt; }
  StatusOr<Verdict> conclude(const std::vector<uint32_t> &members, bool formed,
                             const Deadline &deadline) override;
  void abandon() override;

  /// Answers what others propose. Every rank does that all the time, whether or not it is inside a
  /// call or was left out: any thread. For how long it need not do it again.
  std::chrono::nanoseconds vote();

private:
  using Bits = transport::RankBits;
  using Record = transport::ShrinkRecord;

  void look();
  void seeWhoIsGone();
  void publish();
  std::optional<StatusOr<uint64_t>> decided();
  std::optional<StatusOr<Agreed>> agreeOnce(uint64_t segmentBytes,
                                            std::chrono::nanoseconds patience);
  void enter(uint64_t attempt);
  bool isLate(std::chrono::nanoseconds patience);
  std::optional<StatusOr<Verdict>> concludeOnce(const std::vector<uint32_t> &members, bool formed,
                                                const Deadline &deadline);
  Status checkSizes(uint64_t segmentBytes) const;
  void lead(bool isLate, uint64_t mostSkipped);
  std::optional<std::vector<uint32_t>> candidates(bool isLate) const;
  std::optional<std::vector<uint32_t>> named();
  bool isMajorityThere() const;
  uint64_t latestAttempt() const;
  bool isHere(uint32_t r) const { return seen[r].call == own.call; }
  bool hasEntered(uint32_t r) const { return isHere(r) && seen[r].attempt == own.attempt; }
  bool hasNamed(uint32_t r) const { return isHere(r) && seen[r].proposing == own.attempt; }
  bool isExcluded(uint32_t r) const;
  bool isGone(uint32_t r) const;
  Status giveUp();
  Status leaveOut(const std::string &why);

  const uint32_t rank, numRanks;
  const std::unique_ptr<ShrinkRecords> records;

  /// All below.
  Mutex mutex;
  Consensus consensus;
  Record own;
  std::vector<Record> seen; // by rank, the last ones; with what is published
  uint64_t numTaken = 0;    // calls whose outcome this rank knows
  uint64_t call = 0;        // that this rank is in; own.call once it has entered an attempt of it
  bool hasJoined = false;   // a group of this call
  SteadyClock::time_point enteredAt = {};           // this attempt
  std::optional<SteadyClock::time_point> lateSince; // somebody in it waits for nobody any more
  std::optional<Deadline> callDeadline;
  uint64_t leaderPort = 0;                 // of the members that are named
  SteadyClock::time_point lastChange = {}; // of any record
  Status outcome;                          // of a rank that is left out
};

} // namespace occl::daemon
