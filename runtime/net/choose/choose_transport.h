// Which transport each two ranks of different machines use, as both of them decide it.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/transport.h"
#include "runtime/sync/deadline.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace occl::net {

/// Transports that a rank may use, the best first, each at most once: "verbs", "tcp", "ncclnet" or
/// "ncclnet:NAME_OR_PATH" of a network plugin of NCCL. A pair takes the first of the lower rank's
/// that the other one may use, too, and that works.
using AllowedTransports = std::vector<std::string>;

/// As OCCL_NET says, such a list with commas. Not set: "verbs,tcp", and before them the plugin that
/// NCCL_NET_PLUGIN names, if it does and is not "none". InvalidArgument.
StatusOr<AllowedTransports> transportsOfEnvironment();

/// The name or path of the plugin of an entry of such a list; null: the entry is another transport.
const char *ncclNetPluginOf(const std::string &allowed);

/// One peer of a rank.
struct ConnectRequest {
  uint32_t peer = 0;
  /// Of both ranks among those of their machine: whose turn is to use which port or device.
  uint32_t ownTurn = 0, peerTurn = 0;
  bootstrap::Descriptor socket; // connected to the peer
  Regions regions;              // that the peer may write to
  /// Known to both, and to no stranger.
  std::array<std::byte, 32> key{};
};

struct Connected {
  std::unique_ptr<Endpoint> endpoint;
  std::string how; // "RDMA (mlx5_0 port 1)", "TCP (verbs: rank 3: this machine has no RDMA device)"
};

/// To all peers at once, in the order of requests; they call this, too. Each transport is tried
/// before it is chosen, for 5 s at most. Timeout, or PeerFailed if a connection ends, both naming
/// the peer; SystemError if with some peer no transport that both may use works.
StatusOr<std::vector<Connected>> connectEndpoints(uint32_t rank,
                                                  std::vector<ConnectRequest> requests,
                                                  std::chrono::milliseconds silence,
                                                  const AllowedTransports &allowed,
                                                  const Deadline &deadline);

} // namespace occl::net
