#include "runtime/daemon/deadlock.h"

#include <algorithm>
#include <utility>

namespace occl::daemon {

namespace {

using transport::WaitEdge;
using transport::WaitReason;
using transport::WaitSnapshot;

/// Dependencies stay within a rank; the block depended on has edges of its own.
bool leavesRank(const WaitEdge &edge) { return edge.reason != WaitReason::Dependency; }

bool waits(const WaitSnapshot &rank) {
  return std::any_of(rank.edges.begin(), rank.edges.end(), leavesRank);
}

/// The ranks that no rank outside the result can set moving.
std::vector<bool> stuckRanks(std::span<const WaitSnapshot> ranks) {
  std::vector<bool> stuck;
  for (const WaitSnapshot &rank : ranks)
    stuck.push_back(waits(rank));
  auto mayMove = [&](const WaitEdge &edge) {
    return leavesRank(edge) && (edge.peer >= ranks.size() || !stuck[edge.peer]);
  };
  for (bool changed = true; std::exchange(changed, false);)
    for (size_t r = 0; r < ranks.size(); ++r)
      if (stuck[r] && std::any_of(ranks[r].edges.begin(), ranks[r].edges.end(), mayMove)) {
        stuck[r] = false;
        changed = true;
      }
  return stuck;
}

} // namespace

std::vector<RankWait> findWaitCycle(std::span<const WaitSnapshot> ranks, uint32_t rank) {
  if (!stuckRanks(ranks)[rank])
    return {};
  // All edges of a stuck rank lead to stuck ranks, so following the first one comes around.
  std::vector<RankWait> path;
  std::vector<size_t> placeInPath(ranks.size(), ranks.size());
  for (uint32_t r = rank;;) {
    if (placeInPath[r] != ranks.size()) {
      path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(placeInPath[r]));
      return path;
    }
    placeInPath[r] = path.size();
    const auto &edges = ranks[r].edges;
    path.push_back({r, *std::find_if(edges.begin(), edges.end(), leavesRank)});
    r = path.back().edge.peer;
  }
}

std::vector<RankWait> DeadlockDetector::update(std::vector<WaitSnapshot> ranks, uint32_t rank) {
  constexpr uint64_t kConfirmations = 4;
  std::vector<bool> stuck = stuckRanks(ranks);
  if (!stuck[rank]) {
    first.reset();
    return {};
  }
  bool same = first.has_value();
  bool confirmed = true;
  for (size_t r = 0; r < ranks.size() && same; ++r) {
    if (!stuck[r])
      continue;
    same = ranks[r].version == (*first)[r].version;
    confirmed &= ranks[r].confirmations >= (*first)[r].confirmations + kConfirmations;
  }
  if (!same) {
    first = std::move(ranks);
    return {};
  }
  return confirmed ? findWaitCycle(ranks, rank) : std::vector<RankWait>{};
}

} // namespace occl::daemon
