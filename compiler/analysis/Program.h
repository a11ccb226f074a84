// An inst.program as plain data: what analyses ask about and passes transform. ProgramIO.h moves it
// out of and into IR.
#pragma once

#include "compiler/analysis/StepWeights.h"
#include "compiler/dialect/inst/Connections.h"
#include "compiler/dialect/inst/Step.h"
#include "support/parallel.h"

#include "llvm/ADT/STLExtras.h"

#include <cstdint>
#include <vector>

namespace occl::analysis {

using inst::Step;

/// What one rank has; sizes in chunks. The order of the steps is a valid order of execution.
struct Rank {
  uint32_t inputChunks = 0;
  uint32_t outputChunks = 0;
  uint32_t scratchChunks = 0;
  int32_t inPlaceOffset = 0;
  inst::Steps steps;
};

struct Program {
  std::vector<Rank> ranks;
  uint32_t partChunks = 1;
  /// Whether the program must work out of place, and in place.
  bool outOfPlace = true;
  bool inPlace = true;
  bool uniformChunks = false;
  uint32_t depth = 2;
  /// Of transfers that name no channel.
  uint32_t defaultChannel = 0;
  /// Transfers have identifiers below this.
  uint32_t numTransfers = 0;
  std::vector<inst::Connection> connections;
  /// What choosing among schedules goes by; not part of IR.
  StepWeights weights;
};

/// Instructions of all ranks.
inline size_t numSteps(const Program &program) {
  size_t number = 0;
  for (const Rank &rank : program.ranks)
    number += rank.steps.size();
  return number;
}

/// Calls fn(r) for the number of each rank, of several at a time (support/parallel.h): what it does
/// with one must not touch what it writes with another.
template <typename Function> void forEachRankAtOnce(const Program &program, Function fn) {
  support::parallelFor(program.ranks.size(), numSteps(program),
                       [&](size_t r) { fn(static_cast<uint32_t>(r)); });
}

/// Calls fn(step's place) for each source and destination that is a message.
template <typename Places, typename Function> void forEachMessage(Places &places, Function fn) {
  for (auto &place : places)
    if (!place.isLocal())
      fn(place);
}

/// Whether a place is a transfer: numTransfers may be above 0 without one.
inline bool hasTransfers(const Program &program) {
  if (program.numTransfers == 0)
    // After passes have merged transfers away there may be none left though the numbers go on.
    return false;
  auto isTransfer = [](const inst::Place &place) {
    return place.kind == inst::PlaceKind::Transfer;
  };
  for (const Rank &rank : program.ranks)
    for (const Step &step : rank.steps)
      if (llvm::any_of(step.instruction.sources, isTransfer) ||
          llvm::any_of(step.instruction.destinations, isTransfer))
        return true;
  return false;
}

/// Removes the steps whose flag is set. `erased` has a flag for each step of the rank.
inline void eraseSteps(Rank &rank, const std::vector<bool> &erased) {
  // Moves each step at most once: programs have millions of them.
  size_t kept = 0;
  for (size_t i = 0; i < rank.steps.size(); ++i)
    if (!erased[i]) {
      if (kept != i)
        rank.steps[kept] = std::move(rank.steps[i]);
      ++kept;
    }
  rank.steps.resize(kept);
}

} // namespace occl::analysis
