// For what makes a plan of another one.
#pragma once

#include "plan/model/plan.h"

namespace occl::plan {

/// Everything of `from` that is no table of ranks, connections or instructions, but the number of
/// ranks, which a PlanBuilder counts.
inline void copyHeader(const Plan &from, Plan &to) {
  // Field by field and not by copying the plan: its arrays may be hundreds of megabytes, and are
  // about to be built anew.
  to.schemaVersion = from.schemaVersion;
  to.name = from.name;
  to.collective = from.collective;
  to.parameters = from.parameters;
  to.sourceHash = from.sourceHash;
  to.partChunks = from.partChunks;
  to.root = from.root;
  // Which modes and counts the plan is valid for; transformations that change it set it afterwards.
  to.outOfPlace = from.outOfPlace;
  to.inPlace = from.inPlace;
  to.uniformChunks = from.uniformChunks;
  to.hasPostcondition = from.hasPostcondition;
  to.average = from.average;
  to.protocol = from.protocol;
  to.depth = from.depth;
  to.minBytes = from.minBytes;
  to.maxBytes = from.maxBytes;
  // Locations are shared by all instructions made of one, whatever becomes of them.
  to.files = from.files;
  to.locations = from.locations;
}

} // namespace occl::plan
