// Which kernels may take their place on the device before it is their turn in the stream.
#pragma once

#include "runtime/cuda/tables/limits.h"

#include <cstdint>

namespace occl::cuda {

/// If not said otherwise: so many connections the streams of a process share by default.
inline constexpr uint32_t kDefaultStreams = 8;

/// Of compute capabilities.
inline constexpr int kFirstMajorWithEarlyStart = 9;

/// Of the larger buffer of a collective that may gain by it. With more, the microsecond is nothing
/// beside the data, and kernels that are on the device in turns on other multiprocessors carry
/// less: all-gather of 1 GiB 1,501 us instead of 1,469.
inline constexpr uint64_t kMostEarlyBytes = 32 << 20;

/// Threads of the largest such kernel; 0: none. While a kernel waits for other ranks the one behind
/// it in its stream holds its room as well, so that many threads twice in each of `streams` streams
/// are what a device of so many multiprocessors surely has room for; both positive. bytes: of the
/// larger buffer.
constexpr uint32_t mostEarlyThreads(uint32_t multiprocessors, uint32_t streams, uint64_t bytes) {
  return bytes > kMostEarlyBytes ? 0 : multiprocessors * kThreads / 2 / streams;
}

} // namespace occl::cuda
