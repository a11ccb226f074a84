#include "compiler/cost/Network.h"

#include <algorithm>
#include <bit>

namespace occl::cost {

Network::Network(const plan::Plan &plan, const topology::Topology &topology)
    // The runtime rounds the depth up to a power of two.
    : plan(plan), topology(topology), depth(std::bit_ceil(std::max(plan.depth, 1u))),
      messages(plan.connections.size() * depth), signals(plan.connections.size()),
      numSignals(plan.connections.size()), senders(plan.connections.size()),
      receivers(plan.destinations.size()), latencies(plan.destinations.size()),
      resourcesOf(plan.destinations.size(), {kNobody, kNobody}) {
  // Links and ports first, then one server for the memory of each node: an index tells which it is.
  for (const topology::Resource &resource : topology.resources())
    servers.push_back({resource.bandwidth});
  firstMemory = static_cast<uint32_t>(servers.size());
  servers.resize(servers.size() + topology.numNodes(), {topology.costs.memory});
  for (const plan::Instruction &instruction : plan.instructions)
    if (instruction.opcode == plan::Opcode::Signal)
      ++numSignals[plan.destinationsOf(instruction)[0].index];
}

support::Expected<Network> Network::make(const plan::Plan &plan,
                                         const topology::Topology &topology) {
  if (plan.numRanks != topology.numRanks())
    return support::Status::error("the plan is for " + std::to_string(plan.numRanks) +
                                  " ranks, the topology '" + topology.name + "' has " +
                                  std::to_string(topology.numRanks()));
  // More would be gigabytes of state.
  constexpr uint64_t kMaxMessages = 1u << 25;
  // Checked before anything of that size is allocated.
  if (plan.connections.size() * std::bit_ceil(plan.depth) > kMaxMessages)
    return support::Status::error("the plan has too many connections to be simulated at depth " +
                                  std::to_string(plan.depth));
  Network network(plan, topology);
  for (std::optional<std::string> problem : {network.addRoutes(), network.checkPeers()})
    if (problem)
      return support::Status::error(std::move(*problem));
  return network;
}

std::optional<std::string> Network::missing(uint32_t from, uint32_t to) const {
  return "the topology '" + topology.name + "' has no link from rank " + std::to_string(from) +
         " to rank " + std::to_string(to) + ", which the plan needs";
}

std::optional<std::string> Network::addRoutes() {
  // A multicast has a way to each of its destinations, with a latency of its own.
  for (const plan::Connection &connection : plan.connections)
    for (uint32_t i = 0; i < connection.numDestinations; ++i) {
      uint32_t index = connection.firstDestination + i, to = plan.destinations[index];
      // Several links or ports between two ranks are shared out by channel.
      std::optional<topology::Route> way =
          topology.route(connection.source, to, connection.channel);
      if (!way)
        return missing(connection.source, to);
      latencies[index] = way->latency;
      for (uint32_t k = 0; k < way->numResources; ++k)
        resourcesOf[index][k] = way->resources[k];
    }
  return std::nullopt;
}

std::optional<std::string> Network::checkPeers() const {
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(plan.ranks[r]))
      for (const plan::Instruction &instruction : plan.instructionsOf(block)) {
        // Direct accesses need a way between ranks, too, though they have no connection.
        if (instruction.opcode != plan::Opcode::LoadReduceStore)
          continue;
        for (const plan::Operand &operand : plan.sourcesOf(instruction))
          if (operand.rank != r && !topology.route(operand.rank, r, 0))
            return missing(operand.rank, r);
        for (const plan::Operand &operand : plan.destinationsOf(instruction))
          if (operand.rank != r && !topology.route(r, operand.rank, 0))
            return missing(r, operand.rank);
      }
  return std::nullopt;
}

uint32_t Network::destinationOf(uint32_t connection, uint32_t rank) const {
  std::span<const uint32_t> ranks = plan.destinationsOf(plan.connections[connection]);
  auto place = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return plan.connections[connection].firstDestination +
         static_cast<uint32_t>(place - ranks.begin());
}

Picoseconds Network::serve(uint32_t resource, Picoseconds begin, uint64_t bytes, Picoseconds latest,
                           uint32_t &slowest) {
  Picoseconds end = servers[resource].serve(begin, bytes);
  if (end <= latest)
    return latest;
  slowest = resource;
  return end;
}

Picoseconds Network::transfer(uint32_t destination, Picoseconds begin, uint64_t bytes,
                              Picoseconds latest, uint32_t &slowest) {
  if (bytes == 0)
    return latest;
  // Each resource of the way serves by itself, one transfer after the other; the slowest decides.
  for (uint32_t resource : resourcesOf[destination])
    if (resource != kNobody)
      latest = serve(resource, begin, bytes, latest, slowest);
  return latest;
}

Picoseconds Network::transfer(uint32_t from, uint32_t to, Picoseconds begin, uint64_t bytes,
                              Picoseconds latest, uint32_t &slowest) {
  topology::Route way = *topology.route(from, to, 0);
  for (uint32_t i = 0; i < way.numResources && bytes > 0; ++i)
    latest = serve(way.resources[i], begin, bytes, latest, slowest);
  return latest;
}

} // namespace occl::cost
