// What a collective runs on: nodes, GPUs (one a rank), the links, switches and NICs between them,
// and what things cost there. Plain data without MLIR; `.topo` files (docs/topology.md) and the
// presets (Machines.h) make it.
//
// Units: bandwidths in bytes a second, times in picoseconds, both integers, so that everything
// derived from them is the same on every machine.
//
// Thread safety: immutable once built; concurrent reads are safe.
#pragma once

#include "plan/model/plan.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace occl::topology {

using Picoseconds = uint64_t;
using BytesPerSecond = uint64_t;

inline constexpr Picoseconds kNanosecond = 1000;
inline constexpr Picoseconds kMicrosecond = 1000 * kNanosecond;
inline constexpr Picoseconds kSecond = 1'000'000 * kMicrosecond;
inline constexpr BytesPerSecond kGigabyte = 1'000'000'000;

inline constexpr uint32_t kMaxNodes = 4096;
inline constexpr uint32_t kMaxLinks = 1u << 22;
inline constexpr uint32_t kMaxSwitchPorts = 1u << 16; // of all switches together
inline constexpr uint32_t kMaxNics = 1u << 16;
/// A second: what is longer is a mistake, and sums of what is shorter do not overflow.
inline constexpr Picoseconds kMaxLatency = kSecond;
inline constexpr BytesPerSecond kMaxBandwidth = 1'000'000 * kGigabyte;

/// What a message pays for its protocol.
struct ProtocolCosts {
  /// From the last store of the data until the receiver knows, beside the way's latency.
  Picoseconds latency = 0;
  /// Bytes on the wire for 1000 bytes of data.
  uint32_t wireBytesPerThousand = 1000;
};

/// What messages of LL and LL128 cost a thread block, where that differs from messages of Simple. A
/// bandwidth or size of 0: it does not.
struct LineCosts {
  /// Of one thread block, bytes on the wire: what it stores at a peer, and what it waits for and
  /// reads.
  BytesPerSecond bandwidth = 0;
  /// A plan is straight if no message has more bytes on the wire and none waits for room on its
  /// connection: its thread blocks then need no interpreter and no tiles, and an instruction takes
  /// `instruction`.
  uint64_t straightBytes = 0;
  Picoseconds instruction = 0;
  /// Of a message, in plans that are not straight: each such piece is a step.
  uint64_t tileBytes = 0;
};

/// What thread blocks and nodes need for what they do. A bandwidth of 0 is no bound.
struct Costs {
  /// From submission until the first instruction begins.
  Picoseconds start = 0;
  /// Of an instruction on one slice, whatever it moves.
  Picoseconds instruction = 0;
  /// From the end of an instruction until a thread block of the same rank that waits for it knows.
  Picoseconds dependency = 0;
  /// Of one thread block: own memory, and stores to and loads from a peer's.
  BytesPerSecond read = 0, write = 0, push = 0, pull = 0;
  /// Messages lie in the sender's memory and are fetched by the receivers; otherwise the sender
  /// stores a copy to each.
  bool fetched = false;
  /// How the runtime cuts: the largest message of a tile has about so many bytes, in so many
  /// slices.
  uint64_t tileBytes = 64 << 10;
  uint32_t slices = 1;
  /// Thread blocks of a rank that run at once; 0: all.
  uint32_t executors = 0;
  /// Processors that the ranks of a node share; 0: enough for all. Handing one from a rank to
  /// another takes `handover`.
  uint32_t cores = 0;
  Picoseconds handover = 0;
  /// Of a node, shared by its ranks; counts only where their buffers do not fit its cache.
  BytesPerSecond memory = 0;
  uint64_t cacheBytes = 0;
  std::array<ProtocolCosts, 3> protocols = {}; // by plan::Protocol
  LineCosts lines;

  const ProtocolCosts &of(plan::Protocol protocol) const {
    return protocols[static_cast<size_t>(protocol)];
  }
};

/// From one rank to another, one direction.
struct Link {
  uint32_t from = 0, to = 0;
  BytesPerSecond bandwidth = 0;
  Picoseconds latency = 0;
};

/// Every rank in `ranks` reaches every other one, through a port of its own with `bandwidth` in
/// each direction.
struct Switch {
  std::string name;
  std::vector<uint32_t> ranks;
  BytesPerSecond bandwidth = 0;
  Picoseconds latency = 0;
};

/// A network interface of a node, used by `ranks` of it. Every NIC reaches those of all other
/// nodes.
struct Nic {
  uint32_t node = 0;
  std::vector<uint32_t> ranks;
  BytesPerSecond bandwidth = 0; // each direction
  Picoseconds latency = 0;
};

/// Something of limited bandwidth that several connections may share: a link, a direction of a port
/// or of a NIC.
struct Resource {
  std::string name;
  BytesPerSecond bandwidth = 0;
};

/// How data gets from a rank to another one.
struct Route {
  Picoseconds latency = 0;
  std::array<uint32_t, 2> resources = {}; // in Topology::resources()
  uint32_t numResources = 0;
};

class Topology {
public:
  std::string name;
  Costs costs;

  // Building. Indices must be in range and within the limits above; the reader of topology files
  // checks that.
  /// A node with this many GPUs, which are the next ranks.
  void addNode(uint32_t gpus);
  void addLink(const Link &link);
  void addSwitch(Switch entry);
  void addNic(Nic nic);

  uint32_t numRanks() const { return static_cast<uint32_t>(nodeOfRank.size()); }
  uint32_t numNodes() const { return static_cast<uint32_t>(firstRankOfNode.size()) - 1; }
  uint32_t nodeOf(uint32_t rank) const { return nodeOfRank[rank]; }
  uint32_t firstRankOf(uint32_t node) const { return firstRankOfNode[node]; }
  uint32_t ranksOf(uint32_t node) const {
    return firstRankOfNode[node + 1] - firstRankOfNode[node];
  }
  const std::vector<Link> &links() const { return linkList; }
  const std::vector<Nic> &nics() const { return nicList; }
  /// The NICs of a rank or of a node, in order of declaration.
  const std::vector<uint32_t> &nicsOfRank(uint32_t rank) const { return rankNics[rank]; }
  const std::vector<uint32_t> &nicsOfNode(uint32_t node) const { return nodeNics[node]; }
  const std::vector<Resource> &resources() const { return resourceList; }

  /// The way from one rank to a different one: a direct link, else a switch that has both, else, on
  /// different nodes, a NIC of each. Where there are several the channel chooses. nullopt: there is
  /// none.
  std::optional<Route> route(uint32_t from, uint32_t to, uint32_t channel) const;
  /// Bytes a second of the narrowest part of the way, or 0 if there is none.
  BytesPerSecond bandwidth(uint32_t from, uint32_t to) const;
  /// For each rank, the number of its group, of ranks that can access each other's memory: they are
  /// on one node and have a way to each other. A rank is of the first group of its node that has
  /// it so, in order of ranks.
  std::vector<uint32_t> directGroups() const;

private:
  struct Port {
    uint32_t switchIndex, out, in; // the latter in `resourceList`
  };
  struct Target {
    uint32_t link, resource;
  };

  uint32_t addResource(std::string resourceName, BytesPerSecond bandwidth);
  std::optional<Route> routeBySwitch(uint32_t from, uint32_t to, uint32_t channel) const;
  std::optional<Route> routeByNics(uint32_t from, uint32_t to, uint32_t channel) const;

  std::vector<uint32_t> nodeOfRank;
  std::vector<uint32_t> firstRankOfNode = {0};
  std::vector<Link> linkList;
  std::vector<Switch> switchList;
  std::vector<Nic> nicList;
  std::vector<std::vector<uint32_t>> rankNics, nodeNics;
  std::vector<uint32_t> nicResources;   // of each NIC: out; in is the next
  std::vector<std::vector<Port>> ports; // of each rank
  std::unordered_map<uint64_t, std::vector<Target>> linksBetween;
  std::vector<Resource> resourceList;
};

} // namespace occl::topology
