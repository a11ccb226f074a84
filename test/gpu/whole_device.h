// A kernel that needs every multiprocessor of the device at once.
#pragma once

#include <cstdint>

namespace occl::gpu_test {

/// A kernel of as many thread blocks as there are multiprocessors, each of which leaves room for
/// nothing else on its own; they meet, which all of them have to be there for, and the kernel
/// stores 1 in *done. `meeting` is zero before and after. Enqueued in a stream of the current
/// device; a cudaError_t.
int launchOnWholeDevice(void *stream, uint32_t *meeting, uint32_t *done);
/// Before anything waits: loading it later would wait, too. A cudaError_t.
int loadOnWholeDevice();

} // namespace occl::gpu_test
