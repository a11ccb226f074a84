// A group of processes of several machines: ranks of one island map each other's segments, of the
// others each rank has mirrors.
#pragma once

#include "runtime/control/bootstrap/bootstrap.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace occl::net {

/// Whether a communicator of this name spans machines: it has an address in it.
bool isAddress(std::string_view name);

/// `name` is "HOST:PORT/SECRET": where rank 0 listens, and what all know, of at least 16
/// characters. Without a secret the environment's OCCL_SECRET.
struct MachineGroupOptions : bootstrap::ProcessGroupOptions {
  uint64_t heapBytes = 0;
  uint32_t orderPolicy = 0;
  /// A peer whose machine answers nothing for so long is gone. OCCL_LINK_TIMEOUT_MS in the
  /// environment is in its place.
  std::chrono::milliseconds silence{30000};
};

/// Returns when all ranks have come and are connected. Errors: those of formProcessGroup(), and
/// InvalidArgument for the name.
StatusOr<std::unique_ptr<bootstrap::Group>> formMachineGroup(const MachineGroupOptions &options);

} // namespace occl::net
