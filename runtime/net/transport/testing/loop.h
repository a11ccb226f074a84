// Two endpoints in one process, without a network: for tests. What is sent lies in a queue until
// the other side receives it.
#pragma once

#include "runtime/net/transport/transport.h"

#include <memory>
#include <utility>

namespace occl::net {

/// Two ends of a connection: what one sends lands in the regions of the other. Each holds at most
/// `capacity` bytes that the other has not received, and room for one frame at least. Destroying
/// one makes the other down.
std::pair<std::unique_ptr<Endpoint>, std::unique_ptr<Endpoint>>
makeLoop(const Regions &first, const Regions &second, uint64_t capacity);

} // namespace occl::net
