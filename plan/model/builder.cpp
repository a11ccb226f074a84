#include "plan/model/builder.h"

namespace occl::plan {

namespace {

template <typename T> uint32_t append(std::vector<T> &to, std::span<const T> items) {
  auto first = static_cast<uint32_t>(to.size());
  to.insert(to.end(), items.begin(), items.end());
  return first;
}

} // namespace

uint32_t PlanBuilder::file(const std::string &path) {
  auto [entry, isNew] = fileIndex.try_emplace(path, plan.files.size());
  if (isNew)
    plan.files.push_back(path);
  return entry->second;
}

uint32_t PlanBuilder::location(uint32_t file, uint32_t line, uint32_t column) {
  auto [entry, isNew] = locationIndex.try_emplace({file, line, column}, plan.locations.size());
  if (isNew)
    plan.locations.push_back({file, line, column});
  return entry->second;
}

uint32_t PlanBuilder::addConnection(uint32_t source, uint32_t channel,
                                    std::span<const uint32_t> destinations) {
  uint32_t first = append(plan.destinations, destinations);
  plan.connections.push_back({source, channel, first, static_cast<uint32_t>(destinations.size())});
  return static_cast<uint32_t>(plan.connections.size() - 1);
}

uint32_t PlanBuilder::addCounter(uint32_t source, std::span<const uint32_t> destinations) {
  uint32_t index = addConnection(source, 0, destinations);
  markCounter(index);
  return index;
}

void PlanBuilder::beginRank(const RankPlan &rank) {
  plan.ranks.push_back(rank);
  plan.ranks.back().firstThreadBlock = static_cast<uint32_t>(plan.threadBlocks.size());
  plan.ranks.back().numThreadBlocks = 0;
  plan.numRanks = static_cast<uint32_t>(plan.ranks.size());
}

void PlanBuilder::beginThreadBlock() {
  plan.threadBlocks.push_back({static_cast<uint32_t>(plan.instructions.size()), 0});
  ++plan.ranks.back().numThreadBlocks;
}

uint32_t PlanBuilder::addInstruction(Instruction instruction, std::span<const Operand> sources,
                                     std::span<const Operand> destinations,
                                     std::span<const Dependency> dependencies) {
  // Sources and destinations lie behind each other in one array, which is what
  // Instruction::firstOperand and the two numbers mean.
  instruction.firstOperand = append(plan.operands, sources);
  append(plan.operands, destinations);
  instruction.firstDependency = append(plan.dependencies, dependencies);
  instruction.numSources = static_cast<uint16_t>(sources.size());
  instruction.numDestinations = static_cast<uint16_t>(destinations.size());
  instruction.numDependencies = static_cast<uint16_t>(dependencies.size());
  plan.instructions.push_back(instruction);
  return plan.threadBlocks.back().numInstructions++;
}

void PlanBuilder::addRequirement(Requirement requirement,
                                 std::span<const Contribution> contributions) {
  requirement.firstContribution = append(plan.contributions, contributions);
  requirement.numContributions = static_cast<uint32_t>(contributions.size());
  plan.requirements.push_back(requirement);
}

void PlanBuilder::addWitness(std::span<const Place> places) {
  uint32_t first = append(plan.places, places);
  plan.witnesses.push_back({first, static_cast<uint32_t>(places.size())});
}

Plan PlanBuilder::take() && {
  fileIndex.clear();
  locationIndex.clear();
  return std::exchange(plan, Plan());
}

} // namespace occl::plan
