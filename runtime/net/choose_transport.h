// Which transport each two ranks of different machines use, as both of them decide it.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/transport.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace occl::net {

/// Transports that a rank may use: of those that both ranks of a pair may, RDMA if it works.
struct AllowedTransports {
  bool verbs = true, tcp = true;
};

/// As OCCL_NET says, which is "verbs,tcp", "verbs" or "tcp"; not set: both. InvalidArgument.
StatusOr<AllowedTransports> transportsOfEnvironment();

/// One peer of a rank.
struct ConnectRequest {
  uint32_t peer = 0;
  /// Of both ranks among those of their machine: whose turn is to use which port.
  uint32_t ownTurn = 0, peerTurn = 0;
  bootstrap::Descriptor socket; // connected to the peer
  Regions regions;              // that the peer may write to
};

struct Connected {
  std::unique_ptr<Endpoint> endpoint;
  std::string how; // "RDMA (mlx5_0 port 1)", "TCP (rank 3: this machine has no RDMA device)"
};

/// To all peers at once, in the order of requests; they call this, too. RDMA is tried before it is
/// chosen. Timeout, or PeerFailed if a connection ends, both naming the peer; SystemError if with
/// some peer no transport that both may use works.
StatusOr<std::vector<Connected>> connectEndpoints(uint32_t rank,
                                                  std::vector<ConnectRequest> requests,
                                                  std::chrono::milliseconds silence,
                                                  const AllowedTransports &allowed,
                                                  const Deadline &deadline);

} // namespace occl::net
