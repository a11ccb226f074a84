// Trying RDMA between two ranks.
#pragma once

#include "runtime/net/transport/attempt.h"

#include <memory>

namespace occl::net {

std::unique_ptr<TransportKind> verbsTransport();

} // namespace occl::net
