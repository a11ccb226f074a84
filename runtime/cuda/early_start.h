// Which kernels may take their place on the device before it is their turn in the stream.
#pragma once

#include "runtime/cuda/limits.h"

#include <cstdint>

namespace occl::cuda {

/// If not said otherwise: so many connections the streams of a process share by default.
inline constexpr uint32_t kDefaultStreams = 8;

/// Threads of the largest such kernel. While a kernel waits for other ranks the one behind it in
/// its stream holds its room as well, so that many threads twice in each of `streams` streams are
/// what a device of so many multiprocessors surely has room for. Both positive.
constexpr uint32_t mostEarlyThreads(uint32_t multiprocessors, uint32_t streams) {
  return multiprocessors * kThreads / 2 / streams;
}

} // namespace occl::cuda
