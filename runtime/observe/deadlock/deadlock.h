// Whether ranks wait for each other in a cycle. Needed only without preemption, where an executor
// keeps to one invocation: with preemption every open invocation is visited and verified plans
// leave no cycle. Here it is found within one communicator, which those on CUDA devices ask; see
// device_cycle.h for several, and for those of the host.
#pragma once

#include "runtime/control/records/wait_edges.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace occl::daemon {

/// `edge` is what rank `waiter` waits for.
struct RankWait {
  uint32_t waiter = 0;
  transport::WaitEdge edge;
};

/// Who waits for whom, by number: of each those that it waits for. One without any moves, and so
/// does one that there is no such number of.
using WaitGraph = std::vector<std::vector<size_t>>;

/// Those that nobody outside the result can set moving: one moves as soon as one of its waits ends,
/// so it is stuck only if all of them lead to others that are.
std::vector<bool> findStuck(const WaitGraph &graph);

/// The cycle that a stuck one comes to along the first wait of each: in it or behind it.
std::vector<size_t> followFirstWaits(const WaitGraph &graph, size_t from);

/// A cycle of waits that `rank` is stuck behind or in, given what every rank waits for; empty if
/// there is none. A rank without edges is one that moves.
std::vector<RankWait> findWaitCycle(std::span<const transport::WaitSnapshot> ranks, uint32_t rank);

/// Tells a cycle that lasts from one that only looks like it because ranks are read one after
/// another or are slow to notice. Each snapshot carries how often its rank has looked again and
/// found nothing.
class DeadlockDetector {
public:
  /// The cycle, once all ranks that `rank` waits for have confirmed the same waits several times
  /// since a former call.
  std::vector<RankWait> update(std::vector<transport::WaitSnapshot> ranks, uint32_t rank);

private:
  std::optional<std::vector<transport::WaitSnapshot>> first; // where the present state began
};

} // namespace occl::daemon
