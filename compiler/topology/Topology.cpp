#include "compiler/topology/Topology.h"

#include <algorithm>

namespace occl::topology {

static uint64_t pairKey(uint32_t from, uint32_t to) {
  return static_cast<uint64_t>(from) << 32 | to;
}

uint32_t Topology::addResource(std::string resourceName, BytesPerSecond bandwidth) {
  resourceList.push_back({std::move(resourceName), bandwidth});
  return static_cast<uint32_t>(resourceList.size() - 1);
}

void Topology::addNode(uint32_t gpus) {
  nodeOfRank.insert(nodeOfRank.end(), gpus, numNodes());
  firstRankOfNode.push_back(numRanks());
  rankNics.resize(numRanks());
  nodeNics.resize(numNodes());
  ports.resize(numRanks());
}

void Topology::addLink(const Link &link) {
  uint32_t resource = addResource("link from rank " + std::to_string(link.from) + " to rank " +
                                      std::to_string(link.to),
                                  link.bandwidth);
  linksBetween[pairKey(link.from, link.to)].push_back(
      {static_cast<uint32_t>(linkList.size()), resource});
  linkList.push_back(link);
}

void Topology::addSwitch(Switch entry) {
  // A port has a resource for each direction: sending and receiving do not disturb each other.
  for (uint32_t rank : entry.ranks) {
    std::string port = "port of rank " + std::to_string(rank) + " at " + entry.name;
    uint32_t out = addResource(port + ", out", entry.bandwidth);
    uint32_t in = addResource(port + ", in", entry.bandwidth);
    ports[rank].push_back({static_cast<uint32_t>(switchList.size()), out, in});
  }
  switchList.push_back(std::move(entry));
}

void Topology::addNic(Nic nic) {
  // Likewise a NIC, whose two resources are neighbours, so that one number is enough.
  auto index = static_cast<uint32_t>(nicList.size());
  std::string text =
      "NIC " + std::to_string(nodeNics[nic.node].size()) + " of node " + std::to_string(nic.node);
  nicResources.push_back(addResource(text + ", out", nic.bandwidth));
  addResource(text + ", in", nic.bandwidth);
  nodeNics[nic.node].push_back(index);
  for (uint32_t rank : nic.ranks)
    rankNics[rank].push_back(index);
  nicList.push_back(std::move(nic));
}

std::optional<Route> Topology::route(uint32_t from, uint32_t to, uint32_t channel) const {
  // Links before switches before NICs: the most particular way that there is.
  auto direct = linksBetween.find(pairKey(from, to));
  if (direct != linksBetween.end()) {
    // Several links between two ranks are used by channel.
    const Target &target = direct->second[channel % direct->second.size()];
    return Route{linkList[target.link].latency, {target.resource}, 1};
  }
  if (std::optional<Route> way = routeBySwitch(from, to, channel))
    return way;
  return routeByNics(from, to, channel);
}

std::optional<Route> Topology::routeBySwitch(uint32_t from, uint32_t to, uint32_t channel) const {
  // Ranks may be at several switches in common.
  std::vector<Route> ways;
  for (const Port &out : ports[from])
    for (const Port &in : ports[to])
      if (out.switchIndex == in.switchIndex)
        ways.push_back({switchList[out.switchIndex].latency, {out.out, in.in}, 2});
  if (ways.empty())
    return std::nullopt;
  return ways[channel % ways.size()];
}

std::optional<Route> Topology::routeByNics(uint32_t from, uint32_t to, uint32_t channel) const {
  const std::vector<uint32_t> &source = rankNics[from], &target = rankNics[to];
  if (nodeOf(from) == nodeOf(to) || source.empty() || target.empty())
    return std::nullopt;
  uint32_t out = source[channel % source.size()], in = target[channel % target.size()];
  return Route{
      nicList[out].latency + nicList[in].latency, {nicResources[out], nicResources[in] + 1}, 2};
}

BytesPerSecond Topology::bandwidth(uint32_t from, uint32_t to) const {
  // The narrowest part of the way.
  std::optional<Route> way = route(from, to, 0);
  if (!way)
    return 0;
  BytesPerSecond narrowest = resourceList[way->resources[0]].bandwidth;
  for (uint32_t i = 1; i < way->numResources; ++i)
    narrowest = std::min(narrowest, resourceList[way->resources[i]].bandwidth);
  return narrowest;
}

std::vector<uint32_t> Topology::directGroups() const {
  // Groups of ranks of a node in which each reaches each other: greedily, the first group that
  // fits. All ranks of a switch are one.
  std::vector<uint32_t> groupOf(numRanks());
  std::vector<std::vector<uint32_t>> groups;
  for (uint32_t node = 0; node < numNodes(); ++node) {
    size_t firstOfNode = groups.size();
    for (uint32_t rank = firstRankOf(node); rank < firstRankOf(node) + ranksOf(node); ++rank) {
      auto group =
          std::find_if(groups.begin() + static_cast<ptrdiff_t>(firstOfNode), groups.end(),
                       [&](const std::vector<uint32_t> &members) {
                         return std::all_of(members.begin(), members.end(), [&](uint32_t member) {
                           return route(rank, member, 0) && route(member, rank, 0);
                         });
                       });
      groupOf[rank] = static_cast<uint32_t>(group - groups.begin());
      if (group == groups.end())
        group = groups.emplace(groups.end());
      group->push_back(rank);
    }
  }
  return groupOf;
}

} // namespace occl::topology
