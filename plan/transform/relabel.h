// A plan of a collective with a root serves every root: its ranks are renamed.
#pragma once

#include "plan/model/plan.h"
#include "support/status.h"

namespace occl::plan {

/// `plan`, in which rank v is now rank (v + root - plan.root) mod numRanks, so that `root` is the
/// root. The parts of a buffer that belong to ranks, as those of the root in gather and scatter,
/// move with them. A parameter named "root" gets the new value. Who is to trust the result passes
/// it to verifyPlan. An error if there is no such rank, if the collective is none of broadcast,
/// reduce, gather and scatter, and if an instruction accesses the parts of several ranks at once in
/// a range that the new order would tear. `plan` is a verified one.
Expected<Plan> relabelled(const Plan &plan, uint32_t root);

} // namespace occl::plan
