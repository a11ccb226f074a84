// Kernels as a user has them beside collectives.
#pragma once

#include <cstdint>

namespace occl::gpu_test {

/// So many milliseconds in a stream of the current device: one thread, or a thread block on every
/// multiprocessor that leaves room for nothing else there. A cudaError_t.
int launchDelay(void *stream, uint32_t milliseconds);
int launchOccupation(void *stream, uint32_t milliseconds);
/// Stores to where no memory is: CUDA executes nothing of the process on the device any more.
int launchIllegalAccess(void *stream);
/// Before anything waits: loading them later would wait, too. A cudaError_t.
int loadUserKernels();

} // namespace occl::gpu_test
