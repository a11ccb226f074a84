// Words in host memory that a rank's host threads and its device both see.
#pragma once

#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/step/step.h"

#include <cstdint>

namespace occl::cuda {

/// Where a thread block stood when it gave up.
struct GivingUp {
  uint32_t isValid = 0; // stored last
  uint32_t place = 0;   // of the call's shape
  uint64_t invocation = 0;
  interpreter::BlockContext context;
  interpreter::Obstacle obstacle;
  uint32_t block = 0;
  /// It had not begun: it waited for `obstacle.peer` to make its first call (what == 0), to begin
  /// this one or to finish an earlier one (1), or for the own rank to finish those before (2); or
  /// as replay_word.h has it.
  uint32_t isBeginning = 0;
};

/// Shapes of calls, of a rank, at once. Each has a place, by which kernels call themselves in these
/// words.
inline constexpr uint32_t kMaxShapes = 1024;
/// Of these, what is no collective: transfers, and partitioned requests. Shapes have smaller ones.
inline constexpr uint32_t kTransferPlace = kMaxShapes - 1, kPartPlace = kMaxShapes - 2;

/// One rank's, in pinned memory.
struct HostWords {
  /// Host to device: not 0 once everything is to end.
  alignas(64) uint32_t abort = 0;
  /// Device to host: 1 + a rank that some thread block has waited for for some milliseconds.
  alignas(64) uint32_t waitsFor = 0;
  /// Device to host: by place, when some thread block of such a call was last seen to have waited
  /// for some milliseconds, by the device's clock.
  alignas(64) uint64_t waiting[kMaxShapes] = {};
  /// Device to host: the first thread block that gave up.
  alignas(64) GivingUp givingUp;
};

} // namespace occl::cuda
