#include "runtime/interpreter/step_driver.h"

#include "runtime/base/atomic.h"
#include "runtime/base/cache_line.h"
#include "runtime/base/doorbell.h"
#include "runtime/interpreter/lines_host.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace occl::interpreter {

StepDriver::StepDriver(const StepTable &table, const Invocation &invocation,
                       const BlockContext &context, HostTarget &target)
    : table(table), invocation(invocation), target(target),
      step(table.steps.data() + (context.tile != 0 ? table.steps.size() : context.instruction)),
      end(table.steps.data() + table.steps.size()), toRing(table.rung.data()) {
  if (step != end)
    toRing += step->firstRung;
  rungTo = toRing;
}

StepStatus StepDriver::advance(uint32_t maxSlices) {
  for (;;) {
    if (numDone >= maxSlices)
      return StepStatus::Progressed;
    if (step == end)
      return StepStatus::Finished;
    if (!arrived())
      return StepStatus::Blocked;
    execute();
    numArrived = 0;
    numDone += step->numMembers;
    rungTo += step->numRung;
    step += step->numMembers;
  }
}

/// Lines that have been there once are there until the step is done.
bool StepDriver::arrived() {
  if (step->numNeeds != 0 && !areAnnounced())
    return false;
  const StepTable::Polled *polled = table.polled.data() + step->firstPolled + numArrived;
  for (; numArrived < step->numPolled; ++numArrived, ++polled) {
    const char *base = placeOf(polled->place);
    if (base == nullptr || !lines::arrived(table.line, base + polled->offset, polled->bytes,
                                           invocation.flagBase + polled->flag))
      return lacks(base == nullptr ? BlockReason::Announce : BlockReason::Data, polled->connection,
                   polled->peer);
  }
  return true;
}

bool StepDriver::areAnnounced() {
  for (const BoundNeed &need : std::span(table.needs.data() + step->firstNeed, step->numNeeds))
    if (placeOf(need.place) == nullptr)
      return lacks(BlockReason::Announce, need.connection, need.peer);
  return true;
}

void StepDriver::execute() {
  const StepTable::Operand *operands = table.operands.data() + step->firstOperand;
  const StepTable::Member *member = table.members.data() + (step - table.steps.data());
  for (const StepTable::Member *last = member + step->numMembers; member != last; ++member) {
    member->fold ? reduce(*member, operands) : copy(*member, operands);
    operands += member->numSources + member->numDestinations;
  }
}

/// What is only copied goes straight from where it lies to where it belongs.
void StepDriver::copy(const StepTable::Member &member, const StepTable::Operand *operands) {
  const uint64_t bytes = member.bytes;
  const char *from = addressOf(operands[0]);
  if (operands[0].flag != 0) {
    char *to = operands[1].flag != 0 ? target.stage() : addressOf(operands[1]);
    lines::unpack(table.line, from, to, bytes);
    from = to;
  }
  for (const StepTable::Operand &destination : std::span(operands + 1, member.numDestinations)) {
    char *to = addressOf(destination);
    if (destination.flag != 0)
      lines::pack(table.line, from, to, bytes, invocation.flagBase + destination.flag);
    else if (to != from)
      std::memcpy(to, from, bytes);
  }
}

void StepDriver::reduce(const StepTable::Member &member, const StepTable::Operand *operands) {
  char **const pointers = target.pointers();
  const uint32_t numSources = member.numSources, numAll = numSources + member.numDestinations;
  const uint64_t bytes = member.bytes;
  const bool isPadded = member.isPadded;
  char *stage = target.stage();
  for (uint32_t i = 0; i < numAll; ++i, stage += member.stageBytes) {
    const StepTable::Operand &each = operands[i];
    char *const address = addressOf(each);
    const bool isStaged = isPadded || each.flag != 0;
    pointers[i] = isStaged ? stage : address;
    if (i >= numSources || !isStaged)
      continue;
    if (isPadded) // so that nothing is folded that somebody has left there
      std::memset(stage + member.stageBytes - kCacheLine, 0, kCacheLine);
    if (each.flag != 0)
      lines::unpack(table.line, address, stage, bytes);
    else
      std::memcpy(stage, address, bytes);
  }
  member.fold(pointers, numSources, member.numDestinations, member.elements, member.divisor);
  for (uint32_t i = numSources; i < numAll; ++i) {
    const StepTable::Operand &each = operands[i];
    if (each.flag != 0)
      lines::pack(table.line, pointers[i], addressOf(each), bytes, invocation.flagBase + each.flag);
    else if (isPadded)
      std::memcpy(addressOf(each), pointers[i], bytes);
  }
}

bool StepDriver::ring() {
  const bool hasMoved = numDone != numSeen;
  numSeen = numDone;
  if (toRing == rungTo || invocation.doorbells == nullptr)
    return hasMoved;
  threadFence(std::memory_order_seq_cst);
  for (; toRing != rungTo; ++toRing)
    if (Doorbell *bell = invocation.doorbells[*toRing])
      bell->ringFenced();
  return hasMoved;
}

BlockContext StepDriver::context() const {
  if (step == end)
    return {.tile = 1};
  return {.instruction = static_cast<uint32_t>(step - table.steps.data())};
}

StepResult runOnHost(const Invocation &invocation, uint32_t block, const StepTable *table,
                     BlockContext &context, HostTarget &target, uint32_t maxSlices) {
  if (!table)
    return runBlock(invocation, block, context, target, maxSlices);
  StepDriver driver(*table, invocation, context, target);
  StepResult result;
  result.status = driver.advance(maxSlices);
  driver.ring();
  result.slices = driver.slices();
  if (result.slices != 0)
    context = driver.context();
  result.obstacle = driver.obstacle();
  return result;
}

uint32_t waitingInstruction(const Program &program, uint32_t block, uint32_t instruction,
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
