#include "compiler/analysis/ListScheduler.h"

#include "compiler/analysis/InOrder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <queue>

namespace occl::analysis {

namespace {

constexpr uint32_t kNone = ~0u;

/// A step that may run, or waits for room to send. The greatest is the most urgent.
struct Candidate {
  uint32_t height, step;

  bool operator<(const Candidate &other) const {
    return height != other.height ? height < other.height : step > other.step;
  }
};

/// Candidates, the most urgent one first. Those that come all at once, as most of a program's steps
/// do at its begin, are sorted, which is quicker than to take them out of a heap one by one.
class Queue {
public:
  bool empty() const { return sorted.empty() && heap.empty(); }
  const Candidate &top() const { return isInHeap() ? heap.top() : sorted.back(); }
  void push(const Candidate &candidate) { heap.push(candidate); }
  void pop() {
    if (isInHeap())
      heap.pop();
    else
      sorted.pop_back();
  }
  /// Of an empty queue: `candidates`, in any order, are what is in it.
  void fill(std::vector<Candidate> candidates) {
    sorted = std::move(candidates);
    llvm::sort(sorted);
  }

private:
  bool isInHeap() const { return sorted.empty() || (!heap.empty() && sorted.back() < heap.top()); }

  std::vector<Candidate> sorted; // the most urgent one last
  std::priority_queue<Candidate> heap;
};

struct ConnectionState {
  std::vector<uint32_t> sent;              // messages, in the order of sending
  llvm::SmallVector<uint32_t, 2> received; // how many of them, by each destination
  std::vector<uint64_t> freed;             // when each message has been received by all
  Queue waitingSenders;

  uint32_t inFlight() const {
    return static_cast<uint32_t>(sent.size()) - *llvm::min_element(received);
  }
};

class Execution {
public:
  Execution(const Program &program, const Network &network, const StepGraph &graph, uint32_t depth,
            llvm::ArrayRef<uint32_t> heights, Timing timing)
      : program(program), network(network), graph(graph), depth(depth), heights(heights),
        isTimed(timing == Timing::Predicted), states(network.connections.size()),
        numberOf(graph.allMessages().size(), kNone), awaited(graph.numSteps(), kNone),
        ready(isTimed ? graph.numSteps() : 0, 0), queueOfStep(graph.numSteps(), kNone) {
    // One count of received messages for each receiver of a connection, as receivers of a multicast
    // advance on their own.
    for (auto [connection, state] : llvm::zip(network.connections, states))
      state.received.assign(connection.destinations.size(), 0);
    result.order.resize(program.ranks.size());
    waitsFor.reserve(graph.numSteps());
    for (uint32_t step = 0; step < graph.numSteps(); ++step)
      waitsFor.push_back(graph.numLocalPredecessors(step));
    fillQueues();
  }

  Schedule run() {
    while (runRound()) {
    }
    result.complete = numRun == graph.numSteps();
    if (!result.complete)
      collectStuck();
    return std::move(result);
  }

private:
  Candidate candidate(uint32_t step) const { return {heights.empty() ? 0 : heights[step], step}; }

  const inst::Instruction &instructionAt(uint32_t step) const {
    return program.ranks[graph.rankOf(step)].steps[graph.positionOf(step)].instruction;
  }

  /// Puts the steps that wait for no other one in their queues.
  void fillQueues() {
    std::vector<std::vector<Candidate>> candidates; // of each queue
    // Only what waits for nothing starts in a queue; everything else is released by the last step
    // that it waits for.
    for (uint32_t step = 0; step < graph.numSteps(); ++step) {
      if (waitsFor[step] != 0)
        continue;
      const uint32_t queue = numberOfQueue(step);
      candidates.resize(queues.size());
      candidates[queue].push_back(candidate(step));
    }
    // Heaps are filled side by side, since for large programs most of the time of a schedule goes
    // into them.
    support::parallelFor(queues.size(), graph.numSteps(),
                         [&](size_t i) { queues[i].fill(std::move(candidates[i])); });
  }

  uint32_t numberOfQueue(uint32_t step) {
    if (queueOfStep[step] == kNone) {
      std::pair<uint32_t, int32_t> block = {graph.rankOf(step),
                                            std::max(0, instructionAt(step).threadBlock)};
      auto number = static_cast<uint32_t>(queues.size());
      auto [entry, isNew] = queueIndex.try_emplace(block, number);
      if (isNew) {
        queues.emplace_back();
        blockEnds.push_back(0);
        blockBegins.push_back(UINT64_MAX);
      }
      queueOfStep[step] = entry->second;
    }
    return queueOfStep[step];
  }

  /// Which of the destinations of `connection` the rank of `step` is.
  uint32_t slotOf(uint32_t connection, uint32_t step) const {
    return network.slotOf(connection, graph.rankOf(step));
  }

  /// False if no step could run.
  bool runRound() {
    // What was released in the round before: so all queues see the same steps, whatever the order
    // of the loop.
    for (uint32_t step : released)
      queues[numberOfQueue(step)].push(candidate(step));
    released.clear();
    std::vector<uint32_t> ran;
    // One step for each thread block in a round, the most urgent that can run. Those that cannot
    // note what they wait for, and come back when that happens.
    for (Queue &queue : queues)
      while (!queue.empty()) {
        uint32_t step = queue.top().step;
        queue.pop();
        if (waitsForMessage(step) || waitsForRoom(step))
          continue;
        ran.push_back(step);
        break;
      }
    // Effects come after the round, so that ranks advance side by side whatever their numbers.
    for (uint32_t step : ran)
      complete(step);
    numRun += ran.size();
    return !ran.empty();
  }

  /// If a message of `step` is not there or not the next, notes which one.
  bool waitsForMessage(uint32_t step) {
    llvm::ArrayRef<uint32_t> messages = graph.received(step);
    // Messages of a connection arrive in the order in which they were sent. With several of one
    // connection in an instruction, each counts from the one before.
    for (size_t i = 0; i < messages.size(); ++i) {
      uint32_t connection = graph.allMessages()[messages[i]].connection;
      uint32_t next = states[connection].received[slotOf(connection, step)];
      for (uint32_t earlier : messages.take_front(i))
        next += graph.allMessages()[earlier].connection == connection;
      if (numberOf[messages[i]] == next)
        continue;
      awaited[step] = messages[i];
      wakeOtherSenders(step, kNone);
      return true;
    }
    return false;
  }

  /// If a connection has no room for a message of `step`, leaves the step there.
  bool waitsForRoom(uint32_t step) {
    // The FIFO holds `depth` messages: more than that in flight would be a deadlock at run time, if
    // nobody took them out.
    for (uint32_t message : graph.sent(step)) {
      uint32_t connection = graph.allMessages()[message].connection;
      if (states[connection].inFlight() < depth)
        continue;
      states[connection].waitingSenders.push(candidate(step));
      wakeOtherSenders(step, connection);
      return true;
    }
    return false;
  }

  /// `step` was to use room on its connections but cannot yet: others may.
  void wakeOtherSenders(uint32_t step, uint32_t except) {
    for (uint32_t message : graph.sent(step))
      if (graph.allMessages()[message].connection != except)
        wakeSender(graph.allMessages()[message].connection);
  }

  void wakeSender(uint32_t connection) {
    ConnectionState &state = states[connection];
    if (state.waitingSenders.empty() || state.inFlight() >= depth)
      return;
    released.push_back(state.waitingSenders.top().step);
    state.waitingSenders.pop();
  }

  void complete(uint32_t step) {
    // The result is an order for each rank.
    result.order[graph.rankOf(step)].push_back(graph.positionOf(step));
    const uint64_t end = isTimed ? endOf(step) : 0;
    // The receiver has taken its messages: the next one of each connection may be received, and the
    // sender has room for one more.
    for (uint32_t message : graph.received(step)) {
      uint32_t connection = graph.allMessages()[message].connection;
      ConnectionState &state = states[connection];
      uint32_t slot = slotOf(connection, step);
      if (isTimed) {
        uint64_t &freed = state.freed[state.received[slot]];
        freed = std::max(freed, end);
      }
      // The next message may have been sent already.
      if (++state.received[slot] < state.sent.size())
        wakeReceiver(state.sent[state.received[slot]], slot);
      wakeSender(connection);
    }
    // The sender's messages get their numbers in the connection's order, which is only now decided.
    for (uint32_t message : graph.sent(step)) {
      ConnectionState &state = states[graph.allMessages()[message].connection];
      numberOf[message] = static_cast<uint32_t>(state.sent.size());
      state.sent.push_back(message);
      if (isTimed)
        noteArrival(step, message, end);
      for (uint32_t slot = 0; slot < state.received.size(); ++slot)
        wakeReceiver(message, slot);
    }
    // The last predecessor releases a step.
    for (uint32_t successor : graph.localSuccessors(step)) {
      if (isTimed)
        ready[successor] = std::max(ready[successor], end);
      if (--waitsFor[successor] == 0)
        released.push_back(successor);
    }
  }

  /// Of a message that `step` sends at `end`.
  void noteArrival(uint32_t step, uint32_t message, uint64_t end) {
    states[graph.allMessages()[message].connection].freed.push_back(0);
    for (uint32_t receiver : graph.receiversOf(graph.allMessages()[message]))
      ready[receiver] =
          std::max(ready[receiver], end + graph.latencyOf(program.weights, step, receiver));
  }

  /// When a step ends that runs now: what it waits for has run.
  uint64_t endOf(uint32_t step) {
    uint64_t &blockEnd = blockEnds[queueOfStep[step]];
    // It begins when its predecessors have ended, and its thread block has.
    uint64_t begin = std::max(ready[step], blockEnd);
    for (uint32_t message : graph.sent(step)) {
      const ConnectionState &state = states[graph.allMessages()[message].connection];
      // The message that was sent `depth` before must have been taken.
      if (state.sent.size() >= depth)
        begin = std::max(begin, state.freed[state.sent.size() - depth]);
    }
    uint64_t &blockBegin = blockBegins[queueOfStep[step]];
    blockBegin = std::min(blockBegin, begin);
    // The makespan is the latest end; the interval is the busiest thread block's time, which bounds
    // how soon the next tile can follow.
    blockEnd = begin + durationOf(program, network, graph.rankOf(step), instructionAt(step));
    result.makespan = std::max(result.makespan, blockEnd);
    result.interval = std::max(result.interval, blockEnd - blockBegin);
    return blockEnd;
  }

  void wakeReceiver(uint32_t message, uint32_t slot) {
    uint32_t step = graph.receiversOf(graph.allMessages()[message])[slot];
    if (awaited[step] != message)
      return;
    awaited[step] = kNone;
    released.push_back(step);
  }

  void collectStuck() {
    // For the message of a deadlock: those that wait for a message, and those that wait for room.
    for (uint32_t step = 0; step < graph.numSteps(); ++step)
      if (awaited[step] != kNone)
        result.stuck.push_back(step);
    for (ConnectionState &state : states)
      for (; !state.waitingSenders.empty(); state.waitingSenders.pop())
        result.stuck.push_back(state.waitingSenders.top().step);
    llvm::sort(result.stuck);
  }

  const Program &program;
  const Network &network;
  const StepGraph &graph;
  uint32_t depth;
  llvm::ArrayRef<uint32_t> heights;
  const bool isTimed;
  std::vector<ConnectionState> states;
  std::vector<uint32_t> numberOf; // of each message: its place among those sent
  std::vector<uint32_t> awaited;  // by each step that waits for one: the message
  std::vector<uint32_t> waitsFor; // of each step: how many steps of its rank
  std::vector<uint32_t> released;
  std::vector<uint64_t> ready; // when what each step waits for has ended
  std::vector<Queue> queues;   // of each thread block
  std::vector<uint64_t> blockBegins, blockEnds;
  llvm::DenseMap<std::pair<uint32_t, int32_t>, uint32_t> queueIndex;
  std::vector<uint32_t> queueOfStep;
  size_t numRun = 0;
  Schedule result;
};

} // namespace

Schedule schedule(const Program &program, const Network &network, const StepGraph &graph,
                  uint32_t depth, llvm::ArrayRef<uint32_t> heights, Timing timing) {
  return Execution(program, network, graph, depth, heights, timing).run();
}

bool completes(const Program &program, uint32_t depth, std::vector<uint32_t> *stuck) {
  return completes(program, Network(program), depth, stuck);
}

bool completes(const Program &program, const Network &network, uint32_t depth,
               std::vector<uint32_t> *stuck) {
  // In their given order most programs complete, which is found out in linear time.
  if (completesInOrder(program, network, depth))
    return true;
  // Else the program's order of messages is kept, but instructions may overtake each other as
  // thread blocks do.
  StepGraph graph(program, network, MessageOrder::Program);
  if (!graph.isConsistent())
    return false;
  Schedule result = schedule(program, network, graph, depth, {}, Timing::Unasked);
  if (stuck)
    *stuck = std::move(result.stuck);
  return result.complete;
}

} // namespace occl::analysis
