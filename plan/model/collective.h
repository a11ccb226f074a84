// What the standard collectives promise, by name and independent of anything that a compiler says:
// how large the buffers are, how they alias, and what each output chunk is at the end.
#pragma once

#include "plan/model/plan.h"

#include <optional>
#include <string>
#include <string_view>

namespace occl::plan {

enum class StandardCollective : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  Reduce,
  AllToAll
};

/// The collective that a plan file calls "allreduce", "allgather", "reducescatter", "broadcast",
/// "reduce" or "alltoall".
std::optional<StandardCollective> standardCollectiveOf(std::string_view name);

/// Whether ranks, root and buffers of `plan` are those of `collective`; else what is wrong with
/// them. Expects plan.ranks to have numRanks entries.
std::string checkSizes(const Plan &plan, StandardCollective collective);

/// What one output chunk must be at the end: the reduction of one input chunk of every rank, or one
/// rank's input chunk.
struct Goal {
  bool ofAllRanks = false;
  Contribution contribution; // its chunk; its rank unless ofAllRanks
};

/// The goal of chunk `chunk` of rank `rank`'s output; nothing if the collective promises nothing
/// there.
std::optional<Goal> goalOf(const Plan &plan, StandardCollective collective, uint32_t rank,
                           uint32_t chunk);

} // namespace occl::plan
