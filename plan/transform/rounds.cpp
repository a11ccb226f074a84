#include "plan/transform/rounds.h"

#include "plan/model/builder.h"
#include "plan/model/limits.h"
#include "plan/transform/header.h"

#include <algorithm>
#include <string>
#include <vector>

namespace occl::plan {

namespace {

class Rounds {
public:
  Rounds(const Plan &plan, uint32_t rounds)
      : plan(plan), rounds(rounds), numConnections(static_cast<uint32_t>(plan.connections.size())) {
    for (const Connection &connection : plan.connections)
      numChannels = std::max(numChannels, connection.channel + 1);
  }

  /// Why it cannot be; empty if it can.
  std::string obstacle() const {
    // Each piece of the data has its own copy of every chunk, so a chunk's size must not matter:
    // with chunks of unequal size the pieces would not end where the promise says.
    if (plan.uniformChunks)
      return "its chunks may end in places of another size";
    // A piece takes partChunks chunks out of each part, which needs buffers and offsets in whole
    // parts.
    for (const RankPlan &rank : plan.ranks) {
      if (rank.inputChunks % plan.partChunks != 0 || rank.outputChunks % plan.partChunks != 0 ||
          rank.inPlaceOffset % static_cast<int32_t>(plan.partChunks) != 0)
        return "a buffer is not a whole number of parts";
      // What grows by the factor `rounds` must stay within a plan's limits: the result is verified
      // as any other plan, but this names the reason.
      if (exceeds(rank.numThreadBlocks, limits::kMaxThreadBlocks) ||
          exceeds(std::max({rank.inputChunks, rank.outputChunks, rank.scratchChunks}),
                  limits::kMaxChunks))
        return "there would be more thread blocks or chunks than a plan may have";
    }
    if (exceeds(numChannels, limits::kMaxChannels) ||
        exceeds(numConnections, limits::kMaxConnections) ||
        exceeds(plan.instructions.size(), limits::kMaxInstructions))
      return "there would be more channels, connections or instructions than a plan may have";
    return std::ranges::all_of(
               plan.instructions,
               [&](const Instruction &instruction) { return isInOnePart(instruction); })
               ? ""
               : "an instruction has chunks of several parts, or of another rank's buffer";
  }

  Plan run() && {
    copyHeader(plan, builder.header());
    builder.header().partChunks = plan.partChunks * rounds;
    // All connections of round 0 come first, then all of round 1: so connection c of round i is c +
    // i * numConnections, wherever it is named.
    for (uint32_t i = 0; i < rounds; ++i)
      for (const Connection &connection : plan.connections)
        addConnection(connection, i);
    for (const RankPlan &rank : plan.ranks)
      addRank(rank);
    for (const Requirement &requirement : plan.requirements)
      addRequirement(requirement);
    // Witnesses are orders between instructions, which hold in each round by itself: rounds share
    // no connection and no thread block.
    for (uint32_t i = 0; i < rounds; ++i)
      for (const Witness &witness : plan.witnesses)
        addWitness(witness, i);
    return std::move(builder).take();
  }

private:
  bool exceeds(uint64_t number, uint64_t most) const { return number * rounds > most; }

  /// All its ranges of chunks lie in one part each, and in buffers of its own rank.
  bool isInOnePart(const Instruction &instruction) const {
    if (instruction.opcode == Opcode::LoadReduceStore)
      return false;
    const auto fits = [&](uint32_t first) {
      return instruction.count == 0 ||
             first % plan.partChunks + instruction.count <= plan.partChunks;
    };
    const auto isFit = [&](const Operand &operand) {
      return operand.kind == OperandKind::Connection || operand.kind == OperandKind::Scratch ||
             fits(operand.index);
    };
    return fits(instruction.extent) && std::ranges::all_of(plan.sourcesOf(instruction), isFit) &&
           std::ranges::all_of(plan.destinationsOf(instruction), isFit);
  }

  /// Of a buffer of parts: where its chunk is in round i.
  uint32_t chunkIn(uint32_t i, uint32_t chunk) const {
    return (chunk / plan.partChunks * rounds + i) * plan.partChunks + chunk % plan.partChunks;
  }

  void addConnection(const Connection &connection, uint32_t i) {
    const auto destinations = plan.destinationsOf(connection);
    if (connection.isCounter) {
      builder.addCounter(connection.source, destinations);
      return;
    }
    const uint32_t index = builder.addConnection(
        connection.source, i * numChannels + connection.channel, destinations);
    if (connection.isOrdered)
      builder.markOrdered(index);
  }

  void addRank(const RankPlan &rank) {
    RankPlan sizes = rank;
    sizes.inputChunks *= rounds;
    sizes.outputChunks *= rounds;
    sizes.scratchChunks *= rounds;
    sizes.inPlaceOffset *= static_cast<int32_t>(rounds);
    builder.beginRank(sizes);
    // Thread blocks likewise: number b of round i is b + i * numThreadBlocks. Each round has blocks
    // of its own, so that one that waits does not hold up the others.
    for (uint32_t i = 0; i < rounds; ++i)
      for (const ThreadBlock &block : plan.threadBlocksOf(rank))
        addBlock(rank, block, i);
  }

  void addBlock(const RankPlan &rank, const ThreadBlock &block, uint32_t i) {
    builder.beginThreadBlock();
    for (Instruction instruction : plan.instructionsOf(block)) {
      const auto sources = operandsIn(i, rank, plan.sourcesOf(instruction));
      const auto destinations = operandsIn(i, rank, plan.destinationsOf(instruction));
      const auto old = plan.dependenciesOf(instruction);
      std::vector<Dependency> dependencies(old.begin(), old.end());
      for (Dependency &dependency : dependencies)
        dependency.threadBlock += i * rank.numThreadBlocks;
      if (instruction.count != 0)
        // The extent says which chunk of a part this is, from which its size follows: in the finer
        // cut, that of its own round.
        instruction.extent = chunkIn(i, instruction.extent % plan.partChunks);
      builder.addInstruction(instruction, sources, destinations, dependencies);
    }
  }

  std::vector<Operand> operandsIn(uint32_t i, const RankPlan &rank,
                                  std::span<const Operand> old) const {
    std::vector<Operand> operands(old.begin(), old.end());
    // Each round has its own range of everything: connections, scratch behind that of the round
    // before, and its share of each part of input and output.
    for (Operand &operand : operands)
      switch (operand.kind) {
      case OperandKind::Connection:
        operand.index += i * numConnections;
        break;
      case OperandKind::Scratch:
        operand.index += i * rank.scratchChunks;
        break;
      case OperandKind::Input:
      case OperandKind::Output:
        operand.index = chunkIn(i, operand.index);
        break;
      }
    return operands;
  }

  /// Its chunks need not stay neighbours.
  void addRequirement(const Requirement &requirement) {
    for (uint32_t c = 0; c < requirement.count; ++c)
      for (uint32_t i = 0; i < rounds; ++i) {
        std::vector<Contribution> contributions;
        for (const Contribution &old : plan.contributionsOf(requirement))
          contributions.push_back({old.rank, chunkIn(i, old.chunk + c)});
        builder.addRequirement({.rank = requirement.rank,
                                .outputChunk = chunkIn(i, requirement.outputChunk + c),
                                .count = 1},
                               contributions);
      }
  }

  void addWitness(const Witness &witness, uint32_t i) {
    const auto old = plan.placesOf(witness);
    std::vector<Place> places(old.begin(), old.end());
    for (Place &place : places)
      place.threadBlock += i * plan.ranks[place.rank].numThreadBlocks;
    builder.addWitness(places);
  }

  const Plan &plan;
  const uint32_t rounds, numConnections;
  uint32_t numChannels = 1;
  PlanBuilder builder;
};

} // namespace

support::Expected<Plan> inRounds(const Plan &plan, uint32_t rounds) {
  if (rounds == 1)
    return plan;
  Rounds result(plan, rounds);
  const std::string obstacle = rounds == 0 ? "there has to be one" : result.obstacle();
  if (!obstacle.empty())
    return support::Status::error("plan " + plan.name + " of " + plan.collective +
                                  " cannot be executed in " + std::to_string(rounds) +
                                  " rounds: " + obstacle);
  return std::move(result).run();
}

} // namespace occl::plan
