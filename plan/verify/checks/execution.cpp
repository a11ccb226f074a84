#include "plan/verify/checks/execution.h"

#include "plan/machine/drivers.h"
#include "plan/model/limits.h"

namespace occl::plan::verify {

namespace {

using machine::kUnbounded;
using machine::Need;
using machine::Part;
using machine::Wait;

/// The plan as the abstract machine runs it: its thread blocks, with dependencies first, then
/// sources, then destinations as the parts of an instruction.
class ThreadBlocks {
public:
  explicit ThreadBlocks(const Network &network) : plan(network.plan), network(network) {}

  uint32_t numBlocks() const { return static_cast<uint32_t>(plan.threadBlocks.size()); }
  uint32_t numConnections() const { return static_cast<uint32_t>(plan.connections.size()); }
  uint32_t numEnds() const { return static_cast<uint32_t>(plan.destinations.size()); }
  uint32_t numInstructions() const { return static_cast<uint32_t>(plan.instructions.size()); }
  uint32_t numInstructions(uint32_t block) const {
    return plan.threadBlocks[block].numInstructions;
  }
  uint32_t indexOf(uint32_t block, uint32_t position) const {
    return plan.threadBlocks[block].firstInstruction + position;
  }
  uint32_t numParts(uint32_t block, uint32_t position) const {
    const Instruction &instruction = at(block, position);
    return instruction.numDependencies + instruction.numSources + instruction.numDestinations;
  }
  Part part(uint32_t block, uint32_t position, uint32_t i) const {
    const Instruction &instruction = at(block, position);
    if (i < instruction.numDependencies) {
      const Dependency &dependency = plan.dependencies[instruction.firstDependency + i];
      return {.kind = Part::Kind::Dependency,
              .block =
                  plan.ranks[network.rankOfBlock[block]].firstThreadBlock + dependency.threadBlock,
              .position = dependency.instruction};
    }
    const Operand &operand = plan.operands[operandOf(instruction, i)];
    if (operand.kind != OperandKind::Connection)
      return {};
    if (i < instruction.numDependencies + instruction.numSources)
      return {.kind = Part::Kind::Receive, .connection = operand.index};
    return {.kind =
                plan.connections[operand.index].isCounter ? Part::Kind::Signal : Part::Kind::Send,
            .connection = operand.index};
  }
  uint32_t numberOf(const machine::Counts &, uint32_t block, uint32_t position, uint32_t i) const {
    return network.ordinal[operandOf(at(block, position), i)];
  }
  uint32_t endOf(uint32_t connection, uint32_t block) const {
    return endpointOf(plan, plan.connections[connection], network.rankOfBlock[block]);
  }
  uint32_t firstEnd(uint32_t connection) const {
    return plan.connections[connection].firstDestination;
  }
  uint32_t numEndsOf(uint32_t connection) const {
    return plan.connections[connection].numDestinations;
  }
  uint32_t senderOf(uint32_t connection) const { return network.sender[connection]; }
  uint32_t receiverOf(uint32_t end) const { return network.receiver[end]; }

private:
  const Instruction &at(uint32_t block, uint32_t position) const {
    return plan.instructions[indexOf(block, position)];
  }
  static uint32_t operandOf(const Instruction &instruction, uint32_t i) {
    return instruction.firstOperand + i - instruction.numDependencies;
  }

  const Plan &plan;
  const Network &network;
};

/// One greedy execution of the plan, and why it stopped short.
class Executor {
public:
  Executor(const Network &network, uint32_t depth)
      : plan(network.plan), depth(depth), blocks(network), greedy(blocks, depth) {}

  /// True if every thread block came to its end. Calls ran(instruction) for each.
  template <class Ran> bool run(Ran ran) {
    return greedy.run(
        [&](uint32_t block, uint32_t position) { ran(blocks.indexOf(block, position)); });
  }

  /// Longer cycles are cut in the middle.
  static constexpr size_t kMaxLines = 20;

  /// After run() was false: who waits for whom in a circle. A stuck thread block waits for one that
  /// is stuck itself, as all messages have a sender and a receiver.
  std::vector<Note> cycle() const {
    uint32_t block = 0;
    while (greedy.state().isDone(block))
      ++block;
    auto waitedFor = [&](uint32_t of) { return greedy.state().blockThatEnds(greedy.waitOf(of)); };
    std::vector<bool> seen(blocks.numBlocks());
    for (; !seen[block]; block = waitedFor(block))
      seen[block] = true;
    std::vector<Note> lines;
    uint32_t first = block;
    do {
      lines.push_back(noteAt(plan, blocks.indexOf(block, greedy.state().next(block)), "",
                             " waits for " + waitText(greedy.waitOf(block))));
      block = waitedFor(block);
    } while (block != first);
    if (lines.size() > kMaxLines) {
      size_t cut = lines.size() - kMaxLines;
      auto middle = lines.begin() + kMaxLines / 2;
      *middle = {"... and " + std::to_string(cut + 1) + " more ..."};
      lines.erase(middle + 1, middle + 1 + static_cast<ptrdiff_t>(cut));
    }
    return lines;
  }

private:
  std::string waitText(const Wait &wait) const {
    if (wait.need == Need::Dependency)
      return "its dependency on " +
             describePlace(placeOf(plan, blocks.indexOf(wait.block, wait.position)));
    const Connection &connection = plan.connections[wait.connection];
    std::string name = "connection " + std::to_string(wait.connection) + " (" +
                       describeConnection(plan, connection) + ")";
    if (wait.need == Need::Message)
      return (connection.isCounter ? "a signal of " : "data from ") + name;
    return "room in " + name + ": rank " + std::to_string(plan.destinations[wait.end]) +
           " has not received the " +
           (depth == 1 ? "message" : std::to_string(depth) + " messages") + " before";
  }

  const Plan &plan;
  uint32_t depth;
  ThreadBlocks blocks;
  machine::Greedy<ThreadBlocks> greedy;
};

bool completes(const Network &network, uint32_t depth) {
  return Executor(network, depth).run([](uint32_t) {});
}

/// The smallest depth in (fails, works] that suffices.
uint32_t searchDepth(const Network &network, uint32_t fails, uint32_t works) {
  while (works - fails > 1) {
    uint32_t middle = fails + (works - fails) / 2;
    (completes(network, middle) ? works : fails) = middle;
  }
  return works;
}

} // namespace

uint32_t smallestDepth(const Network &network, uint32_t depth) {
  uint32_t fails = 0;
  // Most plans need one or two messages in flight: look there first.
  for (uint32_t guess : {1, 2})
    if (guess < depth) {
      if (completes(network, guess))
        return guess;
      fails = guess;
    }
  return searchDepth(network, fails, depth);
}

Finding checkDeadlock(const Network &network, Execution &execution) {
  const Plan &plan = network.plan;
  execution.order.reserve(plan.instructions.size());
  Executor executor(network, plan.depth);
  if (executor.run([&](uint32_t instruction) { execution.order.push_back(instruction); }))
    return {};
  std::string advice = "no depth helps: reorder the instructions";
  Code code = Code::Deadlock;
  if (completes(network, kUnbounded)) {
    code = Code::TooLittleDepth;
    uint32_t works = plan.depth;
    uint32_t fails = works;
    while (!completes(network, works))
      fails = std::exchange(works, works * 2);
    uint32_t needed = searchDepth(network, fails, works);
    advice = "depth " + std::to_string(needed) + " is needed" +
             (needed > limits::kMaxDepth ? ", but allowed are " + std::to_string(limits::kMaxDepth)
                                         : "");
  }
  return VerifyError{.code = code,
                     .message = "the plan deadlocks at depth " + std::to_string(plan.depth) + "; " +
                                advice,
                     .witness = executor.cycle(),
                     .path = code == Code::TooLittleDepth ? "depth" : ""};
}

} // namespace occl::plan::verify
