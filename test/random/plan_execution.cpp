#include "test/random/plan_execution.h"

#include <algorithm>

namespace occl::random {

using plan::Instruction;
using plan::Operand;
using plan::OperandKind;

PlanExecution::PlanExecution(const plan::Plan &plan, bool inPlace, uint32_t depth,
                             Expressions &expressions, Random &random)
    : plan(plan), inPlace(inPlace), depth(depth), expressions(expressions), random(random),
      signals(plan.connections.size()) {
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    const plan::RankPlan &rank = plan.ranks[r];
    for (uint32_t c = 0; c < rank.inputChunks; ++c)
      memory[address(r, OperandKind::Input, c)] = {expressions.input(r, c), c % plan.partChunks, 0};
    for (uint32_t b = 0; b < rank.numThreadBlocks; ++b)
      blocks.push_back({r, rank.firstThreadBlock + b, 0, random.next()});
  }
  for (uint32_t c = 0; c < plan.connections.size(); ++c)
    for (uint32_t destination : plan.destinationsOf(plan.connections[c]))
      queues[{c, destination}];
}

PlanExecution::Address PlanExecution::address(uint32_t rank, OperandKind kind, uint32_t chunk) {
  const plan::RankPlan &sizes = plan.ranks[rank];
  uint32_t size = kind == OperandKind::Input    ? sizes.inputChunks
                  : kind == OperandKind::Output ? sizes.outputChunks
                                                : sizes.scratchChunks;
  if (chunk >= size)
    fail("chunk " + std::to_string(chunk) + " of a buffer of rank " + std::to_string(rank) +
         " does not exist");
  int64_t asOutput = int64_t{chunk} + sizes.inPlaceOffset;
  if (inPlace && kind == OperandKind::Input && asOutput >= 0 && asOutput < sizes.outputChunks)
    return {rank, OperandKind::Output, static_cast<uint32_t>(asOutput)};
  return {rank, kind, chunk};
}

/// Blocks have priorities that change now and then: some orders are even, others far from it.
std::string PlanExecution::run() {
  std::erase_if(blocks, [&](Block &b) { return plan.threadBlocks[b.index].numInstructions == 0; });
  std::vector<Block *> order;
  for (Block &block : blocks)
    order.push_back(&block);
  while (!order.empty() && error.empty()) {
    std::ranges::sort(order, {}, &Block::priority);
    auto next = std::ranges::find_if(order, [&](Block *block) {
      return isEnabled(*block, plan.instructionsOf(plan.threadBlocks[block->index])[block->done]);
    });
    if (next == order.end())
      return kStuck;
    Block &block = **next;
    execute(block, plan.instructionsOf(plan.threadBlocks[block.index])[block.done]);
    if (++block.done == plan.threadBlocks[block.index].numInstructions)
      order.erase(next);
    else if (random.chance(30))
      block.priority = random.next();
  }
  for (const auto &[end, queue] : queues)
    if (!queue.empty())
      fail("a message of connection " + std::to_string(end.first) + " is left");
  return error;
}

bool PlanExecution::hasRoom(uint32_t connection) const {
  auto destinations = plan.destinationsOf(plan.connections[connection]);
  return std::ranges::all_of(destinations, [&](uint32_t rank) {
    return queues.at({connection, rank}).size() < depth;
  });
}

bool PlanExecution::isEnabled(const Block &block, const Instruction &instruction) const {
  for (plan::Dependency dependency : plan.dependenciesOf(instruction)) {
    uint32_t index = plan.ranks[block.rank].firstThreadBlock + dependency.threadBlock;
    auto other = std::ranges::find(blocks, index, &Block::index);
    if (other->done <= dependency.instruction)
      return false;
  }
  if (instruction.opcode == plan::Opcode::Wait)
    return std::ranges::all_of(plan.sourcesOf(instruction), [&](const Operand &counter) {
      return signals[counter.index] >= instruction.value;
    });
  for (const Operand &source : plan.sourcesOf(instruction))
    if (source.kind == OperandKind::Connection && queues.at({source.index, block.rank}).empty())
      return false;
  for (const Operand &destination : plan.destinationsOf(instruction))
    if (destination.kind == OperandKind::Connection && !hasRoom(destination.index))
      return false;
  return true;
}

void PlanExecution::execute(const Block &block, const Instruction &instruction) {
  if (instruction.opcode == plan::Opcode::Wait)
    return;
  if (instruction.opcode == plan::Opcode::Signal) {
    ++signals[plan.destinationsOf(instruction)[0].index];
    return;
  }
  std::vector<Contents> operands;
  for (const Operand &source : plan.sourcesOf(instruction))
    operands.push_back(load(block, source, instruction.count));
  if (!error.empty())
    return;
  Contents result = reduce(operands, instruction);
  for (const Operand &destination : plan.destinationsOf(instruction))
    store(block, destination, result);
}

PlanExecution::Contents PlanExecution::load(const Block &block, const Operand &operand,
                                            uint32_t count) {
  Contents contents;
  if (operand.kind == OperandKind::Connection) {
    std::deque<Contents> &queue = queues[{operand.index, block.rank}];
    contents = std::move(queue.front());
    queue.pop_front();
    if (contents.size() != count)
      fail("a message has another count than its receiver");
    return contents;
  }
  for (uint32_t i = 0; i < count; ++i) {
    auto found = memory.find(address(operand.rank, operand.kind, operand.index + i));
    if (found == memory.end())
      fail("rank " + std::to_string(block.rank) + " reads what was never written");
    else
      contents.push_back(found->second);
  }
  return contents;
}

PlanExecution::Contents PlanExecution::reduce(const std::vector<Contents> &operands,
                                              const Instruction &instruction) {
  Contents result = operands[0];
  for (uint32_t i = 0; i < instruction.count; ++i) {
    Content &content = result[i];
    for (const Contents &operand : std::span(operands).subspan(1)) {
      content.expression = expressions.sum(content.expression, operand[i].expression);
      content.finals = std::max(content.finals, operand[i].finals);
      if (!plan.uniformChunks && operand[i].extent != content.extent)
        fail("operands of different sizes");
    }
    content.finals += instruction.final;
    if (!plan.uniformChunks && content.extent != (instruction.extent + i) % plan.partChunks)
      fail("a value has another size than its instruction");
  }
  return result;
}

void PlanExecution::store(const Block &block, const Operand &operand, const Contents &contents) {
  if (operand.kind == OperandKind::Connection) {
    const plan::Connection &connection = plan.connections[operand.index];
    if (connection.source != block.rank)
      fail("rank " + std::to_string(block.rank) + " sends on a connection of another");
    for (uint32_t destination : plan.destinationsOf(connection))
      queues[{operand.index, destination}].push_back(contents);
    return;
  }
  if (operand.kind == OperandKind::Input && !inPlace)
    fail("the input is written out of place");
  for (uint32_t i = 0; i < contents.size(); ++i) {
    uint32_t chunk = operand.index + i;
    if (!plan.uniformChunks && operand.kind != OperandKind::Scratch &&
        chunk % plan.partChunks != contents[i].extent)
      fail("a value is stored where chunks have another size");
    memory[address(operand.rank, operand.kind, chunk)] = contents[i];
  }
}

std::optional<PlanExecution::Content> PlanExecution::output(uint32_t rank, uint32_t chunk) {
  auto found = memory.find(address(rank, OperandKind::Output, chunk));
  return found == memory.end() ? std::nullopt : std::optional(found->second);
}

} // namespace occl::random
