#include "plan/testing/orders.h"

#include <map>

namespace occl::plan::testing {

Orders::Orders(const Plan &plan)
    : plan(plan), rankOf(plan.instructions.size()), successors(2 * plan.instructions.size()),
      receivers(plan.instructions.size()) {
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    std::span<const ThreadBlock> blocks = plan.threadBlocksOf(plan.ranks[r]);
    for (const ThreadBlock &block : blocks)
      for (uint32_t i = 0; i < block.numInstructions; ++i) {
        uint32_t index = block.firstInstruction + i;
        rankOf[index] = r;
        successors[2 * index].push_back(2 * index + 1);
        if (i + 1 < block.numInstructions)
          successors[2 * index + 1].push_back(2 * (index + 1));
        for (const Dependency &d : plan.dependenciesOf(plan.instructions[index]))
          successors[2 * (blocks[d.threadBlock].firstInstruction + d.instruction) + 1].push_back(
              2 * index);
      }
  }
  addMessages();
}

/// Who receives the first slice of a message knows that its sender has begun; who has received it
/// all, that the sender has sent it all.
void Orders::addMessages() {
  std::map<uint32_t, std::vector<uint32_t>> sends;               // of each connection
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numReceived; // connection, rank
  for (uint32_t i = 0; i < plan.instructions.size(); ++i)
    for (const Operand &o : plan.destinationsOf(plan.instructions[i]))
      if (o.kind == OperandKind::Connection)
        sends[o.index].push_back(i);
  for (uint32_t i = 0; i < plan.instructions.size(); ++i)
    for (const Operand &o : plan.sourcesOf(plan.instructions[i])) {
      if (o.kind != OperandKind::Connection)
        continue;
      bool isWait = plan.instructions[i].opcode == Opcode::Wait;
      uint32_t number =
          isWait ? plan.instructions[i].value - 1 : numReceived[{o.index, rankOf[i]}]++;
      const Connection &connection = plan.connections[o.index];
      if (!connection.isOrdered && !connection.isCounter)
        continue;
      uint32_t send = sends[o.index].at(number);
      successors[2 * send].push_back(2 * i);
      successors[2 * send + 1].push_back(2 * i + 1);
      receivers[send].push_back(i);
    }
}

std::vector<bool> Orders::eventsAfter(Event event) const {
  std::vector<bool> after(successors.size());
  std::vector<Event> open = {event};
  while (!open.empty()) {
    Event next = open.back();
    open.pop_back();
    for (Event successor : successors[next])
      if (!after[successor]) {
        after[successor] = true;
        open.push_back(successor);
      }
  }
  return after;
}

/// The instructions that receive what this one sends, directly or passed on at once.
std::vector<bool> Orders::inStepAfter(uint32_t instruction) const {
  std::vector<bool> after(receivers.size());
  std::vector<uint32_t> open = {instruction};
  while (!open.empty()) {
    uint32_t next = open.back();
    open.pop_back();
    for (uint32_t receiver : receivers[next])
      if (!after[receiver]) {
        after[receiver] = true;
        open.push_back(receiver);
      }
  }
  return after;
}

std::vector<Orders::Access> Orders::accessesOf(uint32_t index, bool inPlace) const {
  std::vector<Access> accesses;
  const Instruction &instruction = plan.instructions[index];
  auto add = [&](const Operand &operand, bool isWrite) {
    for (uint32_t i = 0; i < instruction.count && operand.kind != OperandKind::Connection; ++i) {
      int64_t chunk = int64_t{operand.index} + i;
      OperandKind kind = operand.kind;
      const RankPlan &rank = plan.ranks[operand.rank];
      int64_t asOutput = chunk + rank.inPlaceOffset;
      if (inPlace && kind == OperandKind::Input && asOutput >= 0 && asOutput < rank.outputChunks) {
        kind = OperandKind::Output;
        chunk = asOutput;
      }
      uint64_t buffer = uint64_t{operand.rank} * 4 + static_cast<uint64_t>(kind);
      accesses.push_back({buffer << 32 | static_cast<uint64_t>(chunk), i, isWrite});
    }
  };
  for (const Operand &operand : plan.sourcesOf(instruction))
    add(operand, false);
  for (const Operand &operand : plan.destinationsOf(instruction))
    add(operand, true);
  // What is copied onto itself, in place, is only read.
  if (instruction.opcode == Opcode::Copy)
    std::erase_if(accesses, [&](const Access &access) {
      return access.isWrite && access.location == accesses[access.chunk].location;
    });
  return accesses;
}

bool Orders::conflicts(uint32_t first, uint32_t second, bool inPlace, bool firstInStepBefore,
                       bool secondInStepBefore) const {
  std::vector<Access> others = accessesOf(second, inPlace);
  for (const Access &a : accessesOf(first, inPlace))
    for (const Access &b : others) {
      bool isOrdered =
          (firstInStepBefore && a.chunk <= b.chunk) || (secondInStepBefore && b.chunk <= a.chunk);
      if (a.location == b.location && (a.isWrite || b.isWrite) && !isOrdered)
        return true;
    }
  return false;
}

bool Orders::isRace(uint32_t first, uint32_t second, bool inPlace) const {
  if (first == second || eventsAfter(2 * first + 1)[2 * second] ||
      eventsAfter(2 * second + 1)[2 * first])
    return false;
  return conflicts(first, second, inPlace, inStepAfter(first)[second], inStepAfter(second)[first]);
}

std::optional<std::pair<uint32_t, uint32_t>> Orders::findRace(bool inPlace) const {
  for (uint32_t first = 0; first < rankOf.size(); ++first) {
    std::vector<bool> after = eventsAfter(2 * first + 1);
    for (uint32_t second = first + 1; second < rankOf.size(); ++second)
      if (!after[2 * second] && conflicts(first, second, inPlace, false, false) &&
          isRace(first, second, inPlace))
        return {{first, second}};
  }
  return std::nullopt;
}

} // namespace occl::plan::testing
