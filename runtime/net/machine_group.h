// A group of processes of several machines: ranks of one island map each other's segments, of the
// others each rank has mirrors.
#pragma once

#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/net/rendezvous/socket.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl::net {

/// Whether a communicator of this name spans machines: it has an address in it.
bool isAddress(std::string_view name);

/// `name` is "HOST:PORT/SECRET": where rank 0 listens, and what all know, of at least 16
/// characters. Without a secret the environment's OCCL_SECRET.
struct MachineGroupOptions : bootstrap::ProcessGroupOptions {
  uint64_t heapBytes = 0;
  uint32_t orderPolicy = 0;
  /// Ranks are on devices, whose messages lie in the heaps: other islands store there.
  bool isOnDevice = false;
  /// As restartsFromEnvironment() says.
  std::optional<uint32_t> restarts;
  /// A peer whose machine answers nothing for so long is gone. OCCL_LINK_TIMEOUT_MS in the
  /// environment is in its place.
  std::chrono::milliseconds silence{30000};
};

/// Returns when all ranks have come and are connected. Errors: those of formProcessGroup(), and
/// InvalidArgument for the name.
StatusOr<std::unique_ptr<bootstrap::Group>> formMachineGroup(const MachineGroupOptions &options);

/// How many islands the ranks of `group` lie on if each has as many, more than one, and they are
/// numbered island by island; else 1. The same on all ranks. Any thread.
uint32_t numEvenIslands(const bootstrap::Group &group);

/// What a rank brings along when a group of several machines is divided: where the others come if
/// it is the first of them. Whoever gives up before destroys it.
struct DivisionListener {
  Descriptor socket;
  uint16_t port = 0;
};
StatusOr<DivisionListener> listenForDivision();

struct Division {
  struct Member {
    uint32_t parentRank = 0;
    uint16_t port = 0; // DivisionListener::port there
  };

  std::string name;            // the same on all members, and another one each time
  std::vector<Member> members; // rank i of the new group is members[i]
  uint64_t segmentBytes = 0, heapBytes = 0;
  uint32_t orderPolicy = 0;
  /// Whether a member, by its rank in the parent, takes no part any more; empty: it is not known.
  std::function<bool(uint32_t parentRank)> hasGivenUp = {};
};

/// `parent` has been formed by formMachineGroup(), or so. Each member calls it, with its own
/// listener. A group whose ranks are all of one island is one of a single machine. Errors are those
/// of formMachineGroup(), in which ranks have their new numbers; a member that is gone is named at
/// once (PeerFailed).
StatusOr<std::unique_ptr<bootstrap::Group>> divideMachineGroup(const bootstrap::Group &parent,
                                                               const Division &division,
                                                               DivisionListener own,
                                                               const Deadline &deadline);

} // namespace occl::net
