// Who waits for whom, as text for people.
#pragma once

#include "runtime/base/tick_clock.h"
#include "runtime/control/records/wait_edges.h"
#include "runtime/observe/report/known_collective.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace occl::insight {

/// What a rank says.
struct RankReport {
  /// It has looked since it was asked. Else the edges are those it published before: it has nothing
  /// open, or it does not run.
  bool isFresh = false;
  std::vector<transport::WaitEdge> edges;
  std::string note; // "is gone", if anything
};

/// An invocation that is open on some rank, and the ranks of its plan that have not submitted it.
struct MissingRanks {
  uint64_t collective = 0;
  uint64_t ordinal = 0;
  std::vector<uint32_t> ranks;
};

/// "rank 0 waits for rank 3 (data) in collective 'sum' (id 7), invocation 0, thread block 0,
/// instruction 2 (recv) at ring.coll:9:11, for 12.3 ms".
std::string describeWait(uint32_t rank, const transport::WaitEdge &edge, const LookUp &lookUp,
                         const TickScale &scale, Ticks now);

/// A line for every wait, with rank, what it waits for, collective, instruction, source line and
/// for how long at `now`; a line for every rank that waits for nobody; then who has not submitted
/// what.
std::string describeWaits(std::span<const RankReport> ranks, std::span<const MissingRanks> missing,
                          const LookUp &lookUp, Ticks now);

/// "ranks 2, 5 and 7", "rank 2".
std::string describeRanks(std::span<const uint32_t> ranks);

} // namespace occl::insight
