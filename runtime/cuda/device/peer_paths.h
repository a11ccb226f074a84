// What the paths between the devices of a communicator allow. Each rank says what it knows of its
// own device, and all come to the same answers from what all have said:
// - whether ranks store into each other's device memory: only where devices access each other's;
//   else what they say to each other goes through host memory;
// - whether lines of protocol LL128 arrive as they must (runtime/exec/cuda/lines_cuda.cuh): only
//   where any two devices are joined by NVLink.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <span>
#include <string>

namespace occl::cuda {

/// OCCL_LL128 of the environment: not set, 0 or 1.
enum class WideLines : uint32_t { WherePathsAllow, Never, Always };
/// text: the variable's value, or null. InvalidArgument.
StatusOr<WideLines> wideLinesFrom(const char *text);

/// OCCL_P2P_DISABLE of the environment, else NCCL_P2P_DISABLE: whether the user wants host memory
/// between all ranks. Their values, or null. InvalidArgument.
StatusOr<bool> isPeerAccessDisabled(const char *ours, const char *nccls);

/// What a rank says. Lies in shared memory, zero at first; other processes may write it.
struct PeerPaths {
  static constexpr uint32_t kMaxNamed = 31;
  static constexpr uint32_t kNameBytes = 16;

  WideLines wanted;
  uint32_t isPeerAccessDisabled; // by the user
  uint32_t computeCapability;    // 90 is 9.0
  uint32_t numLinked, numUnreachable;
  char device[kNameBytes];                 // its PCI bus id
  char uuid[kNameBytes];                   // not a text; instances of a device (MIG) have their own
  char linked[kMaxNamed][kNameBytes];      // of devices that NVLink joins with it
  char unreachable[kMaxNamed][kNameBytes]; // of devices whose memory it cannot access
};

/// Why what ranks say to each other must go through host memory, or "". A rank that does not see
/// another one's device knows nothing of it, and it is taken to be reachable.
std::string whyThroughHost(std::span<const PeerPaths> ranks);

/// Why the ranks must not use LL128, or "". Whoever asks, and whatever lies there.
std::string whyNoWideLines(std::span<const PeerPaths> ranks);

} // namespace occl::cuda
