#include "plan/verify/checks/execution.h"

#include "plan/model/limits.h"

namespace occl::plan::verify {

namespace {

/// Depth at which no credit is ever waited for.
constexpr uint32_t kUnbounded = ~0u;

class Executor {
public:
  Executor(const Network &network, uint32_t depth, std::vector<uint32_t> *order)
      : plan(network.plan), network(network), depth(depth), order(order),
        blocks(plan.threadBlocks.size()), sent(plan.connections.size()),
        received(plan.destinations.size()), firstWaiter(plan.instructions.size(), kNone) {}

  /// True if every thread block came to its end.
  bool run() {
    for (uint32_t block = 0; block < blocks.size(); ++block) {
      advance(block);
      while (!ready.empty()) {
        uint32_t next = ready.back();
        ready.pop_back();
        advance(next);
      }
    }
    for (uint32_t block = 0; block < blocks.size(); ++block)
      if (!isDone(block))
        return false;
    return true;
  }

  /// Longer cycles are cut in the middle.
  static constexpr size_t kMaxLines = 20;

  /// After run() was false: who waits for whom in a circle.
  std::vector<Note> cycle() const {
    uint32_t block = 0;
    while (isDone(block))
      ++block;
    std::vector<bool> seen(blocks.size());
    for (; !seen[block]; block = waitedFor(block))
      seen[block] = true;
    std::vector<Note> lines;
    uint32_t first = block;
    do {
      lines.push_back(noteAt(plan, currentOf(block), "", " waits for " + waitText(block)));
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
  enum class Wait : uint8_t { None, Dependency, Data, Credit };
  struct Block {
    uint32_t next = 0;      // position of the instruction to run
    uint32_t condition = 0; // of its conditions, those before this one hold and will stay so
    uint32_t end = 0;       // and within a destination: the receiving ends before this one
    Wait wait = Wait::None;
    uint32_t waitsFor = 0;       // instruction, receiving end (also of a credit)
    uint32_t nextWaiter = kNone; // thread block that waits for the same instruction
  };

  bool isDone(uint32_t block) const {
    return blocks[block].next == plan.threadBlocks[block].numInstructions;
  }
  uint32_t currentOf(uint32_t block) const {
    return plan.threadBlocks[block].firstInstruction + blocks[block].next;
  }

  void advance(uint32_t block) {
    Block &state = blocks[block];
    while (!isDone(block) && canFire(block)) {
      uint32_t instruction = currentOf(block);
      fire(block);
      ++state.next;
      state.condition = state.end = 0;
      wakeDependents(instruction);
    }
  }

  bool canFire(uint32_t block) {
    Block &state = blocks[block];
    const Instruction &instruction = plan.instructions[currentOf(block)];
    for (; state.condition < instruction.numDependencies; ++state.condition) {
      const Dependency &dependency =
          plan.dependencies[instruction.firstDependency + state.condition];
      uint32_t other =
          plan.ranks[network.rankOfBlock[block]].firstThreadBlock + dependency.threadBlock;
      if (blocks[other].next > dependency.instruction)
        continue;
      uint32_t target = plan.threadBlocks[other].firstInstruction + dependency.instruction;
      state.nextWaiter = std::exchange(firstWaiter[target], block);
      return wait(state, Wait::Dependency, target);
    }
    uint32_t numConditions =
        instruction.numDependencies + instruction.numSources + instruction.numDestinations;
    for (; state.condition < numConditions; ++state.condition) {
      uint32_t i = state.condition - instruction.numDependencies;
      uint32_t operand = instruction.firstOperand + i;
      if (plan.operands[operand].kind != OperandKind::Connection)
        continue;
      bool holds = i < instruction.numSources ? hasData(block, operand) : hasCredit(state, operand);
      if (!holds)
        return false;
    }
    return true;
  }

  bool hasData(uint32_t block, uint32_t operand) {
    uint32_t connection = plan.operands[operand].index;
    return sent[connection] > network.ordinal[operand] ||
           wait(blocks[block], Wait::Data, endOf(block, connection));
  }

  /// A message occupies its slot until the slowest destination has received it. A signal needs
  /// none.
  bool hasCredit(Block &state, uint32_t operand) {
    const Connection &connection = plan.connections[plan.operands[operand].index];
    if (connection.isCounter)
      return true;
    uint32_t ordinal = network.ordinal[operand];
    for (; ordinal >= depth && state.end < connection.numDestinations; ++state.end) {
      uint32_t end = connection.firstDestination + state.end;
      if (received[end] <= ordinal - depth)
        return wait(state, Wait::Credit, end);
    }
    state.end = 0;
    return true;
  }

  static bool wait(Block &state, Wait kind, uint32_t what) {
    state.wait = kind;
    state.waitsFor = what;
    return false;
  }

  uint32_t endOf(uint32_t block, uint32_t connection) const {
    return endpointOf(plan, plan.connections[connection], network.rankOfBlock[block]);
  }

  void fire(uint32_t block) {
    uint32_t index = currentOf(block);
    if (order)
      order->push_back(index);
    const Instruction &instruction = plan.instructions[index];
    for (const Operand &source : plan.sourcesOf(instruction)) {
      if (source.kind != OperandKind::Connection)
        continue;
      uint32_t end = endOf(block, source.index);
      ++received[end];
      wake(network.sender[source.index], Wait::Credit, end);
    }
    for (const Operand &destination : plan.destinationsOf(instruction)) {
      if (destination.kind != OperandKind::Connection)
        continue;
      ++sent[destination.index];
      const Connection &connection = plan.connections[destination.index];
      for (uint32_t i = 0; i < connection.numDestinations; ++i) {
        uint32_t end = connection.firstDestination + i;
        wake(network.receiver[end], Wait::Data, end);
      }
    }
  }

  /// `block` may be kNone: nobody needs to wait at a counter's end.
  void wake(uint32_t block, Wait kind, uint32_t what) {
    if (block == kNone)
      return;
    Block &state = blocks[block];
    if (state.wait != kind || state.waitsFor != what)
      return;
    state.wait = Wait::None;
    ready.push_back(block);
  }

  void wakeDependents(uint32_t instruction) {
    uint32_t waiter = std::exchange(firstWaiter[instruction], kNone);
    while (waiter != kNone) {
      uint32_t following = blocks[waiter].nextWaiter;
      wake(waiter, Wait::Dependency, instruction);
      waiter = following;
    }
  }

  /// The thread block that a stuck one waits for; it is stuck itself, as all messages have a sender
  /// and a receiver.
  uint32_t waitedFor(uint32_t block) const {
    const Block &state = blocks[block];
    if (state.wait == Wait::Dependency)
      return network.blockOf[state.waitsFor];
    if (state.wait == Wait::Credit)
      return network.receiver[state.waitsFor];
    return network.sender[connectionOf(block)];
  }

  /// The connection whose data or credit a stuck thread block waits for.
  uint32_t connectionOf(uint32_t block) const {
    const Instruction &instruction = plan.instructions[currentOf(block)];
    uint32_t operand =
        instruction.firstOperand + blocks[block].condition - instruction.numDependencies;
    return plan.operands[operand].index;
  }

  std::string waitText(uint32_t block) const {
    const Block &state = blocks[block];
    if (state.wait == Wait::Dependency)
      return "its dependency on " + describePlace(placeOf(plan, state.waitsFor));
    uint32_t connection = connectionOf(block);
    std::string name = "connection " + std::to_string(connection) + " (" +
                       describeConnection(plan, plan.connections[connection]) + ")";
    if (state.wait == Wait::Data)
      return (plan.connections[connection].isCounter ? "a signal of " : "data from ") + name;
    return "room in " + name + ": rank " + std::to_string(plan.destinations[state.waitsFor]) +
           " has not received the " +
           (depth == 1 ? "message" : std::to_string(depth) + " messages") + " before";
  }

  const Plan &plan;
  const Network &network;
  uint32_t depth;
  std::vector<uint32_t> *order;
  std::vector<Block> blocks;
  std::vector<uint32_t> sent;        // of each connection
  std::vector<uint32_t> received;    // of each receiving end
  std::vector<uint32_t> firstWaiter; // of each instruction: a thread block that depends on it
  std::vector<uint32_t> ready;       // thread blocks that were waked
};

bool completes(const Network &network, uint32_t depth) {
  return Executor(network, depth, nullptr).run();
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
  Executor executor(network, plan.depth, &execution.order);
  if (executor.run())
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
