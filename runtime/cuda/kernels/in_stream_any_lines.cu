#include "runtime/cuda/kernels/in_stream.cuh"

namespace occl::cuda {

using Target = CudaTarget<interpreter::cuda::AnyFold, Protocols::Lines>;
const InStreamKernel kAnyLinesKernel = {launchInterpreter<Target>,
                                        loadKernel<interpretInStream<Target>>};

} // namespace occl::cuda
