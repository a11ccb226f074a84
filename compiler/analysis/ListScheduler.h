// Executes a program's steps at a given depth of its connections, the most urgent ones first. What
// comes out is an order of each rank's steps that cannot deadlock at that depth, or the steps that
// are stuck.
#pragma once

#include "compiler/analysis/StepGraph.h"

namespace occl::analysis {

/// Whether somebody wants to know when a schedule's steps end.
enum class Timing : uint8_t { Predicted, Unasked };

struct Schedule {
  /// For each rank, its steps in the order of execution; all of them if `complete`.
  std::vector<std::vector<uint32_t>> order;
  bool complete = false;
  /// If asked: when the last step ends if each thread block runs its steps in this order as early
  /// as it can, and each takes durationOf (StepGraph.h).
  uint64_t makespan = 0;
  /// If asked: the longest time from the first step of a thread block to its last: the next tile of
  /// the data begins that much later.
  uint64_t interval = 0;
  /// If not complete: global steps that only wait for a message or for room on a connection.
  std::vector<uint32_t> stuck;

  /// How long kTypicalTiles (StepWeights.h) take; less is better.
  uint64_t duration() const { return makespan + (kTypicalTiles - 1) * interval; }
};

/// Runs in rounds: each thread block of each rank runs at most one step a round, the one with the
/// greatest height among those that can run, the first in the rank's order among equals. Steps
/// without a thread block count as of block 0. A step that receives runs when its messages are the
/// next of their connections. Where the graph lets messages change their order the choice of what
/// to send can get a program stuck; where they keep it, an enabled step stays enabled until it
/// runs, so that one execution proves whether there is any.
///
/// The graph is consistent and of this program; `heights` are the graph's, or empty for no
/// preference.
Schedule schedule(const Program &program, const Network &network, const StepGraph &graph,
                  uint32_t depth, llvm::ArrayRef<uint32_t> heights,
                  Timing timing = Timing::Predicted);

/// Whether the program, whose network is this, completes with connections of `depth` messages that
/// keep their order; if it does not, `stuck`, if not null, receives the steps that cannot run (none
/// if the order of messages differs between the ends of a connection).
bool completes(const Program &program, const Network &network, uint32_t depth,
               std::vector<uint32_t> *stuck = nullptr);
bool completes(const Program &program, uint32_t depth, std::vector<uint32_t> *stuck = nullptr);

} // namespace occl::analysis
