// How an invocation stands on all ranks alike, and what it inherits of others before.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/invocation/open_invocation.h"
#include "runtime/sched/policy/policy.h"

#include <optional>

namespace occl::daemon {

/// Once all ranks have announced the invocation: how it stands on each of them, but for the
/// arrival. Nothing before, and nothing to who asks again. Any executor, with a task of it claimed.
///
/// A rank that waits for nothing of this one may be some invocations further and have used its
/// record again: then it does not count. So ranks can differ, which costs time and no more.
std::optional<scheduler::Standing> agreedStanding(OpenInvocation &invocation, const Fabric &fabric);

/// Before that: how it stands with the highest priority that any rank is known to give it, if that
/// is more than at the last call. Looks at one rank a call, at each in turn, so an urgent
/// announcement counts after as many visits as there are ranks, whoever else is missing. Any
/// executor, with a task of it claimed.
std::optional<scheduler::Standing> inheritedStanding(OpenInvocation &invocation,
                                                     const Fabric &fabric);

} // namespace occl::daemon
