#include "bench/gpu/kernels/interpreter_kernel.cuh"
#include "bench/gpu/kernels/timed_target.cuh"

namespace occl::bench {

int launchTimed(const LoopArguments &arguments, uint32_t blocks, uint32_t localRanks,
                void *stream) {
  return launch<TimedTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>>>(arguments, blocks,
                                                                              localRanks, stream);
}

} // namespace occl::bench
