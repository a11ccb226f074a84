// Kernels that pass partitions, or words alone, to and fro between two ranks.
#pragma once

#include "runtime/api/occl_partitioned_device.h"

#include <cstdint>

namespace occl::bench {

// Into a stream (a cudaStream_t) of the current device; a cudaError_t. One thread block, which goes
// through all partitions: the first rank marks one and waits for the other's, the second one waits
// first. *took: nanoseconds by the device's clock.
int launchPartPingPong(void *stream, occlPartDevice_t send, occlPartDevice_t receive,
                       uint32_t partitions, uint32_t threads, bool isFirst, uint64_t *took);

/// What a program would write by hand, as the floor: `bytes` are stored to `to`, then a word to
/// `toWord`; the other side has the same. Words are zero before.
struct ByHand {
  const char *from;
  char *to;
  uint64_t bytes;
  uint64_t *toWord, *word;
};
int launchPingPongByHand(void *stream, ByHand by, uint32_t partitions, uint32_t threads,
                         bool isFirst, uint64_t *took);
/// Thread blocks that compute, each of which has a multiprocessor for itself: 384 sums each, of so
/// many steps.
int launchComputation(void *stream, float *sums, uint32_t blocks, uint32_t steps);
/// Both that wait, before anything does.
int loadPingPongs();

} // namespace occl::bench
