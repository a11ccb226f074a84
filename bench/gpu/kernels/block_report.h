// How a thread block on a device ended, for the host to read.
#pragma once

#include "runtime/exec/step/step.h"

#include <cstdint>

namespace occl::bench {

struct BlockReport {
  static constexpr uint32_t Absent = 0, Finished = 1, GaveUp = 2;
  uint32_t status = Absent;
  uint32_t invocation = 0;           // GaveUp: the one it was in
  interpreter::BlockContext context; // GaveUp: where it stood there
  interpreter::Obstacle obstacle;    // GaveUp: what some thread missed
  uint32_t rank = 0, block = 0;
  /// Nanoseconds of the device's clock between the end of the warm-up and the end.
  uint64_t measured = 0;
};

} // namespace occl::bench
