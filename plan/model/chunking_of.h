// How the parts of a plan's buffers are cut into chunks.
#pragma once

#include "plan/model/chunking.h"
#include "plan/model/plan.h"

namespace occl::plan {

/// Whether users can see where chunks begin: chunks of a part may mean different things in a
/// collective that says of each what it is, or where values end in other chunks than their own. In
/// the collectives that are known by name, parts are all that can be seen.
inline bool hasVisibleChunks(const Plan &plan) {
  return !plan.requirements.empty() || !plan.hasPostcondition || plan.uniformChunks;
}

/// The chunks of a part of `count` elements. The grain is one element where chunks can be seen, so
/// that they are equal whenever `count` allows; else 128 bytes, so that chunks start where vectors
/// and cache lines do. Either way a plan whose chunks are pieces of those of another one cuts at
/// the same places, and reduces each element in the same order.
inline Chunking chunkingOf(const Plan &plan, uint64_t count, uint64_t elementBytes) {
  return {count, plan.partChunks, hasVisibleChunks(plan) ? 1 : kGrainBytes / elementBytes};
}

} // namespace occl::plan
