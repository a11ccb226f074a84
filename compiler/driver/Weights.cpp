#include "compiler/driver/Weights.h"

#include "compiler/cost/StepCosts.h"
#include "compiler/dialect/ProgramHeader.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

namespace occl::driver {

using analysis::StepWeights;
using analysis::WayWeights;
using topology::Picoseconds;
using topology::Topology;

namespace {

uint32_t inUnits(Picoseconds time) {
  constexpr uint64_t kMost = 1u << 24;
  return static_cast<uint32_t>(std::min((time + kWeightUnit / 2) / kWeightUnit, kMost));
}

/// What is not free counts, so that work is spread also where nothing bounds it.
uint32_t ofChunk(Picoseconds time) { return std::max(inUnits(time), 1u); }

/// What most of the ways have, the least of several.
WayWeights mostFrequent(llvm::ArrayRef<analysis::RankWay> ways) {
  // As most ways of a machine are alike, those are said once, and only the others one by one.
  std::map<std::pair<uint32_t, uint32_t>, size_t> numbers;
  for (const analysis::RankWay &way : ways)
    ++numbers[{way.weights.latency, way.weights.wire}];
  std::pair<uint32_t, uint32_t> best = {0, 0};
  size_t most = 0;
  for (auto [weights, number] : numbers)
    if (number > most) {
      most = number;
      best = weights;
    }
  return {best.first, best.second};
}

} // namespace

StepWeights weightsOf(const Topology &machine, plan::Protocol protocol,
                      std::vector<std::pair<uint32_t, uint32_t>> pairs) {
  const topology::Costs &costs = machine.costs;
  // For one chunk of a tile: what an operand costs beyond an instruction without any.
  const cost::StepCosts stepCosts(costs, protocol);
  const uint64_t tile = costs.tileBytes;
  auto busy = [&](const cost::OperandCounts &operands) {
    return ofChunk(stepCosts.busy(operands, tile) - stepCosts.busy({}, tile));
  };
  // In units that fit 32 bits; only their ratios matter to passes.
  StepWeights weights;
  weights.overhead = inUnits(stepCosts.busy({}, tile));
  weights.read = busy({.localSources = 1});
  weights.write = busy({.localDestinations = 1});
  weights.receive = busy({.messageSources = 1});
  weights.send = busy({.messageDestinations = 1, .receivers = 1});
  weights.fetched = costs.fetched;
  // Each pair of ranks that exchanges data, once.
  llvm::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (auto [from, to] : pairs)
    if (auto route = machine.route(from, to, 0))
      weights.ways.push_back(
          {from,
           to,
           {inUnits(stepCosts.messageLatency(route->latency)),
            inUnits(cost::durationOf(stepCosts.wireBytes(tile), machine.bandwidth(from, to)))}});
  weights.usual = mostFrequent(weights.ways);
  llvm::erase_if(weights.ways,
                 [&](const analysis::RankWay &way) { return way.weights == weights.usual; });
  return weights;
}

StepWeights weightsOf(chunk::ProgramOp program, const Topology &machine) {
  if (program.getInputChunks().size() != machine.numRanks())
    return {};
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  // Only pairs that the program uses: a large machine has millions.
  const chunk::ChunkProgram &chunks = program.getOperations();
  for (const chunk::ChunkOp &op : chunks.ops)
    for (uint32_t source : chunks.sourcesOf(op))
      if (int32_t from = chunks.ops[source].rank; from != op.rank)
        pairs.push_back({static_cast<uint32_t>(from), static_cast<uint32_t>(op.rank)});
  return weightsOf(machine, *dialect::parseProtocol(program.getProtocol()), std::move(pairs));
}

} // namespace occl::driver
