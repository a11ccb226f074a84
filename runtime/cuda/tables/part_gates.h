// Which partitions of a rank's buffers the thread blocks of a partitioned collective need and make,
// as executors of a resident daemon read it: docs/decisions/gpu/partitioned-collectives.md.
#pragma once

#include "runtime/api/occl_device_parts.cuh"
#include "runtime/cuda/tables/bound.h"

#include <cstdint>

namespace occl::cuda {

namespace device = occl::device::detail;

/// [begin, end)
struct PartitionRange {
  uint32_t begin, end;
};

/// Of a request, in memory of the device; constant but for what the pointers lead to.
struct PartGates {
  /// Its words: the epoch, marks, what has been misused, and what executors add to.
  device::State *state;
  /// Thread block b reads partitions of ranges firstRead[b] to firstRead[b + 1], the latter not
  /// included; `atEnd` more come behind those of the last one, which no thread block reads: the
  /// first one waits for them at its end. Likewise what it stores to, of the output.
  const PartitionRange *ranges;
  const uint32_t *firstRead, *firstMade;
  uint32_t numBlocks, atEnd;
  /// How misuse is told.
  WaitBound bound;
  uint32_t serial;
};

/// How far the ranges that a thread block reads are known to be marked, in this epoch.
struct GateCursor {
  uint32_t range, offset; // all before that are
};

} // namespace occl::cuda
