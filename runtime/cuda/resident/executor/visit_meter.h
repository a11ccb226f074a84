// Measures the visits of a task: how long it ran, what it waited for and for how long; of thread
// block 0, when its submission was begun and announced. A wait goes on from visit to visit, whoever
// makes them.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/exec/step/step.h"

#include <cstdint>

namespace occl::cuda::resident {

/// Of one visit. All lanes call together, and all know the same.
template <class Target> class VisitMeter {
public:
  /// found: what the record was when the task was claimed.
  OCCL_HOST_DEVICE VisitMeter(Target &target, WaitRecord &record, const WaitRecord &found,
                              uint32_t block, uint64_t sequence)
      : target(target), record(record), block(block), mark((sequence + 1) << 32), wait(found),
        recorded(found.words[0]), looked(target.now()) {}
  /// Whose thread block it is. Before anything is measured.
  OCCL_HOST_DEVICE void countFor(const CollectiveAddresses &of) { collective = &of; }

  /// isAnnounced: by all ranks, as has been seen.
  OCCL_HOST_DEVICE void begin(Progress &progress, bool isAnnounced) {
    if (block != 0 || target.lane() != 0)
      return;
    target.lower(&progress.started, looked);
    if (isAnnounced)
      target.lower(&progress.announced, looked);
  }

  /// A call of the runner has ended at `now`, with the task at `instruction`. How long it took.
  OCCL_HOST_DEVICE uint64_t ran(const interpreter::StepResult &step, uint32_t instruction,
                                uint64_t now) {
    if (step.slices != 0) {
      slices += step.slices;
      runningNs += now - looked;
      if (isWaiting())
        endWait(looked);
    }
    if (step.status == interpreter::StepStatus::Blocked && !isWaiting())
      beginWait(instruction, packed(step.obstacle), now);
    const uint64_t took = now - looked;
    looked = now;
    return took;
  }
  /// What it waits for, as a WaitRecord has it; 0: that is not known.
  OCCL_HOST_DEVICE uint64_t obstacle() const { return isWaiting() ? wait.words[1] : 0; }

  /// It is left, blocked by the obstacle of one lane or more: the record says by what.
  OCCL_HOST_DEVICE void leaveAt(uint32_t instruction, const interpreter::Obstacle &obstacle) {
    const uint64_t what = packed(obstacle);
    if (what == 0)
      return;
    if (!isWaiting() || wait.words[0] != (mark | instruction) ||
        wait.words[1] >> 56 != what >> 56) {
      if (isWaiting())
        endWait(looked);
      beginWait(instruction, what, looked);
    }
    wait.words[1] = what;
    if (target.lane() == 0)
      for (uint32_t w = 0; w < WaitRecord::kWords; ++w)
        target.post(&record.words[w], wait.words[w]);
  }
  /// It is finished: no one that waits is on record.
  OCCL_HOST_DEVICE void finish() {
    if (recorded >> 32 == mark >> 32 && target.lane() == 0)
      target.post(&record.words[0], 0);
  }

  /// The visit is over: `tasks` were to choose from.
  OCCL_HOST_DEVICE void end(uint32_t tasks, bool moved, bool preempted) {
    BlockCounts *counts = countsOfBlock();
    if (target.lane() != 0 || counts == nullptr)
      return;
    target.add(&counts->visits, 1);
    target.add(&counts->queueLengths, tasks);
    target.raise(&counts->longestQueue, tasks);
    if (moved) {
      target.add(&counts->moves, 1);
      target.add(&counts->slices, slices);
      target.add(&counts->runningNs, runningNs);
    }
    if (preempted)
      target.add(&counts->preemptions, 1);
  }

private:
  /// Null if nobody counts. Loaded when it is needed: nothing waits for that any more.
  OCCL_HOST_DEVICE BlockCounts *countsOfBlock() const {
    BlockCounts *const counts = collective->counts;
    return counts == nullptr ? nullptr : counts + block;
  }
  OCCL_HOST_DEVICE bool isWaiting() const { return wait.words[0] >> 32 == mark >> 32; }

  /// Of the first lane that has an obstacle, as a WaitRecord has it; 0: none has.
  OCCL_HOST_DEVICE uint64_t packed(const interpreter::Obstacle &obstacle) const {
    return target.ofFirst(obstacle.reason != interpreter::BlockReason::None,
                          uint64_t(obstacle.reason) << 56 | uint64_t(obstacle.peer) << 32 |
                              obstacle.what);
  }
  OCCL_HOST_DEVICE void beginWait(uint32_t instruction, uint64_t what, uint64_t now) {
    if (what == 0)
      return;
    wait.words[0] = mark | instruction;
    wait.words[1] = what;
    wait.words[2] = now;
  }
  OCCL_HOST_DEVICE void endWait(uint64_t now) {
    const uint32_t reason = static_cast<uint32_t>(wait.words[1] >> 56);
    BlockCounts *counts = countsOfBlock();
    if (target.lane() == 0 && counts != nullptr && reason < BlockCounts::kReasons) {
      target.add(&counts->waits[reason], 1);
      target.add(&counts->waitNs[reason], now > wait.words[2] ? now - wait.words[2] : 0);
    }
    wait.words[0] = 0;
  }

  Target &target;
  WaitRecord &record;
  const CollectiveAddresses *collective = nullptr;
  const uint32_t block;
  const uint64_t mark;
  WaitRecord wait;
  const uint64_t recorded; // the record's first word as it was
  uint64_t looked;         // when the last call of the runner ended
  uint64_t runningNs = 0, slices = 0;
};

} // namespace occl::cuda::resident
