// One rank's side of the board of lanes: docs/decisions/gpu/lanes.md has the protocol.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/lanes/lane_board.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

namespace occl::cuda {

/// A lane, by number.
struct LaneName {
  uint32_t kernel = 0, number = 0;

  bool operator==(const LaneName &) const = default;
};

/// Thread safety: one thread of the rank at a time, but for isAnyWanted(). Calls are bounded:
/// Timeout if another rank does not give the lock back, or why the communicator has failed;
/// InProgress, see setWaiting().
class LaneTable {
public:
  /// board: outlives it. lanes: of each kernel, the same on all ranks. failure: why the
  /// communicator has failed, if it has.
  LaneTable(LaneBoard &board, uint32_t rank, uint32_t numRanks, uint32_t lanes,
            std::function<Status()> failure)
      : board(board), failure(std::move(failure)), rank(rank), numRanks(numRanks), lanes(lanes) {}

  /// Whether calls wait for a lock that another rank has, else they are InProgress and do nothing.
  void setWaiting(bool does) { waits = does; }

  /// The lane that is open for the id, or one that is opened for it; this rank has joined it.
  /// Nothing: none is free, or others are to have the id's before it goes on.
  StatusOr<std::optional<LaneName>> join(uint32_t kernel, uint64_t id);
  /// Ids that lanes of the kernel are open for, as of now.
  std::unordered_set<uint64_t> openIds(uint32_t kernel) const;
  /// Nothing of this rank is in flight in it. It is free when all ranks have left it and made
  /// equally many calls.
  Status leave(LaneName lane);

  /// The number of this rank's next call in a lane that it has joined.
  uint64_t next(LaneName lane) const;
  /// Whether others lack a lane, and all ranks may stop before that call.
  bool shouldYield(LaneName lane) const;
  /// This rank makes that call, in any case. Mismatch if another one has made it differently.
  Status announce(LaneName lane, const LaneSignature &signature);
  /// After that: Mismatch if another rank has made a call of the id in another lane instead.
  Status compareSiblings(LaneName lane, uint64_t number, const LaneSignature &signature);
  /// The same of a call for whose id no lane of the kernel is open, the calls before it being
  /// complete here.
  Status compareWithout(uint64_t id, uint32_t kernel, const LaneSignature &signature);
  /// Ranks that have not made that call, as bits.
  uint32_t missing(LaneName lane, uint64_t number) const;
  /// Ranks that have made no call of the id and kernel which this one has not made, as bits.
  uint32_t notBefore(uint64_t id, uint32_t kernel) const;

  /// Whether this rank lacks a lane of the kernel.
  void want(uint32_t kernel, bool lacks);
  /// A rank that is gone lacks none.
  void forget(uint32_t gone);
  /// Whether some rank does.
  bool isWanted(uint32_t kernel) const { return wantedBy(kernel) != 0; }
  /// Whether some rank lacks a lane of any kernel. Any thread.
  bool isAnyWanted() const { return board.wanted.load(std::memory_order_relaxed) != 0; }
  /// Ids that have lanes of a kernel, for reports: "3, 7, 12 and 61 more".
  std::string holders(uint32_t kernel);

private:
  LaneBoard::Lane &at(LaneName lane) const { return board.lanes[lane.kernel][lane.number]; }
  LaneName nameOf(uint32_t kernel, const LaneBoard::Lane &lane) const {
    return {kernel, static_cast<uint32_t>(&lane - board.lanes[kernel])};
  }
  LaneBoard::Lane *findOpen(uint32_t kernel, uint64_t id) const;
  LaneBoard::Lane *findFree(uint32_t kernel, uint64_t id) const;
  uint32_t wantedBy(uint32_t kernel) const;
  void noteSiblings(uint64_t id) const;
  Status compare(LaneName lane, uint64_t number, const LaneSignature &signature) const;
  Status differs(uint64_t id, uint32_t other, const LaneSignature &theirs,
                 const LaneSignature &ours) const;

  LaneBoard &board;
  const std::function<Status()> failure;
  const uint32_t rank, numRanks, lanes;
  bool waits = true;
};

} // namespace occl::cuda
