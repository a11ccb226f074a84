// A thread block of a partitioned collective, as executors of a resident daemon run it: not before
// the partitions are marked that it reads, and what it has made is said. Marks are stable: what is
// open stays open until the invocation has ended.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/cuda/tables/part_gates.h"
#include "runtime/exec/step/step.h"

#include <cstdint>

namespace occl::cuda::resident {

/// All lanes call together.
template <class Target> class PartGate {
public:
  OCCL_HOST_DEVICE PartGate(Target &target, const PartGates &gates, uint32_t rank, uint32_t block)
      : target(target), gates(gates), rank(rank), block(block) {}

  /// Before any of its partitions is looked at.
  OCCL_HOST_DEVICE GateCursor begin() const { return {gates.firstRead[block], 0}; }
  /// Whether all partitions are marked that the thread block reads, and nothing was misused; else
  /// the result is that of its visit.
  OCCL_HOST_DEVICE bool opens(GateCursor &cursor, interpreter::StepResult &result) {
    if (isMisused())
      return close(0, result);
    return pass(cursor, gates.firstRead[block + 1], result);
  }
  OCCL_HOST_DEVICE bool isMisused() const { return target.peek(&gates.state->misuse) != 0; }
  /// The steps of this visit say that they have finished. False: it waits for marks all the same,
  /// as the result says then.
  OCCL_HOST_DEVICE bool finish(interpreter::StepResult &result) {
    if (result.slices != 0) // else this was done by the visit that moved last
      noteMade();
    GateCursor cursor = {gates.firstRead[gates.numBlocks], 0};
    if (block == 0 && !pass(cursor, cursor.range + gates.atEnd, result))
      return false;
    if (target.lane() == 0)
      target.addReleasing(&gates.state->finished, 1);
    target.sync();
    return true;
  }

private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  static constexpr uint32_t kTogether = 4; // loads of a lane on their way

  OCCL_HOST_DEVICE bool close(uint64_t partition, interpreter::StepResult &result) const {
    result.status = interpreter::StepStatus::Blocked;
    result.obstacle = {interpreter::BlockReason::Dependency,
                       interpreter::kFirstPartition + static_cast<uint32_t>(partition), rank};
    return false;
  }
  /// Whether all are marked from the cursor on. What the program stored before it marked them is
  /// there then for all lanes.
  OCCL_HOST_DEVICE bool pass(GateCursor &cursor, uint32_t end, interpreter::StepResult &result) {
    // Stored before the submission began, which this executor knows.
    const uint64_t epoch = target.peek(&gates.state->epoch);
    uint64_t missing = kNone;
    while (cursor.range != end && missing == kNone) {
      const PartitionRange range = gates.ranges[cursor.range];
      missing = firstMissing({range.begin + cursor.offset, range.end}, epoch);
      if (missing != kNone)
        cursor.offset = static_cast<uint32_t>(missing) - range.begin;
      else
        cursor = {cursor.range + 1, 0};
    }
    target.fence();
    target.sync();
    return missing == kNone || close(missing, result);
  }
  OCCL_HOST_DEVICE uint64_t firstMissing(PartitionRange range, uint64_t epoch) const {
    const uint64_t *const marked = gates.state->marked;
    for (uint64_t p = range.begin; p < range.end; p += uint64_t{kTogether} * target.numLanes()) {
      uint64_t mine = kNone;
      for (uint32_t k = kTogether; k-- > 0;) {
        const uint64_t at = p + k * target.numLanes() + target.lane();
        if (at < range.end && target.peekBeforeFence(&marked[at]) < epoch)
          mine = at;
      }
      const uint64_t missing = target.smallest(mine);
      if (missing != kNone)
        return missing;
    }
    return kNone;
  }
  OCCL_HOST_DEVICE void noteMade() {
    target.fenceDevice();
    for (uint32_t r = gates.firstMade[block]; r < gates.firstMade[block + 1]; ++r) {
      const PartitionRange range = gates.ranges[r];
      for (uint64_t q = range.begin + target.lane(); q < range.end; q += target.numLanes())
        target.addReleasing(&gates.state->outputs[q].made, 1);
    }
    target.sync();
  }

  Target &target;
  const PartGates &gates;
  const uint32_t rank, block;
};

} // namespace occl::cuda::resident
