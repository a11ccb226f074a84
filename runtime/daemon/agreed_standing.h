// How an invocation stands on all ranks alike.
#pragma once

#include "runtime/daemon/fabric.h"
#include "runtime/daemon/open_invocation.h"
#include "runtime/scheduler/policy.h"

#include <optional>

namespace occl::daemon {

/// Once all ranks have announced the invocation: how it stands on each of them, but for the
/// arrival. Nothing before, and nothing to who asks again. Any executor, with a task of it claimed.
///
/// A rank that waits for nothing of this one may be some invocations further and have used its
/// record again: then it does not count. So ranks can differ, which costs time and no more.
std::optional<scheduler::Standing> agreedStanding(OpenInvocation &invocation, const Fabric &fabric);

} // namespace occl::daemon
