// How replays of a captured call take their numbers: each thread block of the device has a word
// with the number of the next one, and a bit that says that a replay has taken it and has not
// ended. A call that is captured once has its connectors once: of the same node, instantiated twice
// or a child of two graphs, only one replay may run at a time. One that finds the bit says so.
#pragma once

#include "runtime/base/host_device.h"

#include <cstdint>

namespace occl::cuda {

inline constexpr uint64_t kReplaying = 1ull << 63;

OCCL_INLINE uint64_t replayNumber(uint64_t word) { return word & ~kReplaying; }
OCCL_INLINE bool isReplaying(uint64_t word) { return (word & kReplaying) != 0; }

/// Obstacle::what of a thread block that gives up (GivingUp::isBeginning) as another replay of its
/// call is running.
inline constexpr uint32_t kTwoReplays = 3;
/// As rank `peer` calls something else in the place of this call.
inline constexpr uint32_t kOtherCall = 4;

} // namespace occl::cuda
