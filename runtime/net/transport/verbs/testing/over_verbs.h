// Connections over RDMA for tests, made as ranks make them.
#pragma once

#include "runtime/net/choose_transport.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/testing/side.h"

#include <chrono>
#include <cstdint>
#include <utility>

namespace occl::net {

/// How long a peer of theirs may acknowledge nothing.
inline constexpr std::chrono::seconds kVerbsSilence{2};

/// Two ends of a TCP connection over loopback.
std::pair<Descriptor, Descriptor> socketPair();
/// One rank of two.
StatusOr<Connected> connectSide(Descriptor socket, Side &side, uint32_t rank,
                                AllowedTransports allowed = {true, false});
/// Both, between ports of this machine. Without two of them the test is skipped, or, if
/// OCCL_REQUIRE_VERBS is set, fails.
void overVerbs(Side &a, Side &b);

} // namespace occl::net
