// Connections over RDMA for tests, made as ranks make them.
#pragma once

#include "runtime/net/choose/choose_transport.h"
#include "runtime/net/transport/testing/side.h"
#include "runtime/net/transport/testing/socket_pair.h"

#include <chrono>
#include <cstdint>

namespace occl::net {

/// How long a peer of theirs may acknowledge nothing.
inline constexpr std::chrono::seconds kVerbsSilence{2};

/// One rank of two.
StatusOr<Connected> connectSide(Descriptor socket, Side &side, uint32_t rank,
                                const AllowedTransports &allowed = {"verbs"});
/// Both, between ports of this machine. Without two of them the test is skipped, or, if
/// OCCL_REQUIRE_VERBS is set, fails.
void overVerbs(Side &a, Side &b);

} // namespace occl::net
