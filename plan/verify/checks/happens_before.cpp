#include "plan/verify/checks/happens_before.h"

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
  // The position of each instruction in one possible execution. All that can precede an instruction
  // in every execution precedes it in this one, which bounds how far back a search has to look.
  for (uint32_t i = 0; i < execution.order.size(); ++i)
    rankInOrder[execution.order[i]] = i;
  for (const Connection &connection : plan.connections)
    hasOrdered = hasOrdered || orders(connection);
}

bool PathSearch::leads(uint32_t earlier, uint32_t later, bool inStep) {
  openInStep.push_back(later);
  return search({&earlier, 1}, inStep);
}

bool PathSearch::leads(std::span<const uint32_t> earlier, std::span<const uint32_t> later) {
  for (uint32_t instruction : later)
    reach(network.blockOf[instruction], network.positionOf(instruction) + 1);
  return search(earlier, false);
}

/// From what is open, back to all of `earlier`.
bool PathSearch::search(std::span<const uint32_t> earlier, bool inStep) {
  // Nothing that ran before the earliest goal can lead to a goal, so the search stops there.
  horizon = kNone;
  for (uint32_t goal : earlier)
    horizon = std::min(horizon, rankInOrder[goal]);
  ++searches;
  size_t numReached = 0; // of the goals, the first ones
  // Goals are ticked off in order: each may be reached only once, so this is linear in their
  // number.
  auto allReached = [&] {
    while (numReached < earlier.size() &&
           (isReached(earlier[numReached]) || (inStep && seenInStep.contains(earlier[numReached]))))
      ++numReached;
    return numReached == earlier.size();
  };
  // Those in step last: they are few, and are followed with weaker conclusions. The budget bounds
  // the time for plans made to be slow; what is not found within it counts as unordered, which is
  // safe.
  while (!allReached() && budget > 0 && !(open.empty() && openInStep.empty())) {
    if (open.empty()) {
      uint32_t next = openInStep.back();
      openInStep.pop_back();
      follow(next);
    } else {
      Stretch stretch = open.back();
      open.pop_back();
      expand(stretch);
    }
  }
  bool result = allReached();
  // What was reached belongs to the caller, who learns from it; the arrays are reset by what was
  // touched and not as a whole, as they are as large as the plan and searches are many.
  found.clear();
  for (uint32_t block : touched)
    found.push_back({block, std::exchange(reached[block], 0)});
  touched.clear();
  open.clear();
  openInStep.clear();
  seenInStep.clear();
  return result;
}

/// The first `end` instructions of the thread block are complete.
void PathSearch::reach(uint32_t block, uint32_t end) {
  if (reached[block] >= end)
    return;
  // From the first arrival on, a block's prefix is complete, and another arrival can only lengthen
  // it: only what is new is put aside to be expanded.
  if (reached[block] == 0)
    touched.push_back(block);
  open.push_back({block, reached[block], end});
  reached[block] = end;
}

/// The instruction's dependencies are complete.
void PathSearch::reachConditions(uint32_t instruction) {
  uint32_t rank = network.rankOf(instruction);
  for (const Dependency &dependency : plan.dependenciesOf(plan.instructions[instruction]))
    reach(plan.ranks[rank].firstThreadBlock + dependency.threadBlock, dependency.instruction + 1);
}

/// Calls `visit(send)` for each ordered message that the instruction receives.
template <typename Visit> void PathSearch::forEachSend(uint32_t instruction, const Visit &visit) {
  if (!hasOrdered)
    return;
  uint32_t operand = plan.instructions[instruction].firstOperand;
  uint32_t end = operand + plan.instructions[instruction].numSources;
  for (; operand < end; ++operand) {
    const Operand &source = plan.operands[operand];
    if (source.kind == OperandKind::Connection && orders(plan.connections[source.index]))
      visit(network.sendOf(operand));
  }
}

/// The instruction is `later`, or in step with it.
void PathSearch::follow(uint32_t instruction) {
  --budget;
  // All before it in its own thread block is complete when it starts.
  reach(network.blockOf[instruction], network.positionOf(instruction));
  reachConditions(instruction);
  // The sender of a message is in step: it is ahead of this instruction slice by slice, but need
  // not be complete.
  forEachSend(instruction, [&](uint32_t send) {
    if (rankInOrder[send] >= horizon && seenInStep.insert(send).second)
      openInStep.push_back(send);
  });
}

/// Follows what the stretch's instructions, which are complete, waited for, as far back as the goal
/// itself ran. What they received was sent, to its last slice.
void PathSearch::expand(const Stretch &stretch) {
  uint32_t first = plan.threadBlocks[stretch.block].firstInstruction;
  // Backwards from the newest: what ran before the goal ends the walk, for the rest ran before it,
  // too.
  for (uint32_t position = stretch.to; position > stretch.from && budget > 0; --budget) {
    uint32_t index = first + --position;
    if (rankInOrder[index] <= horizon)
      return;
    reachConditions(index);
    forEachSend(index,
                // Here the receiver is complete, so the sender has sent all slices and is complete
                // itself: hence the + 1.
                [&](uint32_t send) { reach(network.blockOf[send], network.positionOf(send) + 1); });
  }
}

RankClocks::RankClocks(const Network &network, const KnownOrders &known, PathSearch &search)
    : plan(network.plan), network(network), known(known), search(search), joinBudget(kJoinBudget),
      isTarget(plan.instructions.size()) {
  // Only instructions that others refer to need a clock of their own to be kept.
  for (uint32_t i = 0; i < plan.instructions.size(); ++i)
    for (const Dependency &dependency : plan.dependenciesOf(plan.instructions[i]))
      isTarget[network.target(network.rankOf(i), dependency)] = true;
  for (const KnownOrder &order : known.all())
    isTarget[order.earlier] = true;
}

void RankClocks::begin(uint32_t rank) {
  firstBlock = plan.ranks[rank].firstThreadBlock;
  numBlocks = plan.ranks[rank].numThreadBlocks;
  // A row for each thread block, a column for each thread block: how many instructions of the
  // latter are complete when the former's next one starts.
  clocks.assign(size_t{numBlocks} * numBlocks, 0);
  // Clocks of the rank before are of no use: they count other thread blocks.
  saved.clear();
  uint32_t numInstructions = 0;
  for (const ThreadBlock &block : plan.threadBlocksOf(plan.ranks[rank]))
    numInstructions += block.numInstructions;
  savedRow.assign(numInstructions, kNone);
  firstInstruction = numBlocks == 0 ? 0 : plan.threadBlocks[firstBlock].firstInstruction;
}

/// What was complete when `earlier` began is complete, and `earlier` too if `isComplete`.
void RankClocks::join(uint32_t *clock, uint32_t earlier, bool isComplete) {
  uint32_t &own = clock[network.blockOf[earlier] - firstBlock];
  uint32_t position = network.positionOf(earlier);
  // The clock knew it already, and with it all that this one knew when it began.
  if (own > position)
    return;
  raise(own, position + isComplete);
  if (isComplete)
    joinInStep(clock, earlier);
  uint32_t row = savedRow[earlier - firstInstruction];
  // Without a saved row, or when joining rows has taken too long, the clock knows less than it
  // could: then the search over the plan decides, which is slower and not wrong.
  if (row == kNone || joinBudget < numBlocks)
    return;
  joinBudget -= numBlocks;
  for (uint32_t b = 0; b < numBlocks; ++b)
    raise(clock[b], saved[size_t{row} * numBlocks + b]);
}

/// `complete` is complete, so whatever was ahead of it slice by slice is, too.
void RankClocks::joinInStep(uint32_t *clock, uint32_t complete) {
  for (const KnownOrder &order : known.of(complete))
    raise(clock[network.blockOf[order.earlier] - firstBlock],
          network.positionOf(order.earlier) + 1);
}

void RankClocks::enter(uint32_t instruction) {
  uint32_t *clock = clockOf(network.blockOf[instruction]);
  uint32_t rank = network.rankOf(instruction);
  for (const Dependency &dependency : plan.dependenciesOf(plan.instructions[instruction]))
    join(clock, network.target(rank, dependency), true);
  for (const KnownOrder &order : known.of(instruction))
    join(clock, order.earlier, order.isComplete);
}

bool RankClocks::isOrdered(uint32_t earlier, uint32_t entered, bool inStep) {
  uint32_t block = network.blockOf[earlier], position = network.positionOf(earlier);
  uint32_t *clock = clockOf(network.blockOf[entered]);
  // The cheap answer, which settles almost all questions.
  if (clock[block - firstBlock] > position)
    return true;
  // A witness may be about two instructions in step, of which the clock, which counts complete
  // ones, cannot know.
  if (inStep)
    for (const KnownOrder &order : known.of(entered))
      if (order.earlier == earlier)
        return true;
  bool isOrdered = search.leads(earlier, entered, inStep);
  // Keep all that the search came by: the next question is mostly about a neighbour.
  for (auto [reached, numInstructions] : search.reachedBlocks())
    if (reached - firstBlock < numBlocks)
      raise(clock[reached - firstBlock], numInstructions);
  return isOrdered;
}

void RankClocks::leave(uint32_t instruction) {
  uint32_t *clock = clockOf(network.blockOf[instruction]);
  // Saved before the instruction itself is counted: what was complete when it began is what a later
  // join with an incomplete one may conclude.
  if (isTarget[instruction] && saved.size() + numBlocks <= kMaxSaved) {
    savedRow[instruction - firstInstruction] = static_cast<uint32_t>(saved.size() / numBlocks);
    saved.insert(saved.end(), clock, clock + numBlocks);
  }
  joinInStep(clock, instruction);
  clock[network.blockOf[instruction] - firstBlock] = network.positionOf(instruction) + 1;
}

} // namespace occl::plan::verify
