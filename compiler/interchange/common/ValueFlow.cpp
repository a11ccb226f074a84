#include "compiler/interchange/common/ValueFlow.h"

#include <algorithm>
#include <span>

namespace occl::interchange {

using plan::Instruction;
using plan::Operand;
using plan::OperandKind;
using plan::RankPlan;

ValueFlow::ValueFlow(const plan::Plan &plan)
    : plan(plan), queues(plan.connections.size()), ends(plan.destinations.size()),
      rankOf(plan.threadBlocks.size()), next(plan.threadBlocks.size()),
      nextWaiter(plan.threadBlocks.size(), kNone), waiters(plan.instructions.size(), kNone),
      isDone(plan.instructions.size()), extent(plan.instructions.size(), kNone) {
  // Locations are numbered rank by rank, as are results of instructions: both are found without a
  // search.
  first.push_back(0);
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    const RankPlan &rank = plan.ranks[r];
    first.push_back(first.back() + rank.inputChunks + rank.outputChunks + rank.scratchChunks);
    for (uint32_t b = 0; b < rank.numThreadBlocks; ++b)
      rankOf[rank.firstThreadBlock + b] = r;
  }
  firstResult.push_back(0);
  for (const Instruction &instruction : plan.instructions)
    firstResult.push_back(firstResult.back() + instruction.count);
  isReduced.resize(firstResult.back());
}

/// In place only, an input chunk that is also an output chunk is that one. (A plan for both modes
/// does not write to its input, so that either view gives the same values.)
size_t ValueFlow::locate(uint32_t rank, OperandKind kind, uint32_t chunk) const {
  const RankPlan &sizes = plan.ranks[rank];
  if (kind == OperandKind::Input) {
    int64_t asOutput = int64_t{chunk} + sizes.inPlaceOffset;
    if (plan.outOfPlace || asOutput < 0 || asOutput >= sizes.outputChunks)
      return first[rank] + chunk;
    return first[rank] + sizes.inputChunks + static_cast<size_t>(asOutput);
  }
  size_t outputs = first[rank] + sizes.inputChunks;
  return outputs + chunk + (kind == OperandKind::Scratch ? sizes.outputChunks : 0);
}

ValueFlow::Value ValueFlow::valueAt(uint32_t rank, OperandKind kind, uint32_t chunk) const {
  // Memory holds only what was written; a plan may have much more.
  auto written = memory.find(locate(rank, kind, chunk));
  if (written != memory.end())
    return written->second;
  // What the input holds at entry is its own chunk of a part.
  if (kind == OperandKind::Input)
    return {chunk % plan.partChunks, kNone};
  const RankPlan &sizes = plan.ranks[rank];
  int64_t asInput = int64_t{chunk} - sizes.inPlaceOffset;
  bool holdsInput = kind == OperandKind::Output && !plan.outOfPlace && asInput >= 0 &&
                    asInput < sizes.inputChunks;
  return {holdsInput ? static_cast<uint32_t>(asInput) % plan.partChunks : kNone, kNone};
}

uint32_t ValueFlow::endOf(uint32_t connection, uint32_t rank) const {
  const plan::Connection &entry = plan.connections[connection];
  auto destinations = plan.destinationsOf(entry);
  auto found = std::find(destinations.begin(), destinations.end(), rank);
  return entry.firstDestination + static_cast<uint32_t>(found - destinations.begin());
}

void ValueFlow::run() {
  // From the last to the first, so that the first is taken first.
  for (uint32_t b = static_cast<uint32_t>(plan.threadBlocks.size()); b-- > 0;)
    ready.push_back(b);
  while (!ready.empty()) {
    uint32_t block = ready.back();
    ready.pop_back();
    const plan::ThreadBlock &content = plan.threadBlocks[block];
    // A thread block runs until it waits; the execution's order does not matter, as the verifier
    // proves that later. A plan that deadlocks just stops.
    while (next[block] < content.numInstructions &&
           canRun(block, content.firstInstruction + next[block])) {
      execute(block, content.firstInstruction + next[block]);
      ++next[block];
    }
  }
}

/// If not, the thread block is woken when what it waits for has come.
bool ValueFlow::canRun(uint32_t block, uint32_t index) {
  const Instruction &instruction = plan.instructions[index];
  const RankPlan &rank = plan.ranks[rankOf[block]];
  // In a list of those that wait for the instruction, threaded through the thread blocks: each
  // waits for one thing at a time.
  for (const plan::Dependency &dependency : plan.dependenciesOf(instruction)) {
    uint32_t target =
        plan.threadBlocks[rank.firstThreadBlock + dependency.threadBlock].firstInstruction +
        dependency.instruction;
    if (isDone[target])
      continue;
    nextWaiter[block] = waiters[target];
    waiters[target] = block;
    return false;
  }
  for (const Operand &source : plan.sourcesOf(instruction)) {
    if (source.kind != OperandKind::Connection)
      continue;
    End &end = ends[endOf(source.index, rankOf[block])];
    const Queue &queue = queues[source.index];
    if (end.message < queue.counts.size()) {
      if (queue.counts[end.message] != instruction.count)
        return false; // a mismatch: nothing that follows has a meaning
      continue;
    }
    end.waiting = block;
    return false;
  }
  return true;
}

void ValueFlow::execute(uint32_t block, uint32_t index) {
  const Instruction &instruction = plan.instructions[index];
  uint32_t rank = rankOf[block];
  // All results before anything is stored: destinations may be sources.
  bool reduces = instruction.numSources > 1;
  std::vector<Value> results(instruction.count);
  for (uint32_t chunk = 0; chunk < instruction.count; ++chunk) {
    results[chunk] = reduce(rank, instruction, chunk);
    if (reduces)
      results[chunk].reduction = static_cast<uint32_t>(firstResult[index] + chunk);
    // The chunks of one instruction follow each other in a part, or extents are mixed.
    isMixed |= results[chunk].extent != (results[0].extent + chunk) % plan.partChunks;
  }
  extent[index] = results[0].extent;
  // Taken from the FIFO.
  for (const Operand &source : plan.sourcesOf(instruction))
    if (source.kind == OperandKind::Connection) {
      End &end = ends[endOf(source.index, rank)];
      ++end.message;
      end.value += instruction.count;
    }
  for (const Operand &destination : plan.destinationsOf(instruction)) {
    if (destination.kind == OperandKind::Connection) {
      Queue &queue = queues[destination.index];
      queue.values.insert(queue.values.end(), results.begin(), results.end());
      queue.counts.push_back(instruction.count);
      continue;
    }
    // Buffers other than scratch have extents of their own.
    isMixed |= destination.kind != OperandKind::Scratch &&
               destination.index % plan.partChunks != extent[index];
    for (uint32_t chunk = 0; chunk < instruction.count; ++chunk)
      memory[locate(rank, destination.kind, destination.index + chunk)] = results[chunk];
  }
  finish(index);
}

/// The value that the sources have in common, as far as that goes.
ValueFlow::Value ValueFlow::reduce(uint32_t rank, const Instruction &instruction, uint32_t chunk) {
  Value result;
  // Extents have to agree among the sources, and with the places that they come from.
  bool isFirst = true;
  for (const Operand &source : plan.sourcesOf(instruction)) {
    Value value = source.kind == OperandKind::Connection
                      ? queues[source.index].values[ends[endOf(source.index, rank)].value + chunk]
                      : valueAt(rank, source.kind, source.index + chunk);
    isMixed |= source.kind != OperandKind::Connection && source.kind != OperandKind::Scratch &&
               (source.index + chunk) % plan.partChunks != value.extent;
    isMixed |= !isFirst && value.extent != result.extent;
    // A result that goes into another reduction is reduced further.
    if (instruction.numSources > 1 && value.reduction != kNone)
      isReduced[value.reduction] = true;
    if (isFirst)
      result = value;
    isFirst = false;
  }
  return result;
}

void ValueFlow::wake(uint32_t &waiting) {
  if (waiting != kNone)
    ready.push_back(waiting);
  waiting = kNone;
}

/// Wakes who waits for the instruction or for what it has sent.
void ValueFlow::finish(uint32_t index) {
  isDone[index] = true;
  // Those that depend on it, and those that wait for its messages.
  for (uint32_t block = waiters[index]; block != kNone; block = nextWaiter[block])
    ready.push_back(block);
  for (const Operand &destination : plan.destinationsOf(plan.instructions[index])) {
    if (destination.kind != OperandKind::Connection)
      continue;
    const plan::Connection &connection = plan.connections[destination.index];
    for (uint32_t i = 0; i < connection.numDestinations; ++i)
      wake(ends[connection.firstDestination + i].waiting);
  }
}

} // namespace occl::interchange
