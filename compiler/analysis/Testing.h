// Short spellings of programs, for unit tests.
#pragma once

#include "compiler/analysis/Program.h"

#include <initializer_list>

namespace occl::analysis::testing {

inline inst::Place input(uint32_t i) { return {inst::PlaceKind::Input, -1, i}; }
inline inst::Place output(uint32_t i) { return {inst::PlaceKind::Output, -1, i}; }
inline inst::Place scratch(uint32_t i) { return {inst::PlaceKind::Scratch, -1, i}; }
inline inst::Place transfer(uint32_t id, int16_t channel = -1) {
  return {inst::PlaceKind::Transfer, channel, id};
}

inline Step step(std::initializer_list<inst::Place> sources,
                 std::initializer_list<inst::Place> destinations, uint32_t count = 1) {
  Step result;
  result.instruction.sources = sources;
  result.instruction.destinations = destinations;
  result.instruction.count = count;
  return result;
}

/// A program of ranks with these steps; counts its transfers.
inline Program program(std::initializer_list<std::vector<Step>> ranks) {
  Program result;
  for (const std::vector<Step> &steps : ranks) {
    result.ranks.emplace_back().steps = steps;
    for (const Step &step : steps)
      forEachMessage(step.instruction.destinations, [&](const inst::Place &place) {
        result.numTransfers = std::max(result.numTransfers, place.index + 1);
      });
  }
  return result;
}

} // namespace occl::analysis::testing
