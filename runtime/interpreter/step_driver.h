// The resumable driver of hosts: polls a step of a StepTable, executes it, publishes it, goes on
// with the next one, and returns when one is blocked. It can be left between any two steps, and
// another driver begins where it stood.
//
// A step is a transaction as in step.h: nothing is stored before all lines of all its instructions
// have arrived.
#pragma once

#include "runtime/interpreter/step.h"
#include "runtime/interpreter/step_table.h"
#include "runtime/interpreter/target_host.h"

#include <cstdint>

namespace occl::interpreter {

/// One invocation's way through a thread block. Used by who has claimed the thread block.
class StepDriver {
public:
  /// From `context` on. The target is not used for anything else meanwhile.
  StepDriver(const StepTable &table, const Invocation &invocation, const BlockContext &context,
             HostTarget &target);

  /// Does what can be done of the block, or so much of it that at least `maxSlices` instructions
  /// are done: then Progressed. Doorbells are not rung yet.
  StepStatus advance(uint32_t maxSlices = ~0u);
  /// Rings those who may sleep until one of the steps done since the last call, after a fence.
  /// Whether there were such steps.
  bool ring();
  /// Where it stands.
  BlockContext context() const;
  /// What it has found missing, once blocked.
  const Obstacle &obstacle() const { return missing; }
  /// Instructions done.
  uint32_t slices() const { return numDone; }

private:
  bool arrived();
  bool areAnnounced();
  void execute();
  void copy(const StepTable::Member &member, const StepTable::Operand *operands);
  void reduce(const StepTable::Member &member, const StepTable::Operand *operands);
  char *placeOf(Place place) const { return HostTarget::acquire(invocation.places + place); }
  char *addressOf(const StepTable::Operand &which) const {
    return placeOf(which.place) + which.offset;
  }
  bool lacks(BlockReason reason, uint32_t what, uint32_t peer) {
    missing = {reason, what, peer};
    return false;
  }

  const StepTable &table;
  const Invocation &invocation;
  HostTarget &target;
  const StepTable::Step *step, *const end;
  uint32_t numArrived = 0; // of the step's sources in lines
  const uint32_t *toRing, *rungTo;
  uint32_t numDone = 0, numSeen = 0;
  Obstacle missing;
};

/// As runBlock(), for a host's thread block that is executed by a table if it has one. Several
/// instructions of a step each count as a slice: so there may be more of these than `maxSlices`, by
/// fewer than kMaxStepInstructions.
StepResult runOnHost(const Invocation &invocation, uint32_t block, const StepTable *table,
                     BlockContext &context, HostTarget &target, uint32_t maxSlices);

/// Of the step that begins at `instruction` of a thread block, the instruction that waits for
/// `obstacle`: reports name it.
uint32_t waitingInstruction(const Program &program, uint32_t block, uint32_t instruction,
                            const Obstacle &obstacle);

} // namespace occl::interpreter
