#include "compiler/analysis/ListScheduler.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <queue>

namespace occl::analysis {

using inst::Place;

namespace {

constexpr uint32_t kNone = ~0u;

/// The ends of a connection: how many messages passed, and which step waits there.
struct ConnectionState {
  uint32_t sent = 0;
  uint32_t waitingSender = kNone;
  llvm::SmallVector<uint32_t, 2> received;         // for each destination
  llvm::SmallVector<uint32_t, 2> waitingReceivers; // for each destination

  uint32_t inFlight() const { return sent - *std::min_element(received.begin(), received.end()); }
};

class Execution {
public:
  Execution(const Program &program, const Network &network, const StepGraph &graph, uint32_t depth,
            llvm::ArrayRef<uint32_t> heights)
      : program(program), network(network), graph(graph), depth(depth), heights(heights),
        waitsFor(graph.numSteps()), states(network.connections.size()) {
    for (auto [connection, state] : llvm::zip(network.connections, states)) {
      state.received.assign(connection.destinations.size(), 0);
      state.waitingReceivers.assign(connection.destinations.size(), kNone);
    }
    result.order.resize(program.ranks.size());
  }

  Schedule run() {
    for (uint32_t step = 0; step < graph.numSteps(); ++step) {
      waitsFor[step] = graph.numLocalPredecessors(step);
      if (waitsFor[step] == 0)
        released.push_back(step);
    }
    while (runRound()) {
    }
    collectStuck();
    return std::move(result);
  }

private:
  struct Entry {
    uint32_t height, step;
    /// For a queue whose top is the highest, then the first.
    bool operator<(const Entry &other) const {
      return height != other.height ? height < other.height : step > other.step;
    }
  };
  using Queue = std::priority_queue<Entry>;

  const inst::Instruction &instructionOf(uint32_t step) const {
    return program.ranks[graph.rankOf(step)].steps[graph.positionOf(step)].instruction;
  }

  Queue &queueOf(uint32_t step) {
    uint32_t rank = graph.rankOf(step);
    int32_t block = std::max(0, instructionOf(step).threadBlock);
    auto [entry, isNew] = queueIndex.try_emplace({rank, block}, queues.size());
    if (isNew)
      queues.emplace_back();
    return queues[entry->second];
  }

  uint32_t slotOf(uint32_t connection, uint32_t step) const {
    const auto &destinations = network.connections[connection].destinations;
    return static_cast<uint32_t>(llvm::lower_bound(destinations, graph.rankOf(step)) -
                                 destinations.begin());
  }

  /// False if no step could run.
  bool runRound() {
    for (uint32_t step : released)
      queueOf(step).push({heights.empty() ? 0 : heights[step], step});
    released.clear();
    std::vector<uint32_t> ran;
    for (Queue &queue : queues) {
      bool found = false;
      while (!queue.empty() && !found) {
        uint32_t step = queue.top().step;
        queue.pop();
        found = !park(step);
        if (found)
          ran.push_back(step);
      }
    }
    // Effects come after the round, so that ranks advance side by side whatever their numbers.
    for (uint32_t step : ran)
      complete(step);
    return !ran.empty();
  }

  /// If `step` has to wait for a message or for room, leaves it at that end of the connection.
  bool park(uint32_t step) {
    const inst::Instruction &instruction = instructionOf(step);
    llvm::SmallDenseMap<uint32_t, uint32_t, 4> wanted;
    for (Place place : instruction.sources) {
      if (place.isLocal())
        continue;
      uint32_t connection = network.connectionOf(place);
      ConnectionState &state = states[connection];
      uint32_t slot = slotOf(connection, step);
      if (state.received[slot] + ++wanted[connection] <= state.sent)
        continue;
      state.waitingReceivers[slot] = step;
      return true;
    }
    wanted.clear();
    for (Place place : instruction.destinations) {
      if (place.isLocal())
        continue;
      uint32_t connection = network.connectionOf(place);
      if (states[connection].inFlight() + ++wanted[connection] <= depth)
        continue;
      states[connection].waitingSender = step;
      return true;
    }
    return false;
  }

  void complete(uint32_t step) {
    result.order[graph.rankOf(step)].push_back(graph.positionOf(step));
    const inst::Instruction &instruction = instructionOf(step);
    forEachMessage(instruction.sources, [&](const Place &place) {
      uint32_t connection = network.connectionOf(place);
      ++states[connection].received[slotOf(connection, step)];
      wake(states[connection].waitingSender);
    });
    forEachMessage(instruction.destinations, [&](const Place &place) {
      ConnectionState &state = states[network.connectionOf(place)];
      ++state.sent;
      for (uint32_t &waiting : state.waitingReceivers)
        wake(waiting);
    });
    for (uint32_t successor : graph.localSuccessors(step))
      if (--waitsFor[successor] == 0)
        released.push_back(successor);
  }

  void wake(uint32_t &waiting) {
    if (waiting != kNone)
      released.push_back(waiting);
    waiting = kNone;
  }

  void collectStuck() {
    for (const ConnectionState &state : states) {
      if (state.waitingSender != kNone)
        result.stuck.push_back(state.waitingSender);
      for (uint32_t waiting : state.waitingReceivers)
        if (waiting != kNone)
          result.stuck.push_back(waiting);
    }
    llvm::sort(result.stuck);
  }

  const Program &program;
  const Network &network;
  const StepGraph &graph;
  uint32_t depth;
  llvm::ArrayRef<uint32_t> heights;
  std::vector<uint32_t> waitsFor;
  std::vector<ConnectionState> states;
  std::vector<uint32_t> released;
  std::vector<Queue> queues;
  llvm::DenseMap<std::pair<uint32_t, int32_t>, size_t> queueIndex;
  Schedule result;
};

} // namespace

Schedule schedule(const Program &program, const Network &network, const StepGraph &graph,
                  uint32_t depth, llvm::ArrayRef<uint32_t> heights) {
  return Execution(program, network, graph, depth, heights).run();
}

bool completes(const Program &program, uint32_t depth, std::vector<uint32_t> *stuck) {
  Network network(program);
  StepGraph graph(program, network);
  if (!graph.isConsistent())
    return false;
  Schedule result = schedule(program, network, graph, depth, {});
  size_t done = 0;
  for (const auto &order : result.order)
    done += order.size();
  if (stuck)
    *stuck = std::move(result.stuck);
  return done == graph.numSteps();
}

} // namespace occl::analysis
