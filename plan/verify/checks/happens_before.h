// Whether one instruction must be complete before another starts. See races.h.
//
// A message is sent and received slice by slice, so an instruction that passes on what it receives
// begins before the sender has come to its end. What reached another instruction along messages
// alone is ahead of it slice by slice ("in step" here); what precedes it is complete.
#pragma once

#include "plan/verify/checks/execution.h"
#include "plan/verify/checks/witnesses.h"

#include <unordered_set>

namespace occl::plan::verify {

/// Searches backward through program order, dependencies, messages of ordered connections and
/// signals, over all ranks.
class PathSearch {
public:
  PathSearch(const Network &network, const Execution &execution);

  /// Whether `earlier` is complete before `later` begins, or, if `inStep` is enough, ahead of it
  /// slice by slice. False also when the budget of all searches together is spent.
  bool leads(uint32_t earlier, uint32_t later, bool inStep);
  /// Whether all of `earlier` are complete when all of `later` are; likewise.
  bool leads(std::span<const uint32_t> earlier, std::span<const uint32_t> later);

  uint64_t numSearches() const { return searches; }

  /// What the last search came by: that many instructions of a thread block are complete before its
  /// `later` begins.
  struct Reached {
    uint32_t block;
    uint32_t numInstructions;
  };
  std::span<const Reached> reachedBlocks() const { return found; }

private:
  struct Stretch {
    uint32_t block;
    uint32_t from, to; // positions [from, to)
  };

  bool search(std::span<const uint32_t> earlier, bool inStep);
  void reach(uint32_t block, uint32_t end);
  void reachConditions(uint32_t instruction);
  void follow(uint32_t instruction);
  void expand(const Stretch &stretch);
  template <typename Visit> void forEachSend(uint32_t instruction, const Visit &visit);
  bool isReached(uint32_t instruction) const {
    return reached[network.blockOf[instruction]] > network.positionOf(instruction);
  }

  const Plan &plan;
  const Network &network;
  bool hasOrdered = false;           // a connection
  std::vector<uint32_t> rankInOrder; // of each instruction: when it ran
  std::vector<uint32_t> reached;     // of each thread block: that many are complete before `later`
  std::vector<uint32_t> touched;     // thread blocks with reached != 0
  std::vector<Reached> found;
  std::vector<Stretch> open;
  std::vector<uint32_t> openInStep;
  std::unordered_set<uint32_t> seenInStep;
  uint32_t horizon = 0; // what ran before cannot follow `earlier`
  uint64_t budget, searches = 0;
};

/// Clocks of one rank's thread blocks, advanced instruction by instruction in an order of
/// execution.
class RankClocks {
public:
  RankClocks(const Network &network, const KnownOrders &known, PathSearch &search);

  /// Starts over, for a rank.
  void begin(uint32_t rank);
  /// `instruction`, of that rank, runs next: its dependencies are complete.
  void enter(uint32_t instruction);
  /// Whether `earlier` (which ran before, on the same rank) is complete for sure when the entered
  /// instruction runs, or, if `inStep` is enough, ahead of it slice by slice.
  bool isOrdered(uint32_t earlier, uint32_t entered, bool inStep);
  /// The entered instruction is complete.
  void leave(uint32_t instruction);

private:
  uint32_t *clockOf(uint32_t block) { return &clocks[size_t{block - firstBlock} * numBlocks]; }
  void raise(uint32_t &to, uint32_t value) { to = to < value ? value : to; }
  void join(uint32_t *clock, uint32_t earlier, bool isComplete);
  void joinInStep(uint32_t *clock, uint32_t complete);

  const Plan &plan;
  const Network &network;
  const KnownOrders &known;
  PathSearch &search;
  uint64_t joinBudget;
  std::vector<bool> isTarget; // of each instruction: others depend on it
  uint32_t firstBlock = 0, numBlocks = 0;
  /// For each thread block a row: how many instructions of each thread block are complete for sure.
  std::vector<uint32_t> clocks;
  /// Rows of targets: what was complete when they began.
  std::vector<uint32_t> saved;
  std::vector<uint32_t>
      savedRow; // of each instruction of the rank: its row's number in `saved`, or kNone
  uint32_t firstInstruction = 0;
};

} // namespace occl::plan::verify
