// Thread blocks of the format send to one rank, receive from one rank, and have one channel for
// both: which connections can share one, and on which channels.
#include "compiler/interchange/msccl/MscclLower.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace occl::interchange::msccl {

using plan::OperandKind;

namespace {

using RankPair = std::pair<uint32_t, uint32_t>;

/// Sets of ends that must have one channel, and the ranks that each set connects: two ends between
/// the same ranks cannot have one channel.
class ChannelSets {
public:
  explicit ChannelSets(const plan::Plan &plan)
      // Each receiving end of a connection begins as a set of its own, with its pair of ranks and
      // its channel.
      : parent(plan.destinations.size()), connects(plan.destinations.size()) {
    std::iota(parent.begin(), parent.end(), 0);
    for (const plan::Connection &connection : plan.connections)
      for (uint32_t i = 0; i < connection.numDestinations; ++i) {
        uint32_t end = connection.firstDestination + i;
        connects[end] = {{connection.source, plan.destinations[end]}};
        channels.resize(std::max<size_t>(channels.size(), end + 1));
        channels[end] = connection.channel;
      }
  }

  uint32_t find(uint32_t end) {
    while (parent[end] != end)
      end = parent[end] = parent[parent[end]];
    return end;
  }

  /// False if they cannot have one channel.
  bool unite(uint32_t a, uint32_t b) {
    // Union-find by size. Two sets cannot have one channel if both have a connection between the
    // same ranks.
    a = find(a);
    b = find(b);
    if (a == b)
      return true;
    if (connects[a].size() < connects[b].size())
      std::swap(a, b);
    for (const RankPair &ranks : connects[b])
      if (connects[a].contains(ranks))
        return false;
    connects[a].insert(connects[b].begin(), connects[b].end());
    connects[b].clear();
    parent[b] = a;
    return true;
  }

  const std::set<RankPair> &ranksOf(uint32_t root) const { return connects[root]; }
  uint32_t channelOf(uint32_t end) const { return channels[end]; }

private:
  std::vector<uint32_t> parent;
  std::vector<std::set<RankPair>> connects; // of roots
  std::vector<uint32_t> channels;           // that the plan has
};

/// How many instructions receive from one end and send to another, in one thread block.
std::map<RankPair, uint32_t> countFusions(const plan::Plan &plan) {
  // How much would be gained by having two ends in one thread block of the format: instructions
  // that receive and send at once would otherwise be two.
  std::map<RankPair, uint32_t> counts;
  for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(plan.ranks[rank])) {
      std::set<uint32_t> received, sent;
      for (const plan::Instruction &instruction : plan.instructionsOf(block)) {
        std::vector<uint32_t> from, to;
        for (const plan::Operand &source : plan.sourcesOf(instruction))
          if (source.kind == OperandKind::Connection)
            from.push_back(receivingEnd(plan, source.index, rank));
        for (const plan::Operand &destination : plan.destinationsOf(instruction))
          if (destination.kind == OperandKind::Connection)
            for (uint32_t i = 0; i < plan.connections[destination.index].numDestinations; ++i)
              to.push_back(plan.connections[destination.index].firstDestination + i);
        if (from.size() == 1 && to.size() == 1)
          ++counts[{from[0], to[0]}];
        received.insert(from.begin(), from.end());
        sent.insert(to.begin(), to.end());
      }
      // A thread block that the format could have stays whole, if its channels can be made one.
      if (received.size() == 1 && sent.size() == 1)
        ++counts[{*received.begin(), *sent.begin()}];
    }
  return counts;
}

} // namespace

Pairs choosePairs(const plan::Plan &plan) {
  // Greedily, the pairs that gain most first: an end has one partner.
  std::vector<std::pair<uint32_t, RankPair>> wanted;
  for (const auto &[ends, count] : countFusions(plan))
    wanted.push_back({count, ends});
  // Stable, so that the same plan gives the same file.
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto &a, const auto &b) { return a.first > b.first; });
  Pairs pairs(plan.destinations.size(), kNoEnd);
  std::vector<bool> isTaken(plan.destinations.size());
  ChannelSets sets(plan);
  for (const auto &[count, ends] : wanted) {
    auto [from, to] = ends;
    if (pairs[from] != kNoEnd || isTaken[to] || !sets.unite(from, to))
      continue;
    pairs[from] = to;
    isTaken[to] = true;
  }
  return pairs;
}

std::vector<uint32_t> colourChannels(const plan::Plan &plan, const Pairs &pairs) {
  // The pairs' ends must have one channel, and no two connections between the same ranks the same:
  // a greedy colouring of the sets, which takes the plan's own channel where it is free.
  ChannelSets sets(plan);
  for (uint32_t end = 0; end < pairs.size(); ++end)
    if (pairs[end] != kNoEnd)
      sets.unite(end, pairs[end]);
  std::map<uint32_t, uint32_t> channelOf; // of the root of each set
  std::map<RankPair, std::set<uint32_t>> used;
  for (uint32_t end = 0; end < pairs.size(); ++end) {
    uint32_t root = sets.find(end);
    if (channelOf.contains(root))
      continue;
    auto isFree = [&](uint32_t channel) {
      return std::none_of(sets.ranksOf(root).begin(), sets.ranksOf(root).end(),
                          [&](const RankPair &ranks) { return used[ranks].contains(channel); });
    };
    uint32_t channel = sets.channelOf(end);
    if (!isFree(channel))
      // The first free one.
      for (channel = 0; !isFree(channel);)
        ++channel;
    channelOf[root] = channel;
    for (const RankPair &ranks : sets.ranksOf(root))
      used[ranks].insert(channel);
  }
  std::vector<uint32_t> channels(pairs.size());
  for (uint32_t end = 0; end < pairs.size(); ++end)
    channels[end] = channelOf[sets.find(end)];
  return channels;
}

} // namespace occl::interchange::msccl
