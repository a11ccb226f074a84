// The OCCL paper's chaos test on one rank: eight all-reduces of 256 bytes to 1 MB, which every rank
// submits in another order.
#pragma once

#include "runtime/api/occl.h"

#include <cstdint>
#include <functional>
#include <string>

namespace occl::gpu_test {

struct ChaosOptions {
  uint32_t numRanks = 1, rank = 0;
  uint32_t iterations = 200;
  /// In how many of them the rank waits for the whole device, or frees memory, after each
  /// submission.
  uint32_t synchronised = 20;
};

/// The communicator's device is current. "" or what is wrong.
std::string runChaos(occlComm_t comm, const ChaosOptions &options);

} // namespace occl::gpu_test
