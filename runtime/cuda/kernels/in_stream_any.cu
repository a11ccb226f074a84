#include "runtime/cuda/kernels/in_stream.cuh"

namespace occl::cuda {

using Target = CudaTarget<interpreter::cuda::AnyFold, Protocols::Simple>;
const InStreamKernel kAnyKernel = {launchInterpreter<Target>,
                                   loadKernel<interpretInStream<Target>>};

} // namespace occl::cuda
