#include "bench/gpu/kernels/interpreter_kernel.cuh"

namespace occl::bench {

int launchFixed(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks,
                void *stream) {
  return launch<CudaTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>, Protocols::Simple>>(
      arguments, blocks, localRanks, stream);
}

} // namespace occl::bench
