// Whether lines of protocol LL128 arrive as they must on the paths between the devices of a
// communicator (runtime/exec/cuda/lines_cuda.cuh): only where any two are joined by NVLink. Each
// rank says what it knows of its own device, and all come to the same answer from what all have
// said.
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

/// What a rank says. Lies in shared memory, zero at first; other processes may write it.
struct PeerPaths {
  static constexpr uint32_t kMaxLinked = 31;
  static constexpr uint32_t kNameBytes = 16;

  WideLines wanted;
  uint32_t computeCapability; // 90 is 9.0
  uint32_t numLinked;
  char device[kNameBytes];             // its PCI bus id
  char linked[kMaxLinked][kNameBytes]; // of devices that NVLink joins with it
};

/// Why the ranks must not use LL128, or "". Whoever asks, and whatever lies there.
std::string whyNoWideLines(std::span<const PeerPaths> ranks);

} // namespace occl::cuda
