// The user's callbacks, as the daemon takes them.
#pragma once

#include "runtime/communicator/occl.h"
#include "runtime/daemon/request_table.h"

namespace occl::communicator {

/// `callback` is not null.
daemon::Callback wrapped(occlCallback_t callback, void *user);

} // namespace occl::communicator
