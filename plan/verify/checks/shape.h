// Proof 1: every index, count, extent and operand of a plan is in range and fits its instruction,
// and the plan keeps to limits. Only a plan of good shape may be looked at by the other
// proofs.
#pragma once

#include "plan/verify/checks/finding.h"

namespace occl::plan::verify {

Finding checkShape(const Plan &plan, const Limits &most);

/// The part of it about ranks, thread blocks, connections and requirements.
Finding checkStructure(const Plan &plan, const Limits &most);

/// The part of it about instructions. Expects a good structure.
Finding checkInstructions(const Plan &plan, const Limits &most);

} // namespace occl::plan::verify
