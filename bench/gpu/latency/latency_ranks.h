// What benches of latency on CUDA devices have in common: ranks that are threads of one process, on
// as many devices as there are, several on one if need be; and plans from the command line.
#pragma once

#include "runtime/api/occl.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

namespace occl::bench {

/// Unless `isRight`, says what failed and why, and ends the process: other threads are still at it.
void require(bool isRight, const char *what);

/// A rank with a stream and two buffers of occlMemAlloc, of zeroes. They end with the communicator.
struct LatencyRank {
  occlComm_t comm = nullptr;
  int device = 0;
  cudaStream_t stream = nullptr;
  void *input = nullptr, *output = nullptr;
};
/// config: its device kind is set here.
std::vector<LatencyRank> makeLatencyRanks(uint32_t numRanks, occlConfig_t config, uint64_t bytes);
void destroyLatencyRanks(std::vector<LatencyRank> &ranks);

struct LatencyArguments {
  uint32_t numRanks = 0;
  uint32_t blocks = 0; // of the daemon
  std::vector<occlPlan_t> plans;
};
/// NAME <ranks> <thread blocks of the daemon> <plan>...; ends the process if they are not that.
LatencyArguments latencyArguments(int argc, char **argv, const char *name);

/// An all-reduce of floats and so many bytes, with the first plan that serves it.
occlCall_t callOf(const LatencyRank &rank, const std::vector<occlPlan_t> &plans, uint64_t bytes);

/// What follows in the rank's stream waits for the call, which is started after what is there.
void startInStream(const LatencyRank &rank, occlCall_t call);

} // namespace occl::bench
