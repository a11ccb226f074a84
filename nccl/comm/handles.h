// The live communicators of the process.
#pragma once

#include "nccl/comm/comm.h"

namespace occl::nccl {

/// Handles are numbers that are never used again, so that one of a destroyed communicator is known
/// as such.
ncclComm_t addHandle(std::shared_ptr<Comm> comm);
/// InvalidArgument for NULL and what is no handle; InvalidUsage in a forked child.
Outcome find(ncclComm_t handle, std::shared_ptr<Comm> &comm);
/// The same; the handle is none any more.
Outcome take(ncclComm_t handle, std::shared_ptr<Comm> &comm);
/// Whether a communicator with a handle is on the device.
bool isAnyLeftOn(int device);
/// Whether it is one of the process that this one was forked from.
bool isOfParent(ncclComm_t handle);

/// Finds a communicator and runs body(comm), which returns an Outcome, and reports it.
template <class Body> ncclResult_t withComm(const char *function, ncclComm_t handle, Body body) {
  return guarded(function, [&]() -> Outcome {
    std::shared_ptr<Comm> comm;
    Outcome found = find(handle, comm);
    return found.ok() ? body(*comm) : found;
  });
}

} // namespace occl::nccl
