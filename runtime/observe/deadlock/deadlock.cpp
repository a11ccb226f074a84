// Finds ranks that wait for each other in a cycle.
#include "runtime/observe/deadlock/deadlock.h"

#include <algorithm>
#include <utility>

namespace occl::daemon {

namespace {

using transport::WaitEdge;
using transport::WaitReason;
using transport::WaitSnapshot;

/// Dependencies stay within a rank; the block depended on has edges of its own.
bool leavesRank(const WaitEdge &edge) { return edge.reason != WaitReason::Dependency; }

WaitGraph graphOf(std::span<const WaitSnapshot> ranks) {
  WaitGraph graph(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r)
    for (const WaitEdge &edge : ranks[r].edges)
      if (leavesRank(edge))
        graph[r].push_back(edge.peer);
  return graph;
}

} // namespace

std::vector<bool> findStuck(const WaitGraph &graph) {
  std::vector<bool> stuck;
  for (const auto &waitsFor : graph)
    stuck.push_back(!waitsFor.empty());
  auto mayMove = [&](size_t other) { return other >= graph.size() || !stuck[other]; };
  // Take out each rank with a wait for one that may move, until none is left.
  for (bool changed = true; std::exchange(changed, false);)
    for (size_t i = 0; i < graph.size(); ++i)
      if (stuck[i] && std::any_of(graph[i].begin(), graph[i].end(), mayMove)) {
        stuck[i] = false;
        changed = true;
      }
  return stuck;
}

std::vector<size_t> followFirstWaits(const WaitGraph &graph, size_t from) {
  // All waits of a stuck one lead to stuck ones, so following the first one comes around.
  std::vector<size_t> path;
  for (size_t i = from;; i = graph[i].front()) {
    auto seen = std::find(path.begin(), path.end(), i);
    if (seen != path.end()) {
      path.erase(path.begin(), seen);
      return path;
    }
    path.push_back(i);
  }
}

std::vector<RankWait> findWaitCycle(std::span<const WaitSnapshot> ranks, uint32_t rank) {
  WaitGraph graph = graphOf(ranks);
  if (!findStuck(graph)[rank])
    return {};
  std::vector<RankWait> cycle;
  for (size_t r : followFirstWaits(graph, rank)) {
    const auto &edges = ranks[r].edges;
    cycle.push_back(
        {static_cast<uint32_t>(r), *std::find_if(edges.begin(), edges.end(), leavesRank)});
  }
  return cycle;
}

std::vector<RankWait> DeadlockDetector::update(std::vector<WaitSnapshot> ranks, uint32_t rank) {
  constexpr uint64_t kConfirmations = 4;
  // A rank that may move has no deadlock to confirm.
  std::vector<bool> stuck = findStuck(graphOf(ranks));
  if (!stuck[rank]) {
    first.reset();
    return {};
  }
  // Nothing has changed, and each stuck rank has looked often enough since.
  bool same = first.has_value();
  bool confirmed = true;
  for (size_t r = 0; r < ranks.size() && same; ++r) {
    if (!stuck[r])
      continue;
    same = ranks[r].version == (*first)[r].version;
    confirmed &= ranks[r].confirmations >= (*first)[r].confirmations + kConfirmations;
  }
  // Begin to count again from these waits.
  if (!same) {
    first = std::move(ranks);
    return {};
  }
  return confirmed ? findWaitCycle(ranks, rank) : std::vector<RankWait>{};
}

} // namespace occl::daemon
