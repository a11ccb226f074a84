// Executes a program's steps at a given depth of its connections, the most urgent ones first. What
// comes out is an order of each rank's steps that cannot deadlock at that depth, or the steps that
// are stuck.
//
// Confluence makes one execution a proof: a step that may run stays so until it runs, so whether
// all steps can run does not depend on choices, priorities or thread blocks.
#pragma once

#include "compiler/analysis/StepGraph.h"

namespace occl::analysis {

struct Schedule {
  /// For each rank, its steps in the order of execution; all of them if stuck is empty.
  std::vector<std::vector<uint32_t>> order;
  /// Global steps that only wait for a message or for room on a connection.
  std::vector<uint32_t> stuck;
};

/// Runs in rounds: each thread block of each rank runs at most one step a round, the one with the
/// greatest height among those that can run, the first in the rank's order among equals. Steps
/// without a thread block count as of block 0. The graph is consistent and of this program.
Schedule schedule(const Program &program, const Network &network, const StepGraph &graph,
                  uint32_t depth, llvm::ArrayRef<uint32_t> heights);

/// Whether the program completes with connections of `depth` messages; `stuck`, if not null,
/// receives the steps that cannot run (none if the reason is a cycle or inconsistent order).
bool completes(const Program &program, uint32_t depth, std::vector<uint32_t> *stuck = nullptr);

} // namespace occl::analysis
