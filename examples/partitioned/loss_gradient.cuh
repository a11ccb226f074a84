// The gradient of the binary cross-entropy loss, of logits and labels.
#pragma once

#include <cstdint>

namespace occl::examples {

/// Elements begin to end, multiples of 4, by all threads of the block.
__device__ inline void lossGradient(const float *logits, const float *labels, float *gradient,
                                    uint64_t begin, uint64_t end) {
  const auto one = [](float logit, float label) { return 1.f / (1.f + expf(-logit)) - label; };
  for (uint64_t i = begin / 4 + threadIdx.x; i < end / 4; i += blockDim.x) {
    const float4 x = reinterpret_cast<const float4 *>(logits)[i];
    const float4 y = reinterpret_cast<const float4 *>(labels)[i];
    reinterpret_cast<float4 *>(gradient)[i] = {one(x.x, y.x), one(x.y, y.y), one(x.z, y.z),
                                               one(x.w, y.w)};
  }
}

} // namespace occl::examples
