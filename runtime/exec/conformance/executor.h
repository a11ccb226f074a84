// What executes one thread block of a simulation as a device does, in one of its ways.
#pragma once

#include "runtime/exec/conformance/simulation.h"
#include "runtime/exec/step/ready_tables.h"
#include "runtime/exec/step/step.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::interpreter::conformance {

/// A thread block of some rank.
template <class Target> class Executor {
public:
  /// `wanted`: when its steps are made ready, unless its tables need PerStep; `measures`: they are
  /// measured beforehand.
  Executor(Simulation &simulation, uint32_t rank, uint32_t index, Target &target,
           Resolution wanted = Resolution::PerTile, bool measures = false)
      : context(simulation.context(rank, index)),
        tables(makeReadyTables(*simulation.invocation(rank).program, index)),
        when(tables.isPerStep ? Resolution::PerStep : wanted) {
    const Invocation &invocation = simulation.invocation(rank);
    const Program &program = *invocation.program;
    const bool isMeasured = measures && measureBeforehand(program, 1, 0, tables);
    words.resize(tables.sources.size() + secondRoomBytes(tables.view()) / sizeof(ReadyWord) + 1);
    auto make = [&](auto &block) {
      block.emplace(invocation, program, tables.view(), words.data(), target, isMeasured);
    };
    if (when == Resolution::Overlapped)
      overlapped.emplace(invocation, program, tables.view(), words.data(), target);
    else if (when == Resolution::PerStep)
      make(perStep);
    else
      make(perTile);
  }
  Resolution resolution() const { return when; }
  StepResult run(uint32_t maxSteps) {
    if (overlapped)
      return overlapped->run(context, maxSteps);
    return perStep ? perStep->run(context, maxSteps) : perTile->run(context, maxSteps);
  }

private:
  BlockContext &context;
  ReadyBlockTables tables;
  const Resolution when;
  std::vector<ReadyWord> words;
  std::optional<ReadyBlock<Target>> perTile;
  std::optional<ReadyBlock<Target, Resolution::Overlapped>> overlapped;
  std::optional<ReadyBlock<Target, Resolution::PerStep>> perStep;
};

} // namespace occl::interpreter::conformance
