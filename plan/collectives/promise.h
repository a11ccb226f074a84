// What the name of its collective says of a plan's buffers and chunks.
#pragma once

#include "plan/collectives/collectives.h"
#include "plan/model/plan.h"

#include <optional>
#include <string>

namespace occl::plan {

/// In chunks.
inline Parts partsOf(const Plan &plan) { return {plan.numRanks, plan.root, plan.partChunks}; }

/// Whether the buffers of `plan` are those of `collective`; else what is wrong with them. Expects
/// plan.ranks to have numRanks entries.
std::string checkSizes(const Plan &plan, StandardCollective collective);

/// The goal of chunk `chunk` of rank `rank`'s output; nothing if the collective promises nothing
/// there.
inline std::optional<Goal> goalOf(const Plan &plan, StandardCollective collective, uint32_t rank,
                                  uint32_t chunk) {
  return goalOf(collective, partsOf(plan), rank, chunk);
}

} // namespace occl::plan
