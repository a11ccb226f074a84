// Calls of communicators of the other library.
#pragma once

#include "nccl/calls/operation.h"

namespace occl::nccl {

/// Of several batches in one group of the other library, of which it says how it ended. Their
/// communicators are connected, and of that library.
Outcome passOn(const std::vector<const Batch *> &batches);

} // namespace occl::nccl
