// Trying a network plugin of NCCL between two ranks.
#pragma once

#include "runtime/net/transport/attempt.h"

#include <memory>
#include <string>

namespace occl::net {

/// `plugin`: as of ncclNetFiles().
std::unique_ptr<TransportKind> ncclNetTransport(std::string plugin);

} // namespace occl::net
