// An endpoint over one TCP connection, or several: docs/decisions/hosts/rails.md.
#pragma once

#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/rail_share.h"
#include "runtime/net/transport/transport.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace occl::net {

/// A connection of a pair.
struct Rail {
  bootstrap::Descriptor socket;
  std::string name; // "eth1", for errors; empty where there is one rail
};

/// For sockets that are connected to one peer and on which nothing is under way; both sides do it,
/// with the same number of rails, 1 to kMostRails, in the same order. Down when the peer closes or
/// resets a connection, sends a frame that is none, or when its kernel acknowledges nothing on one
/// for `silence` although something is to be acknowledged: a process that is stopped acknowledges,
/// a machine that is off does not.
std::unique_ptr<Endpoint> makeTcpEndpoint(std::vector<Rail> rails, const Regions &regions,
                                          std::chrono::milliseconds silence);
/// Over one connection.
std::unique_ptr<Endpoint> makeTcpEndpoint(bootstrap::Descriptor socket, const Regions &regions,
                                          std::chrono::milliseconds silence);

} // namespace occl::net
