// The process that has made an id, as its root: a thread of it lets ranks decide (meeting.h).
#pragma once

#include "nccl/bootstrap/unique_id.h"

#include <chrono>

namespace occl::nccl {

/// From here on ranks of the id reach this process, which the id then says: over a local socket,
/// that of the process if the id names none, and, if there is an interface, over TCP. False if it
/// cannot be reached: the id is as it was. An id that has a root, this process or another one,
/// keeps that. The thread, one of a process, ends with the process.
bool serveAsRoot(IdLayout &id);

/// How long ranks that are to use the other library wait for each other:
/// OCCL_NCCL_FALLBACK_SECONDS, 300 if it is not set.
std::chrono::milliseconds patience();

} // namespace occl::nccl
