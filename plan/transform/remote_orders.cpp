#include "plan/transform/remote_orders.h"

#include "plan/verify/verifier.h"

#include <algorithm>
#include <map>
#include <optional>

namespace occl::plan {

namespace {

constexpr uint32_t kNone = ~0u;
constexpr uint64_t kUnbounded = ~uint64_t{0};

class Reduction {
public:
  Reduction(Plan &plan, uint64_t budget)
      : plan(plan), budget(budget), senders(plan.operands.size(), kNone),
        isGone(plan.dependencies.size()), isNeeded(plan.dependencies.size()),
        visited(2 * plan.instructions.size(), 0), cameFrom(2 * plan.instructions.size()) {
    findPlaces();
    findSenders();
  }

  uint32_t run() {
    // Each dependency by itself: if without it a path through other ranks still makes the earlier
    // instruction complete, it goes, and the path becomes a witness by which the verifier finds it
    // again.
    uint32_t count = 0;
    for (uint32_t later = 0; later < plan.instructions.size(); ++later) {
      const Instruction &instruction = plan.instructions[later];
      for (uint32_t i = 0; i < instruction.numDependencies; ++i) {
        uint32_t dependency = instruction.firstDependency + i;
        // What a witness of another one relies on must stay, or both could go and leave nothing.
        if (isNeeded[dependency] || budget == 0)
          continue;
        uint32_t earlier = earlierOf(later, dependency);
        isGone[dependency] = isReached(earlier, later, dependency, true);
        if (isGone[dependency])
          writeDown(stateOf(earlier, true), stateOf(later, false));
        count += isGone[dependency];
      }
    }
    // Dependencies are ranges in one array, so that removing some moves the others.
    if (count > 0)
      compactDependencies();
    return count;
  }

  /// Whether a path of messages alone leads the way of a dependency of `later`.
  bool isPassedOn(uint32_t later, uint32_t dependency) {
    return isReached(earlierOf(later, dependency), later, dependency, false);
  }

  /// Leaves out such a dependency.
  void leaveOutPassedOn(uint32_t later, uint32_t dependency) {
    isGone[dependency] = isPassedOn(later, dependency);
    writeDown(stateOf(earlierOf(later, dependency), false), stateOf(later, false));
    compactDependencies();
  }

private:
  /// A step of a path, seen from its end: from `instruction` by an edge.
  struct Edge {
    uint32_t to = kNone;      // the state after it
    uint32_t operand = kNone; // of a message or signal
    uint32_t dependency = kNone;
  };

  /// An instruction, and whether the path from it on has an edge that is no message: a path of
  /// messages only passes slices on and does not make its first instruction complete.
  static uint32_t stateOf(uint32_t instruction, bool isComplete) {
    return 2 * instruction + (isComplete ? 1 : 0);
  }

  void findPlaces() {
    // Rank, thread block and position of each instruction, as witnesses name them.
    places.resize(plan.instructions.size());
    firstBlock.reserve(plan.ranks.size());
    for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
      firstBlock.push_back(plan.ranks[r].firstThreadBlock);
      for (uint32_t b = 0; b < plan.ranks[r].numThreadBlocks; ++b) {
        const ThreadBlock &block = plan.threadBlocks[firstBlock[r] + b];
        for (uint32_t i = 0; i < block.numInstructions; ++i)
          places[block.firstInstruction + i] = {r, b, i};
      }
    }
  }

  /// Each end of a connection has one thread block, so the messages are in its order. Signals are
  /// the messages of a counter; a wait receives the last one that it waits for.
  void findSenders() {
    // Who sends the m-th message of each connection; receivers then count.
    std::vector<std::vector<uint32_t>> sent(plan.connections.size());
    for (uint32_t i = 0; i < plan.instructions.size(); ++i)
      for (const Operand &operand : plan.destinationsOf(plan.instructions[i]))
        if (operand.kind == OperandKind::Connection)
          sent[operand.index].push_back(i);
    std::map<std::pair<uint32_t, uint32_t>, size_t> received; // by rank, of connection
    for (uint32_t i = 0; i < plan.instructions.size(); ++i)
      for (uint32_t s = 0; s < plan.instructions[i].numSources; ++s) {
        const Instruction &instruction = plan.instructions[i];
        uint32_t operand = instruction.firstOperand + s;
        uint32_t connection = plan.operands[operand].index;
        if (plan.operands[operand].kind == OperandKind::Connection)
          senders[operand] = sent[connection][instruction.opcode == Opcode::Wait
                                                  ? instruction.value - 1
                                                  : received[{places[i].rank, connection}]++];
      }
  }

  uint32_t earlierOf(uint32_t later, uint32_t dependency) const {
    const Dependency &before = plan.dependencies[dependency];
    return plan.threadBlocks[firstBlock[places[later].rank] + before.threadBlock].firstInstruction +
           before.instruction;
  }

  /// Searches backwards from `later`, without `unused`, for a path that makes `earlier` complete,
  /// or for one of messages alone.
  bool isReached(uint32_t earlier, uint32_t later, uint32_t unused, bool isComplete) {
    // Breadth first, so that witnesses are short. A state is an instruction and whether it is known
    // to be complete or only in step.
    ++search;
    queue.assign(1, stateOf(later, false));
    visited[queue.front()] = search;
    // The budget is shared by all searches of a plan.
    for (size_t next = 0; next < queue.size() && budget > 0; ++next, --budget) {
      uint32_t state = queue[next], instruction = state / 2;
      if (state == stateOf(earlier, isComplete))
        return true;
      auto reach = [&](uint32_t before, bool isComplete, Edge edge) {
        uint32_t reached = stateOf(before, isComplete);
        if (visited[reached] == search)
          return;
        visited[reached] = search;
        cameFrom[reached] = edge;
        queue.push_back(reached);
      };
      // From a complete instruction: the one before it in its thread block is complete.
      if (isComplete && places[instruction].instruction > 0)
        reach(instruction - 1, true, {.to = state});
      // And all that it depends on, but for the dependency in question.
      const Instruction &data = plan.instructions[instruction];
      for (uint32_t i = 0; isComplete && i < data.numDependencies; ++i) {
        uint32_t dependency = data.firstDependency + i;
        if (dependency != unused && !isGone[dependency])
          reach(earlierOf(instruction, dependency), true, {.to = state, .dependency = dependency});
      }
      // What it received was sent: by an instruction that is complete if this one is, and otherwise
      // at least in step.
      for (uint32_t i = 0; i < data.numSources; ++i)
        if (uint32_t operand = data.firstOperand + i; senders[operand] != kNone)
          reach(senders[operand], state % 2 != 0, {.to = state, .operand = operand});
    }
    return false;
  }

  void writeDown(uint32_t state, uint32_t end) {
    // From the state that was reached back to where the search began, along the edges that it came
    // by; places of a witness are in that order.
    auto first = static_cast<uint32_t>(plan.places.size());
    for (; state != end; state = cameFrom[state].to) {
      plan.places.push_back(places[state / 2]);
      const Edge &edge = cameFrom[state];
      // A message orders only what it carries, unless its connection is marked.
      if (edge.operand != kNone)
        markOrdered(plan.connections[plan.operands[edge.operand].index]);
      if (edge.dependency != kNone)
        isNeeded[edge.dependency] = true;
    }
    plan.places.push_back(places[end / 2]);
    plan.witnesses.push_back({first, static_cast<uint32_t>(plan.places.size()) - first});
  }

  /// A counter orders as it is.
  static void markOrdered(Connection &connection) { connection.isOrdered = !connection.isCounter; }

  void compactDependencies() {
    // One pass: kept dependencies of each instruction are appended in order.
    std::vector<Dependency> kept;
    for (Instruction &instruction : plan.instructions) {
      auto first = static_cast<uint32_t>(kept.size());
      for (uint32_t i = 0; i < instruction.numDependencies; ++i)
        if (!isGone[instruction.firstDependency + i])
          kept.push_back(plan.dependencies[instruction.firstDependency + i]);
      instruction.firstDependency = first;
      instruction.numDependencies = static_cast<uint16_t>(kept.size() - first);
    }
    plan.dependencies = std::move(kept);
  }

  Plan &plan;
  uint64_t budget;
  std::vector<Place> places;          // of each instruction
  std::vector<uint32_t> firstBlock;   // of each rank
  std::vector<uint32_t> senders;      // of each operand that is received or waited for
  std::vector<bool> isGone, isNeeded; // of each dependency
  std::vector<uint32_t> visited;      // of each state: the number of the last search
  std::vector<Edge> cameFrom;         // of each state
  std::vector<uint32_t> queue;
  uint32_t search = 0;
};

/// A path of messages alone makes nothing complete, but what it begins with is ahead slice by
/// slice. Whether that is enough for all that a dependency is there for, the verifier says.
uint32_t leaveOutPassedOn(Plan &plan) {
  // Each attempt costs a proof of the plan, so the budget is in instructions.
  uint64_t budget = uint64_t{1} << 21; // instructions to verify
  uint32_t count = 0;
  std::optional<Reduction> known; // of the plan as it is
  for (uint32_t later = 0; later < plan.instructions.size(); ++later)
    for (uint32_t i = 0; i < plan.instructions[later].numDependencies;) {
      uint32_t dependency = plan.instructions[later].firstDependency + i++;
      if (!known)
        known.emplace(plan, kUnbounded);
      if (!known->isPassedOn(later, dependency))
        continue;
      if (budget < plan.instructions.size())
        return count;
      budget -= plan.instructions.size();
      // On a copy, as the proof may fail.
      Plan attempt = plan;
      Reduction(attempt, kUnbounded).leaveOutPassedOn(later, dependency);
      if (!verifyPlan(attempt, {.findSmallestDepth = false}))
        continue;
      plan = std::move(attempt);
      known.reset();
      --i;
      ++count;
    }
  return count;
}

} // namespace

uint32_t leaveOutRemoteDependencies(Plan &plan, uint64_t budget) {
  if (plan.protocol != Protocol::Simple || plan.dependencies.empty())
    return 0;
  const uint32_t count = Reduction(plan, budget).run();
  return count + leaveOutPassedOn(plan);
}

} // namespace occl::plan
