// Words in host memory that a rank's host threads and its device both see.
#pragma once

#include "runtime/cuda/device_collective.h"
#include "runtime/interpreter/slice.h"

#include <cstdint>

namespace occl::cuda {

/// Where a thread block stood when it gave up.
struct GivingUp {
  uint32_t isValid = 0; // stored last
  uint32_t slot = 0;
  uint64_t invocation = 0;
  interpreter::BlockContext context;
  interpreter::Obstacle obstacle;
  uint32_t block = 0;
  /// It had not begun: it waited for `obstacle.peer` to register the collective (what == 0) or to
  /// begin this invocation, or to finish an earlier one (what == 1).
  uint32_t isBeginning = 0;
};

/// Shapes of calls that use ordered connectors, of a rank, at once.
inline constexpr uint32_t kMaxShapes = 1024;
/// What kernels call themselves in these words: the slot of a registered collective, or kSlots and
/// the place of a shape.
inline constexpr uint32_t kReported = kSlots + kMaxShapes;

/// One rank's, in pinned memory.
struct HostWords {
  /// Host to device: not 0 once everything is to end.
  alignas(64) uint32_t abort = 0;
  /// Device to host: 1 + a rank that some thread block has waited for for some milliseconds.
  alignas(64) uint32_t waitsFor = 0;
  /// Device to host: by what is reported, when some thread block of the collective was last seen to
  /// have waited for some milliseconds, by the device's clock.
  alignas(64) uint64_t waiting[kReported] = {};
  /// Device to host: the first thread block that gave up.
  alignas(64) GivingUp givingUp;
};

} // namespace occl::cuda
