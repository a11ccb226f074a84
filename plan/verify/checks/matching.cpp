#include "plan/verify/checks/network.h"

#include <algorithm>

namespace occl::plan::verify {

uint32_t endpointOf(const Plan &plan, const Connection &connection, uint32_t rank) {
  std::span<const uint32_t> ranks = plan.destinationsOf(connection);
  // Almost all connections have one destination; the others are sorted, which the shape's proof has
  // checked.
  auto found = ranks.size() == 1 ? ranks.begin() + (ranks[0] != rank)
                                 : std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end() || *found != rank)
    return kNone;
  return connection.firstDestination + static_cast<uint32_t>(found - ranks.begin());
}

namespace {

class Matcher {
public:
  explicit Matcher(Network &network)
      : plan(network.plan), network(network), received(plan.destinations.size()) {}

  Finding run() {
    // The tables by plain indices, filled in three passes: who owns each end and the ordinals, then
    // a list of sends by connection and ordinal, then what each receive gets.
    network.blockOf.resize(plan.instructions.size());
    network.ordinal.resize(plan.operands.size());
    network.sender.assign(plan.connections.size(), kNone);
    network.receiver.assign(plan.destinations.size(), kNone);
    for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
      network.rankOfBlock.insert(network.rankOfBlock.end(), plan.ranks[rank].numThreadBlocks, rank);
    if (Finding finding = assignEnds())
      return finding;
    listSends();
    if (Finding finding = compareMessages())
      return finding;
    return compareNumbers();
  }

private:
  /// Owners of ends, and the ordinal of each message at either end.
  Finding assignEnds() {
    // Counts sends in the entry behind the connection's own, so that listSends() only has to add
    // them up to get offsets.
    network.firstSend.assign(plan.connections.size() + 1, 0);
    for (uint32_t block = 0; block < plan.threadBlocks.size(); ++block) {
      uint32_t instruction = plan.threadBlocks[block].firstInstruction;
      uint32_t end = instruction + plan.threadBlocks[block].numInstructions;
      for (; instruction < end; ++instruction) {
        network.blockOf[instruction] = block;
        if (Finding finding = assignEnds(instruction, block))
          return finding;
      }
    }
    return {};
  }

  Finding assignEnds(uint32_t index, uint32_t block) {
    const Instruction &instruction = plan.instructions[index];
    uint32_t operand = instruction.firstOperand;
    for (uint32_t i = 0; i < instruction.numSources; ++i, ++operand) {
      // Buffers have no FIFO.
      if (plan.operands[operand].kind != OperandKind::Connection)
        continue;
      uint32_t connection = plan.operands[operand].index;
      uint32_t end = endpointOf(plan, plan.connections[connection], network.rankOfBlock[block]);
      // A receive takes the next message; a wait names its signal by number, from 1, and several
      // may wait for the same.
      network.ordinal[operand] =
          instruction.opcode == Opcode::Wait ? instruction.value - 1 : received[end]++;
      if (Finding finding = claim(network.receiver[end], block, index, connection, "receive from"))
        return finding;
    }
    for (uint32_t i = 0; i < instruction.numDestinations; ++i, ++operand) {
      if (plan.operands[operand].kind != OperandKind::Connection)
        continue;
      uint32_t connection = plan.operands[operand].index;
      // The ordinal of a send is how many went before it on this connection.
      network.ordinal[operand] = network.firstSend[connection + 1]++;
      if (Finding finding = claim(network.sender[connection], block, index, connection, "send to"))
        return finding;
    }
    return {};
  }

  Finding claim(uint32_t &owner, uint32_t block, uint32_t instruction, uint32_t connection,
                const char *what) {
    // The first thread block that uses an end owns it. Two would race for the FIFO's position, and
    // the order of messages would depend on the schedule.
    if (owner == kNone)
      owner = block;
    if (owner == block)
      return {};
    uint32_t first = plan.ranks[network.rankOfBlock[block]].firstThreadBlock;
    VerifyError error = errorAt(
        plan, instruction, Code::SharedEnd,
        "thread blocks " + std::to_string(owner - first) + " and " + std::to_string(block - first) +
            " both " + what + " connection " + std::to_string(connection) + " (" +
            describeConnection(plan, plan.connections[connection]) + "): one must own that end");
    error.witness = {noteAt(plan, firstUse(owner, connection), "the other one: ")};
    return error;
  }

  /// The first instruction of a thread block that names a connection.
  uint32_t firstUse(uint32_t block, uint32_t connection) const {
    uint32_t index = plan.threadBlocks[block].firstInstruction;
    auto names = [&](uint32_t instruction) {
      const Instruction &user = plan.instructions[instruction];
      auto begin = plan.operands.begin() + user.firstOperand;
      return std::any_of(
          begin, begin + user.numSources + user.numDestinations, [&](const Operand &operand) {
            return operand.kind == OperandKind::Connection && operand.index == connection;
          });
    };
    while (!names(index))
      ++index;
    return index;
  }

  void listSends() {
    // The counts become offsets (prefix sums), and each send goes to its place.
    for (size_t c = 0; c < plan.connections.size(); ++c)
      network.firstSend[c + 1] += network.firstSend[c];
    network.sends.resize(network.firstSend.back());
    forEachMessage(false, [&](uint32_t instruction, uint32_t connection, uint32_t ordinal) {
      network.sends[network.firstSend[connection] + ordinal] = instruction;
      return Finding();
    });
  }

  Finding compareMessages() {
    return forEachMessage(true, [&](uint32_t instruction, uint32_t connection, uint32_t ordinal) {
      return compare(instruction, connection, ordinal);
    });
  }

  Finding compare(uint32_t receive, uint32_t connection, uint32_t ordinal) {
    // Counters first: of these more waits than signals are an error of another kind, and fewer are
    // none.
    if (ordinal >= network.numMessages(connection) && plan.connections[connection].isCounter)
      return errorAt(plan, receive, Code::NeverSignalled,
                     "it waits for signal " + std::to_string(ordinal + 1) + " of counter " +
                         std::to_string(connection) + " (" +
                         describeConnection(plan, plan.connections[connection]) + "), of which " +
                         std::to_string(network.numMessages(connection)) + " are given");
    if (ordinal >= network.numMessages(connection))
      return errorAt(plan, receive, Code::NeverSent,
                     "it receives message " + std::to_string(ordinal) + " of connection " +
                         std::to_string(connection) + " (" +
                         describeConnection(plan, plan.connections[connection]) + "), of which " +
                         std::to_string(network.numMessages(connection)) + " are sent");
    // The ordinals agree, so this is the message that it gets, whatever happens at run time: that
    // is what FIFOs give.
    uint32_t send = network.sends[network.firstSend[connection] + ordinal];
    const Instruction &from = plan.instructions[send], &to = plan.instructions[receive];
    // Both ends move the same number of chunks of the same sizes, or slices would not fit into the
    // other's.
    if (from.count == to.count && from.extent == to.extent)
      return {};
    VerifyError error =
        errorAt(plan, receive, Code::WrongMessage,
                "it expects " + sizeText(to) + ", but message " + std::to_string(ordinal) +
                    " of connection " + std::to_string(connection) + " has " + sizeText(from));
    error.witness = {noteAt(plan, send, "sent by "), noteAt(plan, receive, "received by ")};
    return error;
  }

  static std::string sizeText(const Instruction &instruction) {
    return std::to_string(instruction.count) + " chunks of extent " +
           std::to_string(instruction.extent);
  }

  /// No end may receive less than was sent; more was found before. A signal need not be waited for.
  Finding compareNumbers() {
    for (uint32_t c = 0; c < plan.connections.size(); ++c) {
      const Connection &connection = plan.connections[c];
      // Counters keep their value; nobody has to take it.
      if (connection.isCounter)
        continue;
      for (uint32_t i = 0; i < connection.numDestinations; ++i) {
        uint32_t end = connection.firstDestination + i;
        if (received[end] == network.numMessages(c))
          continue;
        // `received` is the number that this end takes, and so the ordinal of the first message
        // that stays in the FIFO, where it would block the next invocation.
        return errorAt(
            plan, network.sends[network.firstSend[c] + received[end]], Code::NeverReceived,
            "it sends message " + std::to_string(received[end]) + " of connection " +
                std::to_string(c) + " (" + describeConnection(plan, connection) + "), which rank " +
                std::to_string(plan.destinations[end]) + " never receives");
      }
    }
    return {};
  }

  /// Calls `visit(instruction, connection, ordinal)` for all receives or all sends until it finds
  /// something.
  template <typename Visit> Finding forEachMessage(bool receives, const Visit &visit) {
    for (uint32_t index = 0; index < plan.instructions.size(); ++index) {
      const Instruction &instruction = plan.instructions[index];
      uint32_t operand = instruction.firstOperand + (receives ? 0 : instruction.numSources);
      uint32_t end = operand + (receives ? instruction.numSources : instruction.numDestinations);
      for (; operand < end; ++operand) {
        if (plan.operands[operand].kind != OperandKind::Connection)
          continue;
        if (Finding finding = visit(index, plan.operands[operand].index, network.ordinal[operand]))
          return finding;
      }
    }
    return {};
  }

  const Plan &plan;
  Network &network;
  std::vector<uint32_t> received; // of each receiving end
};

} // namespace

Finding checkMatching(Network &network) { return Matcher(network).run(); }

} // namespace occl::plan::verify
