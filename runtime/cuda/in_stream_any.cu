#include "runtime/cuda/in_stream.cuh"

namespace occl::cuda {

int launchAny(const InStreamArguments &arguments, void *stream) {
  return launchInStream<CudaTarget<interpreter::cuda::AnyFold, Protocols::Simple>>(arguments,
                                                                                   stream);
}

} // namespace occl::cuda
