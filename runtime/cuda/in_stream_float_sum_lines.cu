#include "runtime/cuda/in_stream.cuh"

namespace occl::cuda {

int launchFloatSumLines(const InStreamArguments &arguments, void *stream) {
  return launchInStream<
      CudaTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>, Protocols::Lines>>(arguments,
                                                                                     stream);
}

} // namespace occl::cuda
