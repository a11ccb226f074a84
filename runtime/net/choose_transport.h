// Which transport two ranks of different machines use, as both of them decide it.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/transport.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace occl::net {

/// Transports that a rank may use: of those that both ranks of a pair may, RDMA if it works.
struct AllowedTransports {
  bool verbs = true, tcp = true;
};

/// As OCCL_NET says, which is "verbs,tcp", "verbs" or "tcp"; not set: both. InvalidArgument.
StatusOr<AllowedTransports> transportsOfEnvironment();

struct ConnectRequest {
  uint32_t rank = 0, peer = 0;
  Regions regions; // that the peer may write to
  std::chrono::milliseconds silence{};
  AllowedTransports allowed;
};

struct Connected {
  std::unique_ptr<Endpoint> endpoint;
  std::string how; // "RDMA (mlx5_0 port 1)", "TCP (this machine has no RDMA device)"
};

/// `socket`: connected to the peer, which calls this, too. RDMA is tried before it is chosen.
/// Timeout; PeerFailed if the connection ends; SystemError if no transport that both may use works.
StatusOr<Connected> connectEndpoint(bootstrap::Descriptor socket, const ConnectRequest &request,
                                    const Deadline &deadline);

} // namespace occl::net
