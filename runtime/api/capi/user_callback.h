// The user's callbacks, as the daemon takes them.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/queue/request_table.h"

namespace occl::communicator {

/// `callback` is not null.
daemon::Callback wrapped(occlCallback_t callback, void *user);

} // namespace occl::communicator
