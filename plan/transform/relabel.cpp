#include "plan/transform/relabel.h"

#include "plan/model/builder.h"
#include "plan/transform/header.h"

#include <algorithm>
#include <vector>

namespace occl::plan {

namespace {

class Relabelling {
public:
  Relabelling(const Plan &plan, uint32_t root, uint32_t numIslands)
      : plan(plan), root(root), newRanks(plan.numRanks), oldRanks(plan.numRanks) {
    // Islands are turned among themselves, and ranks within each island, so that the old root comes
    // to lie on the new one while neighbours within an island stay in one island: the plan's
    // traffic over the network does not change.
    const uint32_t size = plan.numRanks / numIslands; // of an island
    for (uint32_t old = 0; old < plan.numRanks; ++old) {
      const uint32_t island = old / size + root / size + numIslands - plan.root / size;
      const uint32_t local = old % size + root % size + size - plan.root % size;
      newRanks[old] = island % numIslands * size + local % size;
      oldRanks[newRanks[old]] = old;
    }
  }

  support::Expected<Plan> run() && {
    // In the order in which a PlanBuilder wants it: connections before ranks, as instructions name
    // them by index, and indices stay. Ranks go in their new order.
    copyHeader();
    for (const Connection &connection : plan.connections)
      addConnection(connection);
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      addRank(plan.ranks[oldRanks[r]]);
    for (const Requirement &requirement : plan.requirements)
      addRequirement(requirement);
    for (const Witness &witness : plan.witnesses) {
      std::vector<Place> places(plan.placesOf(witness).begin(), plan.placesOf(witness).end());
      for (Place &place : places)
        place.rank = newRank(place.rank);
      builder.addWitness(places);
    }
    // An instruction over the parts of several ranks at once has no contiguous range any more, once
    // the parts are permuted.
    if (isTorn)
      return support::Status::error(
          "plan " + plan.name + " of " + plan.collective + " cannot be relabelled for root " +
          std::to_string(root) +
          ": an instruction accesses the parts of several ranks at once; compile "
          "it for this root");
    return std::move(builder).take();
  }

private:
  uint32_t newRank(uint32_t rank) const { return newRanks[rank]; }

  void copyHeader() {
    Plan &header = builder.header();
    plan::copyHeader(plan, header);
    // The root is a parameter of most programs; a plan that says another root than it has would
    // puzzle its readers.
    for (auto &[name, value] : header.parameters)
      if (name == "root")
        value = root;
    header.root = root;
  }

  void addConnection(const Connection &connection) {
    std::vector<uint32_t> destinations;
    for (uint32_t destination : plan.destinationsOf(connection))
      destinations.push_back(newRank(destination));
    // Destinations ascend in a plan (verified), and a permutation does not keep that.
    std::ranges::sort(destinations);
    if (connection.isCounter) {
      builder.addCounter(newRank(connection.source), destinations);
      return;
    }
    uint32_t index =
        builder.addConnection(newRank(connection.source), connection.channel, destinations);
    if (connection.isOrdered)
      builder.markOrdered(index);
  }

  void addRank(const RankPlan &rank) {
    RankPlan sizes = rank;
    sizes.inPlaceOffset = newOffset(rank);
    builder.beginRank(sizes);
    for (const ThreadBlock &block : plan.threadBlocksOf(rank)) {
      builder.beginThreadBlock();
      // Dependencies are between thread blocks of the rank by number, which move together with it.
      for (const Instruction &instruction : plan.instructionsOf(block)) {
        std::vector<Operand> sources = operands(instruction, plan.sourcesOf(instruction));
        std::vector<Operand> destinations = operands(instruction, plan.destinationsOf(instruction));
        builder.addInstruction(instruction, sources, destinations,
                               plan.dependenciesOf(instruction));
      }
    }
  }

  /// Whether a buffer of an old rank has a part for each rank.
  bool hasParts(uint32_t chunks) const {
    bool isGathered = plan.collective == "gather" || plan.collective == "scatter";
    return isGathered && plan.numRanks > 1 && chunks == plan.numRanks * plan.partChunks;
  }

  /// Where a chunk of a buffer that has a part for each rank goes.
  uint32_t moved(uint32_t chunk) const {
    return newRank(chunk / plan.partChunks) * plan.partChunks + chunk % plan.partChunks;
  }

  /// The first chunk of `count` from `chunk` on; their parts move together, or the plan is torn.
  uint32_t movedRange(uint32_t chunk, uint32_t count) {
    uint32_t first = moved(chunk);
    if (count > 0 && moved(chunk + count - 1) != first + count - 1)
      isTorn = true;
    return first;
  }

  /// Of gather and scatter: in place, a rank's own part lies where it is in the root's buffer, so
  /// that the offset is as many parts as the rank's number.
  int32_t newOffset(const RankPlan &rank) const {
    auto old = static_cast<int32_t>(&rank - plan.ranks.data());
    int32_t sign = plan.collective == "gather" ? 1 : plan.collective == "scatter" ? -1 : 0;
    auto part = sign * static_cast<int32_t>(plan.partChunks);
    if (rank.inPlaceOffset != old * part)
      return rank.inPlaceOffset; // one's own way
    return static_cast<int32_t>(newRank(static_cast<uint32_t>(old))) * part;
  }

  std::vector<Operand> operands(const Instruction &instruction, std::span<const Operand> old) {
    std::vector<Operand> result(old.begin(), old.end());
    for (Operand &operand : result) {
      if (operand.kind == OperandKind::Connection)
        continue;
      // Only a buffer with a part for each rank has its parts permuted; scratch and single parts
      // stay as they are.
      const RankPlan &owner = plan.ranks[operand.rank];
      if ((operand.kind == OperandKind::Input && hasParts(owner.inputChunks)) ||
          (operand.kind == OperandKind::Output && hasParts(owner.outputChunks)))
        operand.index = movedRange(operand.index, instruction.count);
      operand.rank = newRank(operand.rank);
    }
    return result;
  }

  void addRequirement(const Requirement &requirement) {
    bool isTarget = hasParts(plan.ranks[requirement.rank].outputChunks);
    // A requirement of several parts is taken apart, chunk by chunk: they need not stay neighbours.
    for (uint32_t i = 0; i < requirement.count; ++i) {
      std::vector<Contribution> contributions;
      for (Contribution c : plan.contributionsOf(requirement)) {
        uint32_t chunk = c.chunk + i;
        if (hasParts(plan.ranks[c.rank].inputChunks))
          chunk = moved(chunk);
        contributions.push_back({newRank(c.rank), chunk});
      }
      uint32_t chunk = requirement.outputChunk + i;
      builder.addRequirement({.rank = newRank(requirement.rank),
                              .outputChunk = isTarget ? moved(chunk) : chunk,
                              .count = 1},
                             contributions);
    }
  }

  const Plan &plan;
  uint32_t root;
  std::vector<uint32_t> newRanks, oldRanks;
  PlanBuilder builder;
  bool isTorn = false;
};

} // namespace

support::Expected<Plan> relabelled(const Plan &plan, uint32_t root, uint32_t numIslands) {
  if (root >= plan.numRanks)
    return support::Status::error("there is no root " + std::to_string(root) + " in a plan of " +
                                  std::to_string(plan.numRanks) + " ranks");
  if (numIslands == 0 || plan.numRanks % numIslands != 0)
    return support::Status::error("a plan of " + std::to_string(plan.numRanks) +
                                  " ranks is for no " + std::to_string(numIslands) +
                                  " islands of as many ranks each");
  const std::string &of = plan.collective;
  if (of != "broadcast" && of != "reduce" && of != "gather" && of != "scatter")
    return support::Status::error("a plan of " + of + " has no root");
  // Nothing to do; and the plan keeps its bytes, so that its hash does.
  if (root == plan.root)
    return plan;
  return Relabelling(plan, root, numIslands).run();
}

} // namespace occl::plan
