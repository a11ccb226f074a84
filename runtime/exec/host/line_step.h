// Several instructions in lines as one step, on hosts: their operands are looked at once, and what
// is copied goes straight from where it lies to where it belongs.
//
// The same transaction as step.h's: nothing is stored before all lines of all instructions have
// arrived. For instructions with isPlainLines(), of which bind() makes steps with
// BindRequest::hostLineSteps.
#pragma once

#include "runtime/exec/host/target_host.h"
#include "runtime/exec/step/plain_lines.h"
#include "runtime/exec/step/step.h"

#include <cstdint>
#include <cstring>
#include <span>

namespace occl::interpreter {

/// Used by the executor that has claimed the thread block, for one look.
class LineStep {
public:
  /// `leader`: the step's first instruction.
  LineStep(const Invocation &invocation, const BoundInstruction &leader, HostTarget &target)
      : invocation(invocation), program(*invocation.program),
        members(&leader, leader.numInstructions), target(target) {}

  /// The whole transaction.
  StepResult run(const BoundBlock &block, BlockContext &context) {
    const Obstacle missing = poll();
    if (missing.reason != BlockReason::None)
      return {StepStatus::Blocked, missing, 0};
    for (const BoundInstruction &member : members)
      isCopy(member) ? copy(member) : reduce(member);
    ring();
    context.instruction += static_cast<uint32_t>(members.size());
    if (context.instruction == block.numInstructions) {
      context.instruction = 0;
      ++context.tile;
    }
    return {StepStatus::Progressed, {}, static_cast<uint32_t>(members.size())};
  }

private:
  /// The first thing that is missing: an announcement or lines.
  Obstacle poll() const {
    for (const BoundNeed &need :
         std::span(program.needs + members[0].firstNeed, members[0].numNeeds))
      if (place(need.place) == nullptr)
        return {BlockReason::Announce, need.connection, need.peer};
    for (const BoundInstruction &member : members)
      for (const BoundOperand &source : sourcesOf(member))
        if (isInLines(source) && !HostTarget::linesArrived(program.line, address(source),
                                                           bytesOf(member), flag(source))) {
          const ConnectionEnd &end = program.ends[source.end];
          return {BlockReason::Data, end.connection, program.peers[end.firstPeer]};
        }
    return {};
  }

  char *place(Place which) const { return HostTarget::acquire(invocation.places + which); }
  static bool isInLines(const BoundOperand &operand) { return operand.slotBytes != 0; }
  char *address(const BoundOperand &operand) const {
    const uint64_t slot = (operand.message & (program.depth - 1)) * program.slicesPerMessage;
    return place(operand.place) + operand.offset + slot * operand.slotBytes;
  }
  uint64_t flag(const BoundOperand &operand) const {
    return invocation.flagBase + (uint64_t{operand.message} + 1) * program.slicesPerMessage;
  }
  uint64_t bytesOf(const BoundInstruction &member) const {
    return member.elements * program.elementBytes;
  }
  std::span<const BoundOperand> sourcesOf(const BoundInstruction &member) const {
    return {program.operands + member.firstOperand, member.numSources};
  }
  std::span<const BoundOperand> destinationsOf(const BoundInstruction &member) const {
    return {program.operands + member.firstOperand + member.numSources, member.numDestinations};
  }

  /// Of nothing there may be no buffer.
  static bool isCopy(const BoundInstruction &member) {
    return member.numSources == 1 && !member.divides && member.elements != 0;
  }

  void copy(const BoundInstruction &member) {
    const BoundOperand &source = sourcesOf(member)[0];
    const uint64_t bytes = bytesOf(member);
    const char *from = address(source);
    if (isInLines(source)) {
      const BoundOperand &first = destinationsOf(member)[0];
      char *to = isInLines(first) ? target.stage() : address(first);
      HostTarget::unpackLines(program.line, from, to, bytes);
      from = to;
    }
    for (const BoundOperand &destination : destinationsOf(member)) {
      char *to = address(destination);
      if (isInLines(destination))
        HostTarget::packLines(program.line, from, to, bytes, flag(destination));
      else if (to != from)
        std::memcpy(to, from, bytes);
    }
  }

  void reduce(const BoundInstruction &member) {
    const uint32_t numOperands = uint32_t(member.numSources) + member.numDestinations;
    const BoundOperand *operands = program.operands + member.firstOperand;
    const uint64_t bytes = bytesOf(member);
    char **pointers = target.pointers();
    for (uint32_t i = 0; i < numOperands; ++i) {
      pointers[i] = address(operands[i]);
      if (!isInLines(operands[i]))
        continue;
      char *stage = target.stage() + i * program.stageStride;
      if (i < member.numSources)
        HostTarget::unpackLines(program.line, pointers[i], stage, bytes);
      pointers[i] = stage;
    }
    target.fold(program, member.numSources, member.numDestinations, member.elements,
                member.divides ? program.numRanks : 1);
    for (uint32_t i = member.numSources; i < numOperands; ++i)
      if (isInLines(operands[i]))
        HostTarget::packLines(program.line, pointers[i], address(operands[i]), bytes,
                              flag(operands[i]));
  }

  void ring() {
    if (invocation.doorbells == nullptr || members[0].numReleases == 0)
      return;
    target.fenceBeforeRings();
    for (const BoundRelease &release :
         std::span(program.releases + members[0].firstRelease, members[0].numReleases))
      for (uint32_t p = 0; p < release.numPeers; ++p)
        target.ring(invocation.doorbells[program.peers[release.firstPeer + p]]);
  }

  const Invocation &invocation;
  const Program &program;
  const std::span<const BoundInstruction> members;
  HostTarget &target;
};

/// As runBlock(), for programs with such steps as well, whose instructions each count as a slice:
/// so there may be more of these than `maxSlices`, by fewer than kMaxStepInstructions.
inline StepResult runOnHost(const Invocation &invocation, uint32_t block, BlockContext &context,
                            HostTarget &target, uint32_t maxSlices) {
  const Program &program = *invocation.program;
  const BoundBlock &bound = program.blocks[block];
  if (program.line.bytes == 0 || bound.numInstructions == 0)
    return runBlock(invocation, block, context, target, maxSlices);
  StepResult result;
  for (uint32_t slices = 0;;) {
    if (slices < maxSlices) {
      const BoundInstruction &next =
          program.instructions[bound.firstInstruction + context.instruction];
      if (context.tile != program.numTiles && isPlainLines(program, next))
        result = LineStep(invocation, next, target).run(bound, context);
      else
        result = runBlock(invocation, block, context, target, 1);
      slices += result.slices;
    }
    if (slices >= maxSlices || result.status != StepStatus::Progressed) {
      result.slices = slices;
      return result;
    }
  }
}

/// Of the step that begins at `instruction` of a thread block, the instruction that waits for
/// `obstacle`: reports name it.
inline uint32_t waitingInstruction(const Program &program, uint32_t block, uint32_t instruction,
                                   const Obstacle &obstacle) {
  const BoundInstruction *step =
      &program.instructions[program.blocks[block].firstInstruction + instruction];
  for (uint32_t i = 0; i < step->numInstructions && step->numInstructions > 1; ++i)
    for (const BoundOperand &source :
         std::span(program.operands + step[i].firstOperand, step[i].numSources))
      if (source.slotBytes != 0 && program.ends[source.end].connection == obstacle.what)
        return instruction + i;
  return instruction;
}

} // namespace occl::interpreter
