// The steps of all ranks and what orders them: memory on a rank, messages between ranks.
#pragma once

#include "compiler/analysis/Program.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace occl::analysis {

/// The connections that transfers become: one for each source, set of destinations and channel that
/// occurs.
class Network {
public:
  explicit Network(const Program &program);

  /// The connection of a transfer, or the one that a place names.
  uint32_t connectionOf(inst::Place place) const {
    return place.kind == inst::PlaceKind::Transfer ? ofTransfer[place.index] : place.index;
  }

  /// Which of the connection's destinations `rank` is; it is one.
  uint32_t slotOf(uint32_t connection, uint32_t rank) const {
    const auto &destinations = connections[connection].destinations;
    if (destinations.size() == 1)
      return 0;
    return static_cast<uint32_t>(llvm::lower_bound(destinations, rank) - destinations.begin());
  }

  /// The receiving ends of all connections are numbered, connection by connection: the number of
  /// each one's first, and, last, how many there are.
  std::vector<uint32_t> firstEnds() const {
    std::vector<uint32_t> first = {0};
    for (const inst::Connection &connection : connections)
      first.push_back(first.back() + static_cast<uint32_t>(connection.destinations.size()));
    return first;
  }

  /// Those of the program, if it has any, else those of its transfers, by source, channel and
  /// destinations.
  std::vector<inst::Connection> connections;

private:
  std::vector<uint32_t> ofTransfer;
};

/// How long a step of `rank` keeps its thread block busy, by the program's weights.
uint64_t durationOf(const Program &program, const Network &network, uint32_t rank,
                    const inst::Instruction &instruction);

/// That of each step, rank by rank; very long ones are all equally long.
std::vector<uint32_t> durationsOf(const Program &program, const Network &network);

/// Whether the messages of every connection have one order at all its ends. Linear; much cheaper
/// than a graph. Messages of connections that the program has already keep any order.
bool messagesKeepOrder(const Program &program, const Network &network);

/// Whether the messages of a connection keep the order in which the program has them.
enum class MessageOrder : uint8_t { Program, Free };

/// One message's ends, as global steps.
struct Message {
  uint32_t connection = 0;
  uint32_t sender = 0;
  uint32_t firstReceiver = 0, numReceivers = 0; // for StepGraph::receiversOf
};

/// Steps have global numbers: rank by rank, each rank's in order.
class StepGraph {
public:
  StepGraph(const Program &program, const Network &network, MessageOrder order);

  uint32_t numSteps() const { return firstStep.back(); }
  uint32_t globalStep(uint32_t rank, uint32_t step) const { return firstStep[rank] + step; }
  uint32_t rankOf(uint32_t globalStep) const { return rankOfStep[globalStep]; }
  uint32_t positionOf(uint32_t globalStep) const {
    return globalStep - firstStep[rankOf(globalStep)];
  }

  /// Steps of the same rank that wait for `step`: because of memory, or as the next at an end of a
  /// connection.
  llvm::ArrayRef<uint32_t> localSuccessors(uint32_t step) const {
    return llvm::ArrayRef(successors)
        .slice(successorStarts[step], successorStarts[step + 1] - successorStarts[step]);
  }
  /// How often `step` occurs among the successors of steps.
  uint32_t numLocalPredecessors(uint32_t step) const { return predecessorCounts[step]; }

  /// Messages, connection by connection; and those that a step sends and receives, ascending.
  llvm::ArrayRef<Message> allMessages() const { return messages; }
  llvm::ArrayRef<uint32_t> sent(uint32_t step) const { return sentBy.of(step); }
  llvm::ArrayRef<uint32_t> received(uint32_t step) const { return receivedBy.of(step); }
  /// In the order of the connection's destinations.
  llvm::ArrayRef<uint32_t> receiversOf(const Message &message) const {
    return llvm::ArrayRef(receivers).slice(message.firstReceiver, message.numReceivers);
  }

  /// Of a message from one step to another.
  uint32_t latencyOf(const StepWeights &weights, uint32_t sender, uint32_t receiver) const {
    return weights.between(rankOf(sender), rankOf(receiver)).latency;
  }

  /// Whether every connection has its messages in one order on both ends. Without it nothing below
  /// is meaningful.
  bool isConsistent() const { return consistent; }

  /// For each step, the length of the longest path of steps that starts there, over memory and
  /// messages; nothing if the paths form a cycle: then no depth avoids a deadlock. A step counts 1,
  /// or its duration, if durations are given, and then a message counts its latency by `weights`.
  std::optional<std::vector<uint32_t>> heights() const { return heights({}, {}); }
  std::optional<std::vector<uint32_t>> heights(llvm::ArrayRef<uint32_t> durations,
                                               const StepWeights &weights) const;

  /// For each step, the length of the longest path that ends before it. There is no cycle.
  std::vector<uint32_t> depths(llvm::ArrayRef<uint32_t> durations,
                               const StepWeights &weights) const;

private:
  void addLocalEdges(const Program &program, const Network &network, MessageOrder order);
  /// Numbers, of each step.
  struct Lists {
    std::vector<uint32_t> starts, values;

    llvm::ArrayRef<uint32_t> of(uint32_t step) const {
      return llvm::ArrayRef(values).slice(starts[step], starts[step + 1] - starts[step]);
    }
    /// For so many numbers as counts[step + 1] says.
    void reserve(std::vector<uint32_t> counts);
  };

  struct Ends;
  void addMessages(const Program &program, const Network &network);
  void connectEnds(llvm::ArrayRef<Ends> ends);
  /// Every step after those that it waits for; some are missing if there is a cycle.
  std::vector<uint32_t> topologicalOrder() const;
  template <typename Function> void forEachReceiver(uint32_t step, Function fn) const;

  std::vector<uint32_t> firstStep = {0}; // for each rank, and the end
  std::vector<uint32_t> rankOfStep;
  std::vector<uint32_t> successors, successorStarts, predecessorCounts;
  std::vector<Message> messages;
  std::vector<uint32_t> receivers; // of messages
  Lists sentBy, receivedBy;        // messages of each step
  bool consistent = true;
};

} // namespace occl::analysis
