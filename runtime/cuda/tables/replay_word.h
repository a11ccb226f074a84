// How calls take their numbers where there are graphs: each thread block of the device has a word
// with the number of the next one, and a bit that says that a call has taken it and has not ended.
// Calls of a communicator run one after the other; what graphs have captured the program orders.
// One that finds the bit, as another one runs beside it, says so.
#pragma once

#include "runtime/base/host_device.h"

#include <cstdint>

namespace occl::cuda {

inline constexpr uint64_t kReplaying = 1ull << 63;

OCCL_INLINE uint64_t replayNumber(uint64_t word) { return word & ~kReplaying; }
OCCL_INLINE bool isReplaying(uint64_t word) { return (word & kReplaying) != 0; }

/// Obstacle::what of a thread block that gives up (GivingUp::isBeginning) as another call runs
/// beside its own.
inline constexpr uint32_t kTwoReplays = 3;
/// As rank `peer` calls something else in the place of this call.
inline constexpr uint32_t kOtherCall = 4;
/// As a kernel has misused a partitioned request; as rank `peer` has freed its side of one.
inline constexpr uint32_t kMisusedPart = 5, kFreedPart = 6;

} // namespace occl::cuda
