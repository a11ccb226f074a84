#include "compiler/cost/StepCosts.h"

#include "plan/model/chunking_of.h"

#include <algorithm>
#include <bit>

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
  // Three kinds of sources and destinations, which cost differently: messages, own memory, memory
  // of peers.
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

namespace {

/// Whether there are messages, and each finds room on its connection whenever it is sent.
bool everyMessageHasRoom(const plan::Plan &plan) {
  // The runtime rounds the depth up to a power of two.
  const uint32_t depth = std::bit_ceil(std::max(plan.depth, 1u));
  std::vector<uint32_t> sent(plan.connections.size());
  bool hasRoom = true, isAny = false;
  // If a connection never carries more messages than it holds, no sender ever waits for a credit.
  for (const plan::Instruction &instruction : plan.instructions)
    for (const plan::Operand &operand : plan.destinationsOf(instruction))
      if (operand.kind == plan::OperandKind::Connection &&
          !plan.connections[operand.index].isCounter) {
        isAny = true;
        hasRoom &= ++sent[operand.index] <= depth;
      }
  return isAny && hasRoom;
}

bool hasMessages(const plan::Plan &plan) {
  return std::any_of(plan.connections.begin(), plan.connections.end(),
                     [](const plan::Connection &connection) { return !connection.isCounter; });
}

} // namespace

Execution executionOf(const plan::Plan &plan, const topology::Costs &costs, uint64_t bytes) {
  // Only LL and LL128 on GPUs are executed in flagged packets, and only if there are messages.
  if (plan.protocol == plan::Protocol::Simple || costs.lines.tileBytes == 0 || !hasMessages(plan))
    return Execution::Tiles;
  // The largest message decides: run-to-completion kernels take small ones in one go.
  uint64_t largest = 1;
  for (const plan::Instruction &instruction : plan.instructions)
    largest = std::max<uint64_t>(largest, instruction.count);
  const uint64_t chunk = plan::chunkingOf(plan, bytes, 1).maxSize();
  const uint64_t wire = StepCosts(costs, plan.protocol).wireBytes(largest * chunk);
  return wire <= costs.lines.straightBytes && everyMessageHasRoom(plan) ? Execution::StraightLines
                                                                        : Execution::Lines;
}

StepCosts::StepCosts(const topology::Costs &costs, plan::Protocol protocol, Execution execution)
    : costs(costs), protocol(costs.of(protocol)), execution(execution) {
  if (execution == Execution::StraightLines)
    this->costs.instruction = costs.lines.instruction;
}

uint64_t StepCosts::tileBytes() const {
  switch (execution) {
  case Execution::Tiles:
    return costs.tileBytes;
  case Execution::Lines:
    return costs.lines.tileBytes;
  case Execution::StraightLines:
    return uint64_t{1} << 40; // more than there is
  }
  return costs.tileBytes;
}

uint64_t StepCosts::wireBytes(uint64_t bytes) const {
  return static_cast<uint64_t>(static_cast<double>(bytes) * protocol.wireBytesPerThousand / 1000);
}

Picoseconds StepCosts::busy(const OperandCounts &operands, uint64_t bytes) const {
  // Bytes over the wire, bytes read and written in own memory, bytes pushed to and pulled from
  // peers: each has a bandwidth of its own.
  uint64_t wire = wireBytes(bytes);
  uint64_t read = bytes * operands.localSources, write = bytes * operands.localDestinations;
  uint64_t push = bytes * operands.peerDestinations, pull = bytes * operands.peerSources;
  Picoseconds lines = 0;
  // Hosts: a receiver copies out of the sender's memory, and the sender writes into its own.
  if (costs.fetched) {
    pull += wire * operands.messageSources;
    write += wire * operands.messageDestinations;
  } else if (execution != Execution::Tiles) {
    // GPUs with packets: senders and receivers go through flagged lines, whose speed is one number.
    lines =
        durationOf(wire * (operands.messageSources + operands.receivers), costs.lines.bandwidth);
  } else {
    // GPUs with tiles: a receiver reads from its own FIFO, a sender pushes to each receiver.
    read += wire * operands.messageSources;
    push += wire * operands.receivers;
  }
  // Each slice costs an overhead, the rest is bandwidth.
  return costs.instruction * costs.slices + durationOf(read, costs.read) +
         durationOf(write, costs.write) + durationOf(push, costs.push) +
         durationOf(pull, costs.pull) + lines;
}

uint64_t StepCosts::memoryBytes(const OperandCounts &operands, uint64_t bytes) const {
  uint64_t messages =
      operands.messageSources + (costs.fetched ? operands.messageDestinations : operands.receivers);
  return bytes * (operands.localSources + operands.localDestinations) + wireBytes(bytes) * messages;
}

} // namespace occl::cost
