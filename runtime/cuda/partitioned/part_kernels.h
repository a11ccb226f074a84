// Partitioned requests as work of streams: docs/decisions/gpu/partitioned.md.
#pragma once

#include "runtime/api/occl_device.cuh"
#include "runtime/cuda/tables/bound.h"

#include <cstdint>

namespace occl::cuda {

namespace device = occl::device::detail;

/// What a kernel that waits has. serial: of the request, for errors.
struct PartWait {
  device::State *state = nullptr;
  uint32_t peer = 0;
  uint32_t serial = 0;
  WaitBound bound;
};

// Into a stream of the current device; a cudaError_t.
int launchPartStart(device::State *state, void *stream);
/// Partitions first to last, whose messages have `units` units of the send in all.
int launchPartMarks(device::State *state, uint64_t first, uint64_t last, uint64_t units,
                    void *stream);
/// Of a collective: the epoch begins, behind the end of the last one.
int launchCollectiveStart(device::State *state, uint64_t epoch, void *stream);
/// Partitions first to last of its input.
int launchCollectiveMarks(device::State *state, uint64_t first, uint64_t last, void *stream);
/// Its call has ended: the end of the epoch, if that has succeeded.
int launchCollectiveEnd(const PartWait &wait, uint64_t epoch, void *stream);
/// Until the receiver has started; then *started, pinned, is the epoch.
int launchPartPrepare(const PartWait &wait, uint64_t *started, void *stream);
/// Behind a copy of partitions first to last, in this epoch: they are marked, and have arrived.
int launchCopiedMarks(device::State *state, uint64_t epoch, uint64_t first, uint64_t last,
                      void *stream);
/// A mark of a partition that such a copy has: it is a misuse, and nothing else.
int launchRefusedMark(device::State *state, uint64_t partition, void *stream);
/// units: of a send.
int launchSendWait(const PartWait &wait, uint64_t units, void *stream);
int launchReceiveWait(const PartWait &wait, void *stream);
/// Loads them on the current device. A cudaError_t.
int loadParts();

} // namespace occl::cuda
