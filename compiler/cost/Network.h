// The state of a plan's connections and of what they share while it is simulated. Internal to
// compiler/cost.
#pragma once

#include "compiler/cost/Predict.h"

#include <optional>
#include <span>

namespace occl::cost {

inline constexpr uint32_t kNobody = ~0u;

/// A message in its place of a connection.
struct Message {
  Picoseconds first = 0, last = 0; // when its first and its last slice are sent
  uint32_t sender = kNoCause;      // instruction
  uint32_t consumers = 0;          // destinations that have received it
  Picoseconds consumed = 0;        // when the slowest of those had
  uint32_t consumer = kNoCause;    // its instruction
};

/// A signal of a counter.
struct Signal {
  Picoseconds time = 0;
  uint32_t sender = kNoCause; // instruction
};

/// One end of a connection: of the source, or of one destination.
struct ConnectionEnd {
  uint64_t count = 0;         // messages sent or received so far
  uint32_t waiting = kNobody; // the thread block that waits for the next
};

/// Something that serves one after another.
struct Server {
  BytesPerSecond bandwidth = 0;
  Picoseconds freeAt = 0;
  uint64_t bytes = 0;

  /// Serves `amount` from `begin` on at the earliest; when it is done.
  Picoseconds serve(Picoseconds begin, uint64_t amount) {
    bytes += amount;
    freeAt = std::max(begin, freeAt) + durationOf(amount, bandwidth);
    return freeAt;
  }
};

class Network {
public:
  /// The routes of all connections; an error if one has none.
  static support::Expected<Network> make(const plan::Plan &plan,
                                         const topology::Topology &topology);

  /// Of a connection's source.
  ConnectionEnd &senderOf(uint32_t connection) { return senders[connection]; }
  /// The index of a rank among all destinations of all connections: it must be one of this
  /// connection's.
  uint32_t destinationOf(uint32_t connection, uint32_t rank) const;
  ConnectionEnd &receiverAt(uint32_t destination) { return receivers[destination]; }
  Picoseconds latencyTo(uint32_t destination) const { return latencies[destination]; }

  /// The place of message `number`; the one that was there before is gone.
  Message &message(uint32_t connection, uint64_t number) {
    return messages[static_cast<uint64_t>(connection) * depth + number % depth];
  }
  /// Messages that a connection holds.
  uint64_t capacity() const { return depth; }
  /// Of a counter, in order.
  std::vector<Signal> &signalsOf(uint32_t connection) { return signals[connection]; }
  uint64_t signalsPerTile(uint32_t connection) const { return numSignals[connection]; }

  /// Moves bytes over the way to a destination; when the last has passed. `slowest` is set to the
  /// resource that took longest if that is later than `latest`.
  Picoseconds transfer(uint32_t destination, Picoseconds begin, uint64_t bytes, Picoseconds latest,
                       uint32_t &slowest);
  /// The same from one rank to another, without a connection.
  Picoseconds transfer(uint32_t from, uint32_t to, Picoseconds begin, uint64_t bytes,
                       Picoseconds latest, uint32_t &slowest);
  Picoseconds touchMemory(uint32_t node, Picoseconds begin, uint64_t bytes) {
    return servers[firstMemory + node].serve(begin, bytes);
  }
  uint32_t memoryOf(uint32_t node) const { return firstMemory + node; }
  std::span<const Server> allServers() const { return servers; }

private:
  Network(const plan::Plan &plan, const topology::Topology &topology);
  std::optional<std::string> addRoutes();
  /// Of what accesses peers' buffers directly.
  std::optional<std::string> checkPeers() const;
  std::optional<std::string> missing(uint32_t from, uint32_t to) const;
  Picoseconds serve(uint32_t resource, Picoseconds begin, uint64_t bytes, Picoseconds latest,
                    uint32_t &slowest);

  const plan::Plan &plan;
  const topology::Topology &topology;
  uint64_t depth = 1;
  std::vector<Message> messages;
  std::vector<std::vector<Signal>> signals; // by connection
  std::vector<uint64_t> numSignals;         // of a tile
  std::vector<ConnectionEnd> senders, receivers;
  std::vector<Picoseconds> latencies;               // by destination
  std::vector<std::array<uint32_t, 2>> resourcesOf; // by destination
  std::vector<Server> servers;
  uint32_t firstMemory = 0;
};

} // namespace occl::cost
