#include "compiler/cost/StepCosts.h"

namespace occl::cost {

Picoseconds durationOf(uint64_t bytes, BytesPerSecond bandwidth) {
  if (bandwidth == 0)
    return 0;
  constexpr double kPerSecond = static_cast<double>(topology::kSecond);
  return static_cast<Picoseconds>(
      static_cast<double>(bytes) / static_cast<double>(bandwidth) * kPerSecond + 0.5);
}

OperandCounts countOperands(const plan::Plan &plan, const plan::Instruction &instruction,
                            uint32_t rank) {
  OperandCounts counts;
  for (const plan::Operand &operand : plan.sourcesOf(instruction)) {
    bool isMessage = operand.kind == plan::OperandKind::Connection;
    ++(isMessage              ? counts.messageSources
       : operand.rank == rank ? counts.localSources
                              : counts.peerSources);
  }
  for (const plan::Operand &operand : plan.destinationsOf(instruction)) {
    bool isMessage = operand.kind == plan::OperandKind::Connection;
    ++(isMessage              ? counts.messageDestinations
       : operand.rank == rank ? counts.localDestinations
                              : counts.peerDestinations);
    if (isMessage)
      counts.receivers += plan.connections[operand.index].numDestinations;
  }
  return counts;
}

StepCosts::StepCosts(const topology::Costs &costs, plan::Protocol protocol)
    : costs(costs), protocol(costs.of(protocol)) {}

uint64_t StepCosts::wireBytes(uint64_t bytes) const {
  return static_cast<uint64_t>(static_cast<double>(bytes) * protocol.wireBytesPerThousand / 1000);
}

Picoseconds StepCosts::busy(const OperandCounts &operands, uint64_t bytes) const {
  uint64_t wire = wireBytes(bytes);
  uint64_t read = bytes * operands.localSources, write = bytes * operands.localDestinations;
  uint64_t push = bytes * operands.peerDestinations, pull = bytes * operands.peerSources;
  if (costs.fetched) {
    pull += wire * operands.messageSources;
    write += wire * operands.messageDestinations;
  } else {
    read += wire * operands.messageSources;
    push += wire * operands.receivers;
  }
  return costs.instruction * costs.slices + durationOf(read, costs.read) +
         durationOf(write, costs.write) + durationOf(push, costs.push) +
         durationOf(pull, costs.pull);
}

uint64_t StepCosts::memoryBytes(const OperandCounts &operands, uint64_t bytes) const {
  uint64_t messages =
      operands.messageSources + (costs.fetched ? operands.messageDestinations : operands.receivers);
  return bytes * (operands.localSources + operands.localDestinations) + wireBytes(bytes) * messages;
}

} // namespace occl::cost
