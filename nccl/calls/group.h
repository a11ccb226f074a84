// Groups of calls, of the calling thread.
#pragma once

#include "nccl/calls/operation.h"
#include "nccl/comm/comm.h"

namespace occl::nccl {

/// Begins the operation, or in a group remembers it until the group's end.
Outcome submit(const std::shared_ptr<Comm> &comm, const Operation &operation);

/// Whether the calling thread is inside of a group.
bool isInGroup();

/// In how many places the calling thread's group has the communicator.
size_t placesInGroup(const std::shared_ptr<Comm> &comm);

/// The result of a call that a group may be around: an error is also the group's.
ncclResult_t inGroup(ncclResult_t result);

} // namespace occl::nccl
