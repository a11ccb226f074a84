// A program as the abstract machine runs it (plan/machine): each rank's steps one after another, as
// they stand, whatever thread blocks they are in.
#pragma once

#include "compiler/analysis/StepGraph.h"
#include "plan/machine/machine.h"

namespace occl::analysis {

/// Refers to the program and its network. Blocks are ranks, positions steps.
class RanksInOrder {
public:
  RanksInOrder(const Program &program, const Network &network)
      : program(program), network(network), firstEnds(network.firstEnds()) {
    for (const inst::Connection &connection : network.connections)
      receivers.insert(receivers.end(), connection.destinations.begin(),
                       connection.destinations.end());
  }

  uint32_t numBlocks() const { return static_cast<uint32_t>(program.ranks.size()); }
  uint32_t numConnections() const { return static_cast<uint32_t>(network.connections.size()); }
  uint32_t numEnds() const { return static_cast<uint32_t>(receivers.size()); }
  uint32_t numInstructions(uint32_t rank) const {
    return static_cast<uint32_t>(program.ranks[rank].steps.size());
  }
  uint32_t numParts(uint32_t rank, uint32_t step) const {
    const inst::Instruction &instruction = at(rank, step);
    return static_cast<uint32_t>(instruction.sources.size() + instruction.destinations.size());
  }
  plan::machine::Part part(uint32_t rank, uint32_t step, uint32_t i) const {
    using Kind = plan::machine::Part::Kind;
    const inst::Instruction &instruction = at(rank, step);
    const inst::Place &place = placeOf(instruction, i);
    if (place.isLocal())
      return {};
    return {.kind = i < instruction.sources.size() ? Kind::Receive : Kind::Send,
            .connection = network.connectionOf(place)};
  }
  uint32_t numberOf(const plan::machine::Counts &counts, uint32_t rank, uint32_t step,
                    uint32_t i) const {
    const inst::Instruction &instruction = at(rank, step);
    const bool receives = i < instruction.sources.size();
    const uint32_t connection = network.connectionOf(placeOf(instruction, i));
    uint32_t number = receives ? counts.received[endOf(connection, rank)] : counts.sent[connection];
    const auto first = static_cast<uint32_t>(receives ? 0 : instruction.sources.size());
    for (uint32_t earlier = first; earlier < i; ++earlier) {
      const inst::Place &place = placeOf(instruction, earlier);
      number += !place.isLocal() && network.connectionOf(place) == connection;
    }
    return number;
  }
  uint32_t endOf(uint32_t connection, uint32_t rank) const {
    return firstEnds[connection] + network.slotOf(connection, rank);
  }
  uint32_t firstEnd(uint32_t connection) const { return firstEnds[connection]; }
  uint32_t numEndsOf(uint32_t connection) const {
    return firstEnds[connection + 1] - firstEnds[connection];
  }
  uint32_t senderOf(uint32_t connection) const { return network.connections[connection].source; }
  uint32_t receiverOf(uint32_t end) const { return receivers[end]; }

  // Steps depend on earlier ones of their rank alone, which the order keeps.
  uint32_t numInstructions() const { return 0; }
  uint32_t indexOf(uint32_t, uint32_t) const { return plan::machine::kNone; }

private:
  const inst::Instruction &at(uint32_t rank, uint32_t step) const {
    return program.ranks[rank].steps[step].instruction;
  }
  static const inst::Place &placeOf(const inst::Instruction &instruction, uint32_t i) {
    const size_t numSources = instruction.sources.size();
    return i < numSources ? instruction.sources[i] : instruction.destinations[i - numSources];
  }

  const Program &program;
  const Network &network;
  std::vector<uint32_t> firstEnds; // of connections, and how many there are
  std::vector<uint32_t> receivers; // ranks, by end
};

} // namespace occl::analysis
