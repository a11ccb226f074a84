// A collective as a resident kernel reads it.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/cuda/tables/device_collective.h"

#include <cstdint>

namespace occl::cuda::resident {

static_assert(CollectiveWords::kMaxRanks == kMaxRanks);

/// In memory of the device. Its invocations are all submitted to the resident daemon.
struct ResidentCollective : CollectiveWords {
  DeviceCollective device;
  uint64_t doneWord = 0;
};

} // namespace occl::cuda::resident
