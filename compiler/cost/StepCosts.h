// What one instruction costs by itself: the weights for schedulers, and the arithmetic of the
// simulation (Predict.h).
#pragma once

#include "compiler/topology/Topology.h"
#include "plan/model/plan.h"

namespace occl::cost {

using topology::BytesPerSecond;
using topology::Picoseconds;

/// How long `bytes` take at a bandwidth; nothing where it is unbounded.
Picoseconds durationOf(uint64_t bytes, BytesPerSecond bandwidth);

/// How many operands of each kind an instruction has.
struct OperandCounts {
  uint32_t localSources = 0;
  uint32_t messageSources = 0;
  uint32_t localDestinations = 0;
  uint32_t messageDestinations = 0; // connections
  uint32_t receivers = 0;           // ranks at the other ends of those connections, summed
  uint32_t peerSources = 0;         // buffers of other ranks, accessed directly
  uint32_t peerDestinations = 0;
};

/// The counts of an instruction of `rank`. The plan's indices must be in range.
OperandCounts countOperands(const plan::Plan &plan, const plan::Instruction &instruction,
                            uint32_t rank);

/// How a runtime executes a plan: tile by tile, or, of messages in lines (LL and LL128) that are
/// small, each thread block straight through (topology::LineCosts).
enum class Execution : uint8_t { Tiles, Lines, StraightLines };

/// Of a plan for parts of so many bytes.
Execution executionOf(const plan::Plan &plan, const topology::Costs &costs, uint64_t bytes);

class StepCosts {
public:
  StepCosts(const topology::Costs &costs, plan::Protocol protocol,
            Execution execution = Execution::Tiles);

  /// How long a thread block of its own works on an instruction that moves `bytes` an operand, if
  /// nothing is to be waited for.
  Picoseconds busy(const OperandCounts &operands, uint64_t bytes) const;
  /// From the end of an instruction that sends until an instruction that receives can begin, on a
  /// way of this latency.
  Picoseconds messageLatency(Picoseconds wayLatency) const { return wayLatency + protocol.latency; }
  /// Bytes that a message of `bytes` puts on the wire.
  uint64_t wireBytes(uint64_t bytes) const;
  /// Bytes of the own node's memory that an instruction touches.
  uint64_t memoryBytes(const OperandCounts &operands, uint64_t bytes) const;
  /// The largest message of a tile has about so many bytes.
  uint64_t tileBytes() const;

private:
  topology::Costs costs;
  topology::ProtocolCosts protocol;
  Execution execution;
};

} // namespace occl::cost
