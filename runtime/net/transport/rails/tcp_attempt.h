// TCP between two ranks: over the connection by which they have met, or several.
#pragma once

#include "runtime/net/transport/attempt.h"

#include <memory>

namespace occl::net {

/// What ranks have met by works, so this does.
std::unique_ptr<TransportKind> tcpTransport();

} // namespace occl::net
