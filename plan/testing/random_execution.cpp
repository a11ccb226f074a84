#include "plan/testing/random_execution.h"

#include <algorithm>
#include <deque>
#include <map>

namespace occl::plan::testing {

namespace {

class Machine {
public:
  Machine(const Plan &plan, bool inPlace, std::mt19937 &random)
      : plan(plan), inPlace(inPlace), random(random), next(plan.threadBlocks.size()) {
    for (uint32_t r = 0; r < plan.numRanks; ++r) {
      entry.emplace_back(plan.ranks[r].inputChunks);
      for (uint32_t c = 0; c < plan.ranks[r].inputChunks; ++c)
        cell(r, OperandKind::Input, c) = entry[r][c] = random();
    }
  }

  std::string run() {
    std::vector<std::pair<uint32_t, uint32_t>> blocks; // rank, thread block
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      for (uint32_t b = 0; b < plan.ranks[r].numThreadBlocks; ++b)
        blocks.emplace_back(r, plan.ranks[r].firstThreadBlock + b);
    while (!blocks.empty()) {
      // Any that can may go next, often the same again: extreme orders find more than fair ones.
      std::shuffle(blocks.begin(), blocks.end(), random);
      bool progressed = false;
      for (size_t i = 0; i < blocks.size() && !progressed; ++i) {
        auto [rank, block] = blocks[i];
        uint32_t steps = 1 + random() % 4;
        while (steps-- > 0 && next[block] < plan.threadBlocks[block].numInstructions &&
               step(rank, block))
          progressed = true;
        if (next[block] == plan.threadBlocks[block].numInstructions)
          blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(i)), progressed = true;
      }
      if (!progressed)
        return "deadlock";
    }
    for (const auto &[key, queue] : queues)
      if (!queue.empty())
        return "message left over";
    return check();
  }

private:
  using Cell = std::tuple<uint32_t, OperandKind, uint32_t>;

  uint64_t &cell(uint32_t rank, OperandKind kind, uint32_t chunk) {
    const RankPlan &buffers = plan.ranks[rank];
    int64_t asOutput = int64_t{chunk} + buffers.inPlaceOffset;
    if (inPlace && kind == OperandKind::Input && asOutput >= 0 && asOutput < buffers.outputChunks)
      return cell(rank, OperandKind::Output, static_cast<uint32_t>(asOutput));
    auto [found, isNew] = memory.try_emplace({rank, kind, chunk}, 0);
    if (isNew)
      found->second = random(); // undefined
    return found->second;
  }

  bool step(uint32_t rank, uint32_t block) {
    const Instruction &instruction =
        plan.instructions[plan.threadBlocks[block].firstInstruction + next[block]];
    for (const Dependency &d : plan.dependenciesOf(instruction))
      if (next[plan.ranks[rank].firstThreadBlock + d.threadBlock] <= d.instruction)
        return false;
    for (const Operand &o : plan.sourcesOf(instruction))
      if (instruction.opcode == Opcode::Wait) {
        if (signals[o.index] < instruction.value)
          return false;
      } else if (o.kind == OperandKind::Connection && queues[{o.index, rank}].empty())
        return false;
    for (const Operand &o : plan.destinationsOf(instruction))
      if (o.kind == OperandKind::Connection)
        for (uint32_t peer : plan.destinationsOf(plan.connections[o.index]))
          if (queues[{o.index, peer}].size() >= plan.depth)
            return false;
    if (instruction.opcode == Opcode::Signal)
      ++signals[plan.destinationsOf(instruction)[0].index];
    else if (instruction.opcode != Opcode::Wait)
      move(rank, instruction);
    ++next[block];
    return true;
  }

  void move(uint32_t rank, const Instruction &instruction) {
    std::vector<uint64_t> sum(instruction.count);
    for (const Operand &o : plan.sourcesOf(instruction)) {
      for (uint32_t i = 0; i < instruction.count; ++i) {
        if (o.kind != OperandKind::Connection)
          sum[i] += cell(o.rank, o.kind, o.index + i);
        else if (i < queues[{o.index, rank}].front().size())
          sum[i] += queues[{o.index, rank}].front()[i];
      }
      if (o.kind == OperandKind::Connection)
        queues[{o.index, rank}].pop_front();
    }
    for (const Operand &o : plan.destinationsOf(instruction))
      if (o.kind == OperandKind::Connection)
        for (uint32_t peer : plan.destinationsOf(plan.connections[o.index]))
          queues[{o.index, peer}].push_back(sum);
      else
        for (uint32_t i = 0; i < instruction.count; ++i)
          cell(o.rank, o.kind, o.index + i) = sum[i];
  }

  std::string check() {
    uint32_t part = plan.partChunks;
    for (uint32_t r = 0; r < plan.numRanks; ++r) {
      for (uint32_t c = 0; c < plan.ranks[r].outputChunks; ++c) {
        bool isFree = plan.collective == "reduce" && r != plan.root;
        if (!isFree && cell(r, OperandKind::Output, c) != expected(r, c, part))
          return "wrong value on rank " + std::to_string(r) + ", chunk " + std::to_string(c);
      }
      for (uint32_t c = 0; c < plan.ranks[r].inputChunks && !inPlace; ++c)
        if (cell(r, OperandKind::Input, c) != entry[r][c])
          return "input destroyed";
    }
    return "";
  }

  uint64_t sumOf(uint32_t chunk) const {
    uint64_t sum = 0;
    for (const std::vector<uint64_t> &input : entry)
      sum += input[chunk];
    return sum;
  }

  uint64_t expected(uint32_t rank, uint32_t chunk, uint32_t part) const {
    if (plan.collective == "allgather")
      return entry[chunk / part][chunk % part];
    if (plan.collective == "alltoall")
      return entry[chunk / part][rank * part + chunk % part];
    if (plan.collective == "broadcast")
      return entry[plan.root][chunk];
    return sumOf(plan.collective == "reducescatter" ? rank * part + chunk : chunk);
  }

  const Plan &plan;
  bool inPlace;
  std::mt19937 &random;
  std::vector<uint32_t> next; // of each thread block
  std::vector<std::vector<uint64_t>> entry;
  std::map<Cell, uint64_t> memory;
  std::map<uint32_t, uint32_t> signals; // of each counter
  std::map<std::pair<uint32_t, uint32_t>, std::deque<std::vector<uint64_t>>> queues;
};

} // namespace

std::string executeRandomly(const Plan &plan, bool inPlace, std::mt19937 &random) {
  return Machine(plan, inPlace, random).run();
}

} // namespace occl::plan::testing
