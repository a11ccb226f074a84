// All ranks of a resident daemon in plain memory of one process, with threads of the host as
// executors and the interpreter's host target: real plans, real data. For tests.
#pragma once

#include "plan/model/plan.h"
#include "runtime/cuda/resident/executor/executor.h"
#include "runtime/cuda/resident/submission/submission_side.h"
#include "runtime/exec/conformance/simulation.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace occl::cuda::resident {

/// A collective of the group: an all-reduce of 32-bit integers, each invocation in memory of its
/// own.
class HostCollective {
public:
  /// number: in the group, the same on all ranks.
  HostCollective(const plan::Plan &plan, uint64_t count, uint32_t invocations, uint32_t number);

  uint32_t numRanks() const { return static_cast<uint32_t>(words.size()); }
  /// So many slices of a thread block of an invocation at most.
  interpreter::StepResult run(uint32_t ordinal, uint32_t rank, uint32_t block,
                              interpreter::BlockContext &context, interpreter::HostTarget &target,
                              uint32_t maxSlices) {
    return simulations[ordinal]->run(rank, block, context, target, maxSlices);
  }
  /// Of the rank's next invocation.
  Submission nextOf(uint32_t rank);
  const BlockCounts &counts(uint32_t rank, uint32_t block) const {
    return words[rank]->blockCounts[block];
  }
  /// Whether rank `by` has told rank `to` that the invocation has come.
  bool hasAnnounced(uint32_t by, uint32_t to, uint64_t ordinal) const {
    return isAnnounced(loadShared(&words[to]->announcedWords[by], std::memory_order_acquire),
                       ordinal);
  }
  /// From the rank's next invocation on it has partitions.
  void setParts(uint32_t rank, const PartGates *parts) { words[rank]->parts = parts; }
  const interpreter::Program &program(uint32_t rank) const {
    return simulations.front()->program(rank);
  }
  /// Whether all ranks have the sum of all inputs, and nothing else was written.
  bool isRight(uint32_t ordinal);

private:
  friend class HostRunner;
  struct Words : CollectiveWords {
    HostCollective *self = nullptr;
    uint64_t doneWord = 0, announcedWords[kMaxRanks] = {};
    BlockCounts blockCounts[kMaxTasks] = {};
  };

  const uint64_t count;
  const uint32_t number;
  std::vector<std::unique_ptr<Words>> words;                                      // by rank
  std::vector<uint32_t> nextOrdinals;                                             // by rank
  std::vector<std::unique_ptr<interpreter::conformance::Simulation>> simulations; // by ordinal
};

/// A rank's board, page and executors. Generations run in two streams, in each one after the other.
class HostRank {
public:
  explicit HostRank(const Settings &settings);
  /// Aborts, unless the executors have left.
  ~HostRank();

  SubmissionSide &side() { return submissions; }
  /// Executors of later generations record marks.
  void trace() { marks = std::make_unique<MarkRing[]>(settings.numExecutors); }
  /// Of an executor, once all have left.
  const MarkRing &marksOf(uint32_t executor) const { return marks[executor]; }
  /// As submit(), until the window has room.
  uint64_t submit(HostCollective &collective, uint32_t rank, uint8_t priority = 0);
  /// The same, to begin when its stream reaches it.
  uint64_t submitStreamed(HostCollective &collective, uint32_t rank);
  void reach(uint64_t request);
  /// No generation begins until it is allowed again: as if all connections to a device were busy.
  void mayBegin(bool may);
  /// False if it has not happened in time. Restarts executors as long as it waits.
  bool wait(uint64_t request, std::chrono::milliseconds atMost);
  /// Until all executors have left.
  bool waitForQuit(std::chrono::milliseconds atMost);
  /// The same after an abort of side().
  bool waitForEnd(std::chrono::milliseconds atMost);
  /// Has executors leave, takes the request out if it is not complete, and starts them again. What
  /// they waited for; nothing if they did not leave in time.
  std::optional<std::vector<OpenTask>> withdraw(uint64_t request, std::chrono::milliseconds atMost);

private:
  uint64_t submit(const Submission &submission);
  bool areGone() const;
  void runGenerations(uint32_t number);
  void runGeneration(uint64_t generation);

  const Settings settings;
  std::unique_ptr<Board> board;
  std::unique_ptr<HostPage> page;
  std::unique_ptr<MarkRing[]> marks; // null: nothing is recorded
  SubmissionSide submissions;
  Mutex mutex;
  ConditionVariable changed;
  uint32_t current = 0;                // the stream of the last generation
  std::deque<uint64_t> generations[2]; // to be run, by stream
  bool isOver = false, isBusy = false;
  Atomic<uint64_t> gone{0}; // how many generations have ended
  std::thread streams[2];
};

} // namespace occl::cuda::resident
