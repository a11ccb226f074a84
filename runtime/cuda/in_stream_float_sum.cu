#include "runtime/cuda/in_stream.cuh"

namespace occl::cuda {

int launchFloatSum(const InStreamArguments &arguments, void *stream) {
  return launchInStream<
      CudaTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>, Protocols::Simple>>(arguments,
                                                                                      stream);
}

} // namespace occl::cuda
