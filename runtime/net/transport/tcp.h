// An endpoint over a TCP connection.
#pragma once

#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/attempt.h"
#include "runtime/net/transport/transport.h"

#include <chrono>
#include <memory>

namespace occl::net {

/// For a socket that is connected and on which nothing is under way; both sides do it. Down when
/// the peer closes or resets the connection, sends a frame that is none, or when its kernel
/// acknowledges nothing for `silence` although something is to be acknowledged: a process that is
/// stopped acknowledges, a machine that is off does not.
std::unique_ptr<Endpoint> makeTcpEndpoint(bootstrap::Descriptor socket, const Regions &regions,
                                          std::chrono::milliseconds silence);

/// The connection over which the ranks have met: it works.
std::unique_ptr<TransportKind> tcpTransport();

} // namespace occl::net
