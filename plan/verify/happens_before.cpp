#include "plan/verify/happens_before.h"

#include <algorithm>
#include <utility>

namespace occl::plan::verify {

namespace {

/// Instructions that all searches together may look at.
constexpr uint64_t kSearchBudget = 1ull << 26;
/// Words of saved clocks that one rank may have; beyond, dependencies tell of their target only,
/// and searches the rest.
constexpr size_t kMaxSaved = size_t{1} << 26;
/// Words of clocks that dependencies may join in all; beyond, likewise.
constexpr uint64_t kJoinBudget = 1ull << 31;

} // namespace

PathSearch::PathSearch(const Network &network, const Execution &execution)
    : plan(network.plan), network(network), rankInOrder(plan.instructions.size()),
      reached(plan.threadBlocks.size()), budget(kSearchBudget) {
  for (uint32_t i = 0; i < execution.order.size(); ++i)
    rankInOrder[execution.order[i]] = i;
}

bool PathSearch::leads(std::span<const uint32_t> earlier, std::span<const uint32_t> later) {
  uint32_t horizon = kNone;
  for (uint32_t goal : earlier)
    horizon = std::min(horizon, rankInOrder[goal]);
  for (uint32_t instruction : later)
    reach(instruction);
  size_t numReached = 0; // of the goals, the first ones
  auto allReached = [&] {
    while (numReached < earlier.size() && isReached(earlier[numReached]))
      ++numReached;
    return numReached == earlier.size();
  };
  while (!allReached() && !open.empty() && budget > 0) {
    Stretch stretch = open.back();
    open.pop_back();
    expand(stretch, horizon);
  }
  bool result = allReached();
  found.clear();
  for (uint32_t block : touched)
    found.push_back({block, std::exchange(reached[block], 0)});
  touched.clear();
  open.clear();
  return result;
}

void PathSearch::reach(uint32_t instruction) {
  uint32_t block = network.blockOf[instruction];
  uint32_t end = network.positionOf(instruction) + 1;
  if (reached[block] >= end)
    return;
  if (reached[block] == 0)
    touched.push_back(block);
  open.push_back({block, reached[block], end});
  reached[block] = end;
}

/// Follows what the stretch's instructions waited for, as far back as the goal itself ran.
void PathSearch::expand(const Stretch &stretch, uint32_t horizon) {
  uint32_t first = plan.threadBlocks[stretch.block].firstInstruction;
  uint32_t rank = network.rankOfBlock[stretch.block];
  for (uint32_t position = stretch.to; position > stretch.from && budget > 0; --budget) {
    uint32_t index = first + --position;
    if (rankInOrder[index] <= horizon)
      return;
    const Instruction &instruction = plan.instructions[index];
    for (const Dependency &dependency : plan.dependenciesOf(instruction))
      reach(network.target(rank, dependency));
    uint32_t operand = instruction.firstOperand;
    for (uint32_t i = 0; i < instruction.numSources; ++i, ++operand) {
      const Operand &source = plan.operands[operand];
      if (source.kind == OperandKind::Connection && orders(plan.connections[source.index]))
        reach(network.sends[network.firstSend[source.index] + network.ordinal[operand]]);
    }
  }
}

RankClocks::RankClocks(const Network &network, PathSearch &search)
    : plan(network.plan), network(network), search(search), joinBudget(kJoinBudget),
      isTarget(plan.instructions.size()) {
  for (uint32_t i = 0; i < plan.instructions.size(); ++i)
    for (const Dependency &dependency : plan.dependenciesOf(plan.instructions[i]))
      isTarget[network.target(network.rankOf(i), dependency)] = true;
}

void RankClocks::begin(uint32_t rank) {
  firstBlock = plan.ranks[rank].firstThreadBlock;
  numBlocks = plan.ranks[rank].numThreadBlocks;
  clocks.assign(size_t{numBlocks} * numBlocks, 0);
  saved.clear();
  uint32_t numInstructions = 0;
  for (const ThreadBlock &block : plan.threadBlocksOf(plan.ranks[rank]))
    numInstructions += block.numInstructions;
  savedRow.assign(numInstructions, kNone);
  firstInstruction = numBlocks == 0 ? 0 : plan.threadBlocks[firstBlock].firstInstruction;
}

void RankClocks::enter(uint32_t instruction) {
  uint32_t *clock = clockOf(network.blockOf[instruction]);
  uint32_t rank = network.rankOf(instruction);
  for (const Dependency &dependency : plan.dependenciesOf(plan.instructions[instruction])) {
    if (clock[dependency.threadBlock] > dependency.instruction)
      continue;
    clock[dependency.threadBlock] = dependency.instruction + 1;
    uint32_t row = savedRow[network.target(rank, dependency) - firstInstruction];
    if (row == kNone || joinBudget < numBlocks)
      continue;
    joinBudget -= numBlocks;
    for (uint32_t b = 0; b < numBlocks; ++b)
      raise(clock[b], saved[size_t{row} * numBlocks + b]);
  }
}

bool RankClocks::isOrdered(uint32_t earlier, uint32_t entered) {
  uint32_t block = network.blockOf[earlier], position = network.positionOf(earlier);
  if (block == network.blockOf[entered])
    return true;
  uint32_t clock = clockOf(network.blockOf[entered])[block - firstBlock];
  if (clock > position)
    return true;
  bool isOrdered = search.leads(earlier, entered);
  // Keep all that the search came by: the next question is mostly about a neighbour.
  uint32_t *clocks = clockOf(network.blockOf[entered]);
  for (auto [reached, numInstructions] : search.reachedBlocks())
    if (reached - firstBlock < numBlocks && reached != network.blockOf[entered])
      raise(clocks[reached - firstBlock], numInstructions);
  return isOrdered;
}

void RankClocks::leave(uint32_t instruction) {
  uint32_t block = network.blockOf[instruction];
  uint32_t *clock = clockOf(block);
  clock[block - firstBlock] = network.positionOf(instruction) + 1;
  if (!isTarget[instruction] || saved.size() + numBlocks > kMaxSaved)
    return;
  savedRow[instruction - firstInstruction] = static_cast<uint32_t>(saved.size() / numBlocks);
  saved.insert(saved.end(), clock, clock + numBlocks);
}

} // namespace occl::plan::verify
