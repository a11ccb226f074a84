// A kernel of one warp that does nothing: what launching alone costs.
#pragma once

namespace occl::bench {

/// Into a stream (a cudaStream_t) of the current device. A cudaError_t.
int launchEmptyKernel(void *stream);

} // namespace occl::bench
