// What executes one thread block of a simulation: steps made ready (ready.h) where they can be,
// else steps as step.h has them.
#pragma once

#include "runtime/exec/conformance/simulation.h"
#include "runtime/exec/step/ready_tables.h"
#include "runtime/exec/step/step.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::interpreter::conformance {

/// A thread block of some rank; made ready if it can be.
template <class Target> class Executor {
public:
  /// `overlaps`: steps that are made ready do; `measures`: they are measured beforehand;
  /// `mayBeReady`: else each is as step.h has it.
  Executor(Simulation &simulation, uint32_t rank, uint32_t index, Target &target,
           bool overlaps = false, bool measures = false, bool mayBeReady = true)
      : invocation(simulation.invocation(rank)), context(simulation.context(rank, index)),
        index(index), target(target) {
    const Program &program = *invocation.program;
    if (!mayBeReady || !isReadyForm(program, program.blocks[index]))
      return;
    tables = makeReadyTables(program, index);
    const bool isMeasured = measures && measureBeforehand(program, 1, 0, tables);
    words.resize(tables.sources.size() + secondRoomBytes(tables.view()) / sizeof(ReadyWord) + 1);
    if (overlaps)
      overlapping.emplace(invocation, program, tables.view(), words.data(), target);
    else
      block.emplace(invocation, program, tables.view(), words.data(), target, isMeasured);
  }
  bool isReady() const { return block.has_value() || overlapping.has_value(); }
  StepResult run(uint32_t maxSteps) {
    if (overlapping)
      return overlapping->run(context, maxSteps);
    return block ? block->run(context, maxSteps)
                 : runBlock(invocation, index, context, target, maxSteps);
  }

private:
  const Invocation &invocation;
  BlockContext &context;
  const uint32_t index;
  Target &target;
  ReadyBlockTables tables;
  std::vector<ReadyWord> words;
  std::optional<ReadyBlock<Target>> block;
  std::optional<ReadyBlock<Target, true>> overlapping;
};

} // namespace occl::interpreter::conformance
