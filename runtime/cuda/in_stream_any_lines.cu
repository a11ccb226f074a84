#include "runtime/cuda/in_stream.cuh"

namespace occl::cuda {

int launchAnyLines(const InStreamArguments &arguments, void *stream) {
  return launchInStream<CudaTarget<interpreter::cuda::AnyFold, Protocols::Lines>>(arguments,
                                                                                  stream);
}

} // namespace occl::cuda
