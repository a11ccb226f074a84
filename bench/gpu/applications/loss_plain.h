// The kernel of examples/partitioned/loss.h without marks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace occl::bench {

struct LossBuffers {
  const float *logits = nullptr, *labels = nullptr;
  float *gradient = nullptr;
};

/// Elements begin to end, multiples of 4, as the stream's next work. A cudaError_t.
int launchLoss(const LossBuffers &buffers, uint64_t begin, uint64_t end, cudaStream_t stream);

} // namespace occl::bench
