// Whether one instruction must be complete before another starts. See races.h.
#pragma once

#include "plan/verify/execution.h"

namespace occl::plan::verify {

/// Searches backward through program order, dependencies, messages and signals of all ranks.
class PathSearch {
public:
  PathSearch(const Network &network, const Execution &execution);

  /// Whether a path leads from `earlier` to `later`; false also when the budget of all searches
  /// together is spent.
  bool leads(uint32_t earlier, uint32_t later) {
    return leads(std::span(&earlier, 1), std::span(&later, 1));
  }
  /// Whether from each of `earlier` a path leads to one of `later`.
  bool leads(std::span<const uint32_t> earlier, std::span<const uint32_t> later);

  /// What the last search came by: that many instructions of a thread block are complete before its
  /// `later` is.
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

  void reach(uint32_t instruction);
  void expand(const Stretch &stretch, uint32_t horizon);
  bool isReached(uint32_t instruction) const {
    return reached[network.blockOf[instruction]] > network.positionOf(instruction);
  }
  /// LL and LL128 messages order only what they carry; signals order everything before them.
  bool orders(const Connection &connection) const {
    return connection.isCounter || plan.protocol == Protocol::Simple;
  }

  const Plan &plan;
  const Network &network;
  std::vector<uint32_t> rankInOrder; // of each instruction: when it ran
  std::vector<uint32_t> reached;     // of each thread block: that many instructions lead to `later`
  std::vector<uint32_t> touched;     // thread blocks with reached != 0
  std::vector<Reached> found;
  std::vector<Stretch> open;
  uint64_t budget;
};

/// Clocks of one rank's thread blocks, advanced instruction by instruction in an order of
/// execution.
class RankClocks {
public:
  RankClocks(const Network &network, PathSearch &search);

  /// Starts over, for a rank.
  void begin(uint32_t rank);
  /// `instruction`, of that rank, runs next: its dependencies are complete.
  void enter(uint32_t instruction);
  /// Whether `earlier` (which ran before, on the same rank) is complete for sure when the entered
  /// instruction runs.
  bool isOrdered(uint32_t earlier, uint32_t entered);
  /// The entered instruction is complete.
  void leave(uint32_t instruction);

private:
  uint32_t *clockOf(uint32_t block) { return &clocks[size_t{block - firstBlock} * numBlocks]; }
  void raise(uint32_t &to, uint32_t value) { to = to < value ? value : to; }

  const Plan &plan;
  const Network &network;
  PathSearch &search;
  uint64_t joinBudget;
  std::vector<bool> isTarget; // of each instruction: others depend on it
  uint32_t firstBlock = 0, numBlocks = 0;
  /// For each thread block a row: how many instructions of each thread block are complete for sure.
  std::vector<uint32_t> clocks;
  std::vector<uint32_t> saved; // rows of completed targets
  std::vector<uint32_t>
      savedRow; // of each instruction of the rank: its row's number in `saved`, or kNone
  uint32_t firstInstruction = 0;
};

} // namespace occl::plan::verify
