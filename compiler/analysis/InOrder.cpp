#include "compiler/analysis/InOrder.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::analysis {

using inst::Connection;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

constexpr uint32_t kNone = ~0u;

class InOrderExecution {
public:
  InOrderExecution(const Program &program, const Network &network, uint32_t depth)
      : program(program), network(network), depth(depth), sent(network.connections.size(), 0),
        numberOf(program.numTransfers, kNone), next(program.ranks.size(), 0),
        waitsFor(program.ranks.size(), kNone) {
    for (const Connection &connection : network.connections) {
      firstReceived.push_back(static_cast<uint32_t>(received.size()));
      received.resize(received.size() + connection.destinations.size(), 0);
    }
  }

  bool run() {
    for (uint32_t rank = 0; rank < program.ranks.size(); ++rank)
      runnable.push_back(rank);
    while (!runnable.empty()) {
      uint32_t rank = runnable.back();
      runnable.pop_back();
      runRank(rank);
    }
    return llvm::all_of(llvm::zip(program.ranks, next), [](const auto &entry) {
      return std::get<0>(entry).steps.size() == std::get<1>(entry);
    });
  }

private:
  /// Runs the rank's steps up to one that has to wait, and notes for which connection.
  void runRank(uint32_t rank) {
    const std::vector<Step> &steps = program.ranks[rank].steps;
    for (; next[rank] < steps.size(); ++next[rank]) {
      const Instruction &instruction = steps[next[rank]].instruction;
      waitsFor[rank] = blockedBy(rank, instruction);
      if (waitsFor[rank] != kNone)
        return;
      complete(rank, instruction);
    }
  }

  /// The connection that lacks a message or room, or kNone.
  uint32_t blockedBy(uint32_t rank, const Instruction &instruction) {
    for (size_t i = 0; i < instruction.sources.size(); ++i) {
      Place place = instruction.sources[i];
      if (place.isLocal())
        continue;
      uint32_t connection = network.connectionOf(place);
      uint32_t number = receivedBy(connection, rank);
      for (Place earlier : llvm::ArrayRef(instruction.sources).take_front(i))
        number += !earlier.isLocal() && network.connectionOf(earlier) == connection;
      bool isThere = place.kind == PlaceKind::Transfer ? numberOf[place.index] == number
                                                       : number < sent[connection];
      if (!isThere)
        return connection;
    }
    for (Place place : instruction.destinations) {
      if (place.isLocal())
        continue;
      uint32_t connection = network.connectionOf(place);
      if (sent[connection] - slowest(connection) >= depth)
        return connection;
    }
    return kNone;
  }

  void complete(uint32_t rank, const Instruction &instruction) {
    forEachMessage(instruction.sources, [&](const Place &place) {
      uint32_t connection = network.connectionOf(place);
      ++receivedBy(connection, rank);
      wake(network.connections[connection].source, connection);
    });
    forEachMessage(instruction.destinations, [&](const Place &place) {
      uint32_t connection = network.connectionOf(place);
      if (place.kind == PlaceKind::Transfer)
        numberOf[place.index] = sent[connection];
      ++sent[connection];
      for (uint32_t destination : network.connections[connection].destinations)
        wake(destination, connection);
    });
  }

  void wake(uint32_t rank, uint32_t connection) {
    if (waitsFor[rank] != connection)
      return;
    waitsFor[rank] = kNone;
    runnable.push_back(rank);
  }

  /// How many messages `rank` has taken from the connection.
  uint32_t &receivedBy(uint32_t connection, uint32_t rank) {
    const auto &destinations = network.connections[connection].destinations;
    return received[firstReceived[connection] +
                    (llvm::lower_bound(destinations, rank) - destinations.begin())];
  }

  uint32_t slowest(uint32_t connection) const {
    const uint32_t *first = &received[firstReceived[connection]];
    return *std::min_element(first, first + network.connections[connection].destinations.size());
  }

  const Program &program;
  const Network &network;
  uint32_t depth;
  std::vector<uint32_t> sent;                    // messages, of each connection
  std::vector<uint32_t> firstReceived, received; // messages, of each end of each connection
  std::vector<uint32_t> numberOf;                // of each transfer that was sent
  std::vector<uint32_t> next;                    // step of each rank
  std::vector<uint32_t> waitsFor;                // of each rank: a connection, or kNone
  std::vector<uint32_t> runnable;                // ranks
};

} // namespace

bool completesInOrder(const Program &program, const Network &network, uint32_t depth) {
  return InOrderExecution(program, network, depth).run();
}

} // namespace occl::analysis
