// Who may run: executors of a rank and cores of a node, where there are fewer than thread blocks.
// Internal to compiler/cost.
#pragma once

#include "compiler/cost/Network.h"

#include <deque>

namespace occl::cost {

/// Grants places in the order of requests. A block that continues without a pause keeps its place.
class Executors {
public:
  explicit Executors(const topology::Topology &topology)
      : topology(topology), perRank(topology.costs.executors), perNode(topology.costs.cores),
        ranks(topology.numRanks()), nodes(topology.numNodes()) {}

  bool areLimited() const { return perRank > 0 || perNode > 0; }

  /// Whether `block` of `rank` can start now; otherwise it queues, and a release will name it.
  bool acquire(uint32_t rank, uint32_t block) {
    return take(ranks[rank], perRank, rank, block) &&
           take(nodes[topology.nodeOf(rank)], perNode, rank, block);
  }

  /// Gives the places of a block of `rank` back; calls start(block, after) for each block that
  /// thereby can start, `after` later than now.
  template <typename Start> void release(uint32_t rank, Start start) {
    Pool &node = nodes[topology.nodeOf(rank)];
    if (Entry next = pass(node); next.block != kNobody)
      start(next.block, topology.costs.handover);
    Entry next = pass(ranks[rank]);
    if (next.block != kNobody && take(node, perNode, rank, next.block))
      start(next.block, Picoseconds{0});
  }

private:
  struct Entry {
    uint32_t rank = kNobody, block = kNobody;
  };
  struct Pool {
    uint32_t running = 0;
    std::deque<Entry> queue;
  };

  static bool take(Pool &pool, uint32_t places, uint32_t rank, uint32_t block) {
    if (places == 0 || pool.running < places) {
      ++pool.running;
      return true;
    }
    pool.queue.push_back({rank, block});
    return false;
  }

  /// Hands a place on to the first in the queue, or frees it.
  static Entry pass(Pool &pool) {
    if (pool.queue.empty()) {
      --pool.running;
      return {};
    }
    Entry next = pool.queue.front();
    pool.queue.pop_front();
    return next;
  }

  const topology::Topology &topology;
  uint32_t perRank, perNode;
  std::vector<Pool> ranks, nodes;
};

} // namespace occl::cost
