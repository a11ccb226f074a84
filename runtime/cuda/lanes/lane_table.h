// One rank's side of the board of calls in lanes: docs/decisions/gpu/lanes.md has the protocol.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/lanes/board_lock.h"
#include "runtime/cuda/lanes/lane_board.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace occl::cuda {

/// A lane, by number.
struct LaneName {
  uint32_t kernel = 0, number = 0;

  bool operator==(const LaneName &) const = default;
  bool isLarge() const { return number >= kMaxSmallLanes; }
};

/// So many lanes a kernel has, at most kMaxSmallLanes and kMaxLargeLanes; large ones are for calls
/// that say so alone.
struct LaneNumbers {
  uint32_t small = 1, large = 0;
};

/// A call of an id: which record it is in, and the how many-th there. No other call of the
/// communicator has the same.
struct CallName {
  uint32_t record = 0;
  uint64_t call = 0;

  bool operator==(const CallName &) const = default;
};

/// Thread safety: one thread of the rank at a time. Functions that take the lock are bounded: why
/// the communicator has failed if another rank does not give it back; InProgress, see setWaiting().
class LaneTable {
public:
  /// board: outlives it. lanes: the same on all ranks.
  LaneTable(LaneBoard &board, uint32_t rank, uint32_t numRanks, LaneNumbers lanes,
            BoardLock::Failure failure)
      : board(board), failure(std::move(failure)), rank(rank), numRanks(numRanks), lanes(lanes) {}

  /// Whether calls wait for a lock that another rank has, else they are InProgress and do nothing.
  void setWaiting(bool does) { waits = does; }

  // Functions without an answer: not now, as too many ids are in use, or this rank is too far ahead
  // of another one. Mismatch: another rank has made the call differently.

  /// Where calls of the id and kernel are likely to be executed. isLarge: large ones.
  StatusOr<std::optional<LaneName>> laneOf(uint64_t id, uint32_t kernel, bool isLarge);
  /// This rank makes the next call of the id, in any case.
  StatusOr<std::optional<CallName>> make(uint64_t id, uint32_t kernel,
                                         const LaneSignature &signature);
  /// Executes the call as that number of the lane, or answers false and has done nothing.
  using Enter = std::function<StatusOr<bool>(LaneName lane, uint64_t number)>;
  /// The same before all ranks have made it, for which `enter` is called with the lock; nothing
  /// also if it answers false, as there is something in the order that this rank has not gone past,
  /// as a call before it of the id has no lane, and as none is free.
  StatusOr<std::optional<CallName>> makeEarly(uint64_t id, uint32_t kernel,
                                              const LaneSignature &signature, const Enter &enter);

  struct Ordered {
    CallName call;
    LaneName lane;
    uint64_t number = 0; // in the lane
  };
  /// What all ranks have made and this one has not gone past: the first of it.
  std::optional<Ordered> next() const;
  /// Whether there is any. Any thread.
  bool hasNext() const {
    return board.read[rank].value.load(std::memory_order_relaxed) !=
           board.tail.load(std::memory_order_relaxed);
  }
  /// This rank has executed that call, or need not.
  void pass();
  /// What all ranks have made, and lacked something, comes into the order if it can.
  Status orderHeldUp();
  /// So many calls of the record are complete on this rank.
  void noteDone(uint32_t record, uint64_t calls) {
    board.records[record].done[rank].store(calls, std::memory_order_release);
  }
  /// Somebody waits for noteDone(). Any thread.
  bool isDoneWanted() const;

  /// Ranks that have not made that call, which this one has, as bits. Any thread.
  uint32_t missing(CallName call) const;
  /// Of a call that this rank has made and not executed: ranks that have not executed it either.
  uint32_t without(CallName call) const;
  /// Ranks that have not made the id's next call on this rank, as bits; but for this one.
  uint32_t notBefore(uint64_t id);
  /// Ranks for which a call of the id that was refused before others made it may wait, as bits; but
  /// for this one: those that have not made it, or completed what holds lanes.
  uint32_t refusing(uint64_t id, uint32_t kernel);
  /// Ids that hold lanes of a kernel, for reports: "3, 7, 12 and 61 more".
  std::string holders(uint32_t kernel);

private:
  using Record = LaneBoard::Record;

  /// Ranks but this one, as bits.
  uint32_t others() const { return ((1u << numRanks) - 1) & ~(1u << rank); }
  uint32_t indexOf(const Record &record) const {
    return static_cast<uint32_t>(&record - board.records);
  }
  LaneBoard::Lane &at(uint32_t kernel, uint32_t lane) const { return board.lanes[kernel][lane]; }
  uint64_t madeBy(const Record &record, uint32_t r) const {
    return record.made[r].load(std::memory_order_relaxed);
  }
  uint64_t least(const Atomic<uint64_t> (&counts)[kMaxRanks]) const;
  bool isIdle(const Record &record) const;
  Record *find(uint64_t id) const;
  Record *findOrMake(uint64_t id);
  Record *unusedRecord();
  struct Range {
    uint32_t begin, number;
  };
  /// Lanes of a kernel, of one size.
  Range rangeOf(bool isLarge) const {
    return isLarge ? Range{kMaxSmallLanes, lanes.large} : Range{0, lanes.small};
  }
  bool wantsLarge(const Record &record, uint32_t kernel) const {
    return lanes.large != 0 && (record.wantsLarge >> kernel & 1) != 0;
  }
  std::optional<uint32_t> usualLane(Record &record, uint32_t kernel, bool isLarge);
  std::optional<uint32_t> laneToStayIn(const Record &record, uint32_t kernel);
  std::optional<uint32_t> freeLane(Record &record, uint32_t kernel, bool isLarge, bool isToHold);
  std::optional<uint32_t> laneFor(Record &record, uint32_t kernel, bool isToHold);
  std::optional<uint32_t> laneToHold(Record &record, uint32_t kernel);
  bool isHeldByOther(LaneName name, const Record &record);
  bool isOthersNow(LaneName name, const Record &record);
  StatusOr<bool> mayMake(Record &record, uint32_t kernel, const LaneSignature &signature) const;
  CallName noteMade(Record &record);
  void giveNumber(Record &record, LaneName lane);
  bool order(Record &record);
  bool orderNext(Record &record);
  bool hasPlace();
  void holdUp(Record &record);
  Status differs(uint64_t id, uint32_t other, const LaneSignature &theirs,
                 const LaneSignature &ours) const;

  LaneBoard &board;
  const BoardLock::Failure failure;
  const uint32_t rank, numRanks;
  const LaneNumbers lanes;
  bool waits = true;
};

} // namespace occl::cuda
