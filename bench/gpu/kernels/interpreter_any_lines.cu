#include "bench/gpu/kernels/interpreter_kernel.cuh"

namespace occl::bench {

int launchAnyLines(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks,
                   void *stream) {
  return launch<CudaTarget<interpreter::cuda::AnyFold, Protocols::Lines>>(arguments, blocks,
                                                                          localRanks, stream);
}

} // namespace occl::bench
