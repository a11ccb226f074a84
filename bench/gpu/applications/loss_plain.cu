#include "bench/gpu/applications/loss_plain.h"

#include "examples/partitioned/loss_gradient.cuh"

#include <algorithm>

namespace occl::bench {

namespace {

/// Short thread blocks, many at a time, as nothing has to be left for others.
constexpr uint32_t kThreads = 256;
constexpr uint64_t kPerBlock = 4096;

__global__ void compute(LossBuffers buffers, uint64_t begin, uint64_t end) {
  const uint64_t first = begin + blockIdx.x * kPerBlock;
  examples::lossGradient(buffers.logits, buffers.labels, buffers.gradient, first,
                         min(first + kPerBlock, end));
}

} // namespace

int launchLoss(const LossBuffers &buffers, uint64_t begin, uint64_t end, cudaStream_t stream) {
  const auto blocks = static_cast<uint32_t>((end - begin + kPerBlock - 1) / kPerBlock);
  compute<<<blocks, kThreads, 0, stream>>>(buffers, begin, end);
  return cudaGetLastError();
}

} // namespace occl::bench
