// Kernels as a user has them beside collectives.
#pragma once

#include <cstdint>

namespace occl::gpu_test {

/// So many milliseconds in a stream of the current device: one thread, or a thread block on every
/// multiprocessor that leaves room for nothing else there. A cudaError_t.
int launchDelay(void *stream, uint32_t milliseconds);
int launchOccupation(void *stream, uint32_t milliseconds);
/// A kernel of as many thread blocks as there are multiprocessors, each of which leaves room for
/// nothing else on its own; they meet, which all of them have to be there for, and the kernel
/// stores 1 in *done. `meeting` is zero before and after. Enqueued in a stream of the current
/// device; a cudaError_t.
int launchOnWholeDevice(void *stream, uint32_t *meeting, uint32_t *done);
/// A kernel that needs a stack of 4 KiB: CUDA makes the stacks of all threads of the device anew at
/// its first launch, and what is launched later begins after that.
int launchWithDeepStack(void *stream);
/// Stores to where no memory is: CUDA executes nothing of the process on the device any more.
int launchIllegalAccess(void *stream);
/// All but those of a deep stack, before anything waits: loading them later would wait, too. A
/// cudaError_t.
int loadUserKernels();

} // namespace occl::gpu_test
