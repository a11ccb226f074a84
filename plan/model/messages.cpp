#include "plan/model/messages.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace occl::plan {

namespace {

/// Calls visit(rank, index of the instruction), rank after rank.
template <class Visit> void forEachInstruction(const Plan &plan, Visit visit) {
  for (uint32_t rank = 0; rank < plan.ranks.size(); ++rank)
    for (const ThreadBlock &block : plan.threadBlocksOf(plan.ranks[rank]))
      for (uint32_t i = 0; i < block.numInstructions; ++i)
        visit(rank, block.firstInstruction + i);
}

} // namespace

std::vector<Message> messagesOf(const Plan &plan) {
  // Number k of a connection's senders has sent its message k: a connection is a FIFO, and one
  // thread block owns its sending end, whose instructions are in order.
  std::vector<std::vector<uint32_t>> senders(plan.connections.size());
  forEachInstruction(plan, [&](uint32_t, uint32_t i) {
    for (const Operand &operand : plan.destinationsOf(plan.instructions[i]))
      if (operand.kind == OperandKind::Connection)
        senders[operand.index].push_back(i);
  });

  std::vector<Message> messages;
  // A multicast has receivers on several ranks, each of which takes the messages from the first one
  // on.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> taken; // by connection and rank
  forEachInstruction(plan, [&](uint32_t rank, uint32_t i) {
    const Instruction &instruction = plan.instructions[i];
    for (const Operand &operand : plan.sourcesOf(instruction)) {
      if (operand.kind != OperandKind::Connection)
        continue;
      const bool isSignal = plan.connections[operand.index].isCounter;
      // Signals are counted, not queued: a wait for n waits for the n-th and takes none away.
      const uint32_t number = isSignal ? instruction.value - 1 : taken[{operand.index, rank}]++;
      // A plan that was not verified may receive what nobody sends; then there is no such message.
      if (number < senders[operand.index].size())
        messages.push_back(
            {senders[operand.index][number], i, rank, operand.index, number, isSignal});
    }
  });
  std::ranges::stable_sort(messages, {}, [](const Message &message) {
    return std::tuple(message.connection, message.destination, message.number);
  });
  return messages;
}

std::string nameOfMessage(const Message &message, uint64_t tile) {
  return std::to_string(message.connection) + "." + std::to_string(message.number) + "." +
         std::to_string(tile) + "." + std::to_string(message.destination);
}

} // namespace occl::plan
