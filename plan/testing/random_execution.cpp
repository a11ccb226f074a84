#include "plan/testing/random_execution.h"

#include "plan/collectives/promise.h"

#include <algorithm>
#include <deque>
#include <map>

namespace occl::plan::testing {

namespace {

/// What a chunk holds.
struct Value {
  uint64_t sum = 0;
  bool isDefined = false;
  bool isFinal = false; // passed a reduction that is marked so
  uint32_t extent = 0;
};
using Message = std::vector<Value>;

class Machine {
public:
  Machine(const Plan &plan, bool inPlace, std::mt19937 &random)
      : plan(plan), inPlace(inPlace), random(random), next(plan.threadBlocks.size()) {
    for (uint32_t r = 0; r < plan.numRanks; ++r) {
      entry.emplace_back(plan.ranks[r].inputChunks);
      for (uint32_t c = 0; c < plan.ranks[r].inputChunks; ++c) {
        entry[r][c] = random();
        cell(r, OperandKind::Input, c) = {entry[r][c], true, false, c % plan.partChunks};
      }
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
        return "deadlock"; // whatever was read before
    }
    for (const auto &[key, queue] : queues)
      if (!queue.empty())
        say("message left over");
    check();
    return fault;
  }

private:
  using Cell = std::tuple<uint32_t, OperandKind, uint32_t>;

  /// The first fault counts.
  void say(const std::string &what) {
    if (fault.empty())
      fault = what;
  }

  Value &cell(uint32_t rank, OperandKind kind, uint32_t chunk) {
    const RankPlan &buffers = plan.ranks[rank];
    int64_t asOutput = int64_t{chunk} + buffers.inPlaceOffset;
    if (inPlace && kind == OperandKind::Input && asOutput >= 0 && asOutput < buffers.outputChunks)
      return cell(rank, OperandKind::Output, static_cast<uint32_t>(asOutput));
    auto [found, isNew] = memory.try_emplace({rank, kind, chunk});
    if (isNew)
      found->second.sum = random();
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
    Message result(instruction.count);
    for (uint32_t i = 0; i < instruction.count; ++i)
      result[i] = {0, true, instruction.final, (instruction.extent + i) % plan.partChunks};
    for (const Operand &o : plan.sourcesOf(instruction)) {
      Message source;
      if (o.kind == OperandKind::Connection) {
        source = queues[{o.index, rank}].front();
        queues[{o.index, rank}].pop_front();
      } else {
        for (uint32_t i = 0; i < instruction.count; ++i)
          source.push_back(cell(o.rank, o.kind, o.index + i));
      }
      reduce(instruction, source, result);
    }
    for (const Operand &o : plan.destinationsOf(instruction))
      if (o.kind == OperandKind::Connection)
        for (uint32_t peer : plan.destinationsOf(plan.connections[o.index]))
          queues[{o.index, peer}].push_back(result);
      else
        for (uint32_t i = 0; i < instruction.count; ++i)
          cell(o.rank, o.kind, o.index + i) = result[i];
  }

  void reduce(const Instruction &instruction, const Message &source, Message &result) {
    if (source.size() != result.size())
      return say("message of another size");
    for (size_t i = 0; i < source.size(); ++i) {
      if (!source[i].isDefined)
        say("undefined read");
      if (source[i].isFinal && instruction.numSources > 1)
        say("reduced after the final reduction");
      if (source[i].extent != result[i].extent && !plan.uniformChunks)
        say("chunk of another size");
      result[i].sum += source[i].sum;
      result[i].isFinal = result[i].isFinal || source[i].isFinal;
    }
  }

  void check() {
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      for (uint32_t c = 0; c < plan.ranks[r].inputChunks && !inPlace; ++c)
        if (cell(r, OperandKind::Input, c).sum != entry[r][c])
          say("input destroyed");
    if (const auto standard = standardCollectiveOf(plan.collective))
      checkStandard(*standard);
    checkRequirements();
  }

  void checkStandard(StandardCollective collective) {
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      for (uint32_t c = 0; c < plan.ranks[r].outputChunks; ++c) {
        const std::optional<Goal> goal = goalOf(plan, collective, r, c);
        std::vector<Contribution> contributions;
        for (uint32_t from = 0; goal && from < plan.numRanks; ++from)
          if (goal->ofAllRanks || from == goal->rank)
            contributions.push_back({from, static_cast<uint32_t>(goal->index)});
        if (goal)
          checkChunk(r, c, contributions);
      }
  }

  void checkRequirements() {
    for (const Requirement &requirement : plan.requirements)
      for (uint32_t i = 0; i < requirement.count; ++i) {
        std::vector<Contribution> contributions;
        for (Contribution contribution : plan.contributionsOf(requirement))
          contributions.push_back({contribution.rank, contribution.chunk + i});
        checkChunk(requirement.rank, requirement.outputChunk + i, contributions);
      }
  }

  void checkChunk(uint32_t rank, uint32_t chunk, const std::vector<Contribution> &contributions) {
    uint64_t sum = 0;
    for (const Contribution &contribution : contributions)
      sum += entry[contribution.rank][contribution.chunk];
    const Value &value = cell(rank, OperandKind::Output, chunk);
    if (!value.isDefined || value.sum != sum)
      say("wrong value on rank " + std::to_string(rank) + ", chunk " + std::to_string(chunk));
    if (value.isFinal != (contributions.size() > 1))
      say("wrong final mark");
  }

  const Plan &plan;
  bool inPlace;
  std::mt19937 &random;
  std::vector<uint32_t> next; // of each thread block
  std::vector<std::vector<uint64_t>> entry;
  std::map<Cell, Value> memory;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Message>> queues; // connection, destination
  std::map<uint32_t, uint32_t> signals;                                // of each counter
  std::string fault;
};

} // namespace

std::string executeRandomly(const Plan &plan, bool inPlace, std::mt19937 &random) {
  return Machine(plan, inPlace, random).run();
}

} // namespace occl::plan::testing
