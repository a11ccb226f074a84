// Dependencies that paths through other ranks make unnecessary.
#pragma once

#include "plan/model/plan.h"

namespace occl::plan {

/// Leaves out the dependencies of `plan` that follow from paths of thread blocks' order,
/// dependencies, signals and messages through other ranks: marks the connections on these paths as
/// ordered, and adds the paths as witnesses. A path of messages alone is enough where the verifier
/// accepts it. What is left does not follow from such paths, unless `budget`, in visited
/// instructions, was spent before all dependencies were looked at, or many paths were of messages
/// alone. Returns how many are gone. A plan of another protocol than Simple stays as it is: its
/// messages order nothing but their data.
///
/// The plan is one that verifyPlan accepts. It should be verified again.
uint32_t leaveOutRemoteDependencies(Plan &plan, uint64_t budget = uint64_t{1} << 28);

} // namespace occl::plan
