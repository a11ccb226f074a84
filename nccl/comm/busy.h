// Whether something of a communicator is in flight on its device, of which streams say nothing.
#pragma once

#include "nccl/comm/comm.h"

namespace occl::nccl {

/// What `comm` has in `own`, of a device; true also if that is not known within half a second.
/// Waits no longer, whatever runs there.
bool isBusyOnDevice(std::shared_ptr<Comm> comm, occlComm_t own);

/// Returns when nothing is in flight, and the device says so, or when it has failed: without bound,
/// as the end of a communicator of one machine, whose timeout is weeks.
void awaitIdle(occlComm_t own);

} // namespace occl::nccl
