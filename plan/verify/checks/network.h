// Indices over a plan of good shape that the proofs share: who owns which end of a connection,
// which instruction sends and receives which message.
#pragma once

#include "plan/verify/checks/finding.h"

#include <vector>

namespace occl::plan::verify {

inline constexpr uint32_t kNone = ~0u;

/// The chunks of one of a rank's buffers; 0 for connections.
constexpr uint32_t sizeOf(const RankPlan &rank, OperandKind kind) {
  switch (kind) {
  case OperandKind::Input:
    return rank.inputChunks;
  case OperandKind::Output:
    return rank.outputChunks;
  case OperandKind::Scratch:
    return rank.scratchChunks;
  case OperandKind::Connection:
    return 0;
  }
  return 0;
}

/// Whether whoever receives knows of everything before what was sent, not of the data alone.
constexpr bool orders(const Connection &connection) {
  return connection.isOrdered || connection.isCounter;
}

/// The receiving end of `connection` at `rank`, an index in Plan::destinations; kNone if there is
/// none.
uint32_t endpointOf(const Plan &plan, const Connection &connection, uint32_t rank);

/// "Thread block" means an index in Plan::threadBlocks here, "instruction" one in
/// Plan::instructions.
struct Network {
  explicit Network(const Plan &plan) : plan(plan) {}

  const Plan &plan;
  std::vector<uint32_t> rankOfBlock;
  std::vector<uint32_t> blockOf; // of each instruction
  /// Of each operand that is a connection: which message of the connection it is, from 0. Signals
  /// are the messages of a counter; a wait names the last one that it waits for.
  std::vector<uint32_t> ordinal;
  /// The messages of connection c are sent by sends[firstSend[c] .. firstSend[c + 1]).
  std::vector<uint32_t> firstSend;
  std::vector<uint32_t> sends;
  std::vector<uint32_t> sender;   // of each connection: the thread block that sends, or kNone
  std::vector<uint32_t> receiver; // of each receiving end: the thread block that receives, or kNone

  uint32_t numMessages(uint32_t connection) const {
    return firstSend[connection + 1] - firstSend[connection];
  }
  uint32_t rankOf(uint32_t instruction) const { return rankOfBlock[blockOf[instruction]]; }
  uint32_t positionOf(uint32_t instruction) const {
    return instruction - plan.threadBlocks[blockOf[instruction]].firstInstruction;
  }
  /// The instruction that sends what a source, a connection, receives.
  uint32_t sendOf(uint32_t operand) const {
    return sends[firstSend[plan.operands[operand].index] + ordinal[operand]];
  }
  /// The index of the instruction at a place, which must exist.
  uint32_t at(const Place &place) const {
    uint32_t block = plan.ranks[place.rank].firstThreadBlock + place.threadBlock;
    return plan.threadBlocks[block].firstInstruction + place.instruction;
  }
  /// Dependency's instruction, an index in Plan::instructions, for an instruction of `rank`.
  uint32_t target(uint32_t rank, const Dependency &dependency) const {
    return at({rank, dependency.threadBlock, dependency.instruction});
  }
};

/// Proof 2: every end of a connection belongs to one thread block, every destination receives all
/// messages of a connection, each with the count and extent that it was sent with, and nobody waits
/// for more signals than are given. Fills `network`; expects a plan of good shape.
Finding checkMatching(Network &network);

} // namespace occl::plan::verify
