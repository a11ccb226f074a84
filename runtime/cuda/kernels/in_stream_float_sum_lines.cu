#include "runtime/cuda/kernels/in_stream.cuh"

namespace occl::cuda {

using Target = CudaTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>, Protocols::Lines>;
const InStreamKernel kFloatSumLinesKernel = {launchInterpreter<Target>,
                                             loadKernel<interpretInStream<Target>>};

} // namespace occl::cuda
