// Descriptors that children do not keep, as owners: support/process/closed_in_children.h.
#pragma once

#include "runtime/control/shm/mapping.h"
#include "support/process/closed_in_children.h"

#include <functional>

namespace occl::bootstrap {

using occl::ClosedInChildren;
using occl::NoFork;

/// openInThisProcess() opens it; not valid if there is none.
Descriptor openNotInherited(const std::function<int()> &open);

} // namespace occl::bootstrap
