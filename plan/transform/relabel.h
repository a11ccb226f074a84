// A plan of a collective with a root serves every root: its ranks are renamed.
#pragma once

#include "plan/model/plan.h"
#include "support/status.h"

namespace occl::plan {

/// `plan`, in which ranks have other numbers, so that `root` is the root: rank v is now rank
/// (v + root - plan.root) mod numRanks. With several islands of as many ranks each, numbered island
/// by island, islands have other numbers in this way, and so have the ranks of each: whoever shares
/// one still does. The parts of a buffer that belong to ranks, as those of the root in gather and
/// scatter, move with them. A parameter named "root" gets the new value. Who is to trust the result
/// passes it to verifyPlan. An error if there is no such rank, if the collective is none of
/// broadcast, reduce, gather and scatter, if islands are no divisor of the ranks, and if an
/// instruction accesses the parts of several ranks at once in a range that the new order would
/// tear. `plan` is a verified one.
support::Expected<Plan> relabelled(const Plan &plan, uint32_t root, uint32_t numIslands = 1);

} // namespace occl::plan
