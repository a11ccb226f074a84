// When the next instruction of a thread block can begin.
#include "compiler/cost/Simulation.h"

#include <algorithm>

namespace occl::cost {

void Simulation::look(Block &block) {
  if (block.tile < simulatedTiles && isCertain(block))
    events.push({block.begin, indexOf(block), false});
}

bool Simulation::isCertain(Block &block) {
  // Three kinds of things to wait for, in the order of the instruction: messages, room for
  // messages, dependencies. As soon as one is not certain, the block has been noted there and is
  // woken.
  uint32_t index = nextOf(block);
  const plan::Instruction &instruction = plan.instructions[index];
  auto sources = plan.sourcesOf(instruction), destinations = plan.destinationsOf(instruction);
  auto dependencies = plan.dependenciesOf(instruction);
  // Goes on where the last look ended: what was certain then still is.
  for (; block.checked < sources.size(); ++block.checked)
    if (!checkSource(block, sources[block.checked], earlierOf(index, sources, block.checked)))
      return false;
  size_t numOperands = sources.size() + destinations.size();
  for (; block.checked < numOperands; ++block.checked) {
    size_t position = block.checked - sources.size();
    if (!checkDestination(block, destinations[position], earlierOf(index, destinations, position)))
      return false;
  }
  for (; block.checked < numOperands + dependencies.size(); ++block.checked)
    if (!checkDependency(block, dependencies[block.checked - numOperands]))
      return false;
  return true;
}

uint32_t Simulation::earlierOf(uint32_t instruction, std::span<const plan::Operand> operands,
                               size_t position) const {
  if (!repeatsConnection[instruction])
    return 0;
  auto isSame = [&](const plan::Operand &operand) { return operand == operands[position]; };
  return static_cast<uint32_t>(
      std::count_if(operands.begin(), operands.begin() + static_cast<ptrdiff_t>(position), isSame));
}

void Simulation::delayUntil(Block &block, Picoseconds time, Wait wait, uint32_t cause) {
  if (time <= block.begin)
    return;
  block.begin = time;
  block.wait = wait;
  block.cause = cause;
}

bool Simulation::checkSource(Block &block, const plan::Operand &operand, uint32_t earlier) {
  // What is in memory is there; what is unordered would be a race, and the plan is verified.
  if (operand.kind != plan::OperandKind::Connection)
    return true;
  if (plan.connections[operand.index].isCounter)
    return checkCounter(block, operand.index);
  // The message's number at this end: those received before, and those that the same instruction
  // receives in front of it.
  uint32_t destination = network.destinationOf(operand.index, block.rank);
  ConnectionEnd &end = network.receiverAt(destination);
  uint64_t number = end.count + earlier;
  if (network.senderOf(operand.index).count <= number) {
    // Not sent yet, so its time is not known: the sender wakes the block.
    end.waiting = indexOf(block);
    return false;
  }
  // The time is known as soon as the sender has begun: first and last slice arrive one latency
  // after they leave.
  const Message &message = network.message(operand.index, number);
  Picoseconds latency = costs.messageLatency(network.latencyTo(destination));
  delayUntil(block, message.first + latency, Wait::Message, message.sender);
  block.lastSlice = std::max(block.lastSlice, message.last + latency);
  return true;
}

bool Simulation::checkCounter(Block &block, uint32_t connection) {
  // A wait for 0 is none.
  uint64_t wanted = plan.instructions[nextOf(block)].value;
  if (wanted == 0)
    return true;
  const std::vector<Signal> &signals = network.signalsOf(connection);
  uint32_t destination = network.destinationOf(connection, block.rank);
  // Signals are counted on over all tiles, so the number wanted grows with the tile.
  uint64_t number = block.tile * network.signalsPerTile(connection) + wanted;
  // The last signal that it waits for has not been given.
  if (signals.size() < number) {
    network.receiverAt(destination).waiting = indexOf(block);
    return false;
  }
  const Signal &signal = signals[number - 1];
  delayUntil(block, signal.time + costs.messageLatency(network.latencyTo(destination)),
             Wait::Signal, signal.sender);
  return true;
}

bool Simulation::checkDestination(Block &block, const plan::Operand &operand, uint32_t earlier) {
  // Buffers have room; a signal overwrites a number and never waits.
  if (operand.kind != plan::OperandKind::Connection || plan.connections[operand.index].isCounter)
    return true;
  ConnectionEnd &end = network.senderOf(operand.index);
  uint64_t number = end.count + earlier;
  // The first messages find the FIFO empty.
  if (number < network.capacity())
    return true;
  const Message &before = network.message(operand.index, number);
  // Its place is taken by the message `capacity` before it, until the last receiver has consumed
  // that.
  if (before.consumers < plan.connections[operand.index].numDestinations) {
    end.waiting = indexOf(block);
    return false;
  }
  delayUntil(block, before.consumed, Wait::Credit, before.consumer);
  return true;
}

bool Simulation::checkDependency(Block &block, const plan::Dependency &dependency) {
  // The instruction depended upon is counted over all tiles of its thread block.
  const plan::RankPlan &rank = plan.ranks[block.rank];
  uint32_t index = rank.firstThreadBlock + dependency.threadBlock;
  const plan::ThreadBlock &other = plan.threadBlocks[index];
  uint64_t needed = block.tile * other.numInstructions + dependency.instruction + 1;
  Block &awaited = blocks[index];
  // A heap by number: when the other block advances, those that wait for the least are woken first.
  if (awaited.begun < needed) {
    awaited.dependents.emplace_back(needed, indexOf(block));
    std::push_heap(awaited.dependents.begin(), awaited.dependents.end(), std::greater<>());
    return false;
  }
  uint32_t instruction = other.firstInstruction + dependency.instruction;
  bool isThisTile = awaited.begun < needed + other.numInstructions;
  if (isThisTile) // a later tile of it would have begun after this one had ended
    delayUntil(block, endOf[instruction] + topology.costs.dependency, Wait::Dependency,
               instruction);
  return true;
}

} // namespace occl::cost
