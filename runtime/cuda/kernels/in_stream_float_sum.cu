#include "runtime/cuda/kernels/in_stream.cuh"

namespace occl::cuda {

using Target = CudaTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>, Protocols::Simple>;
const InStreamKernel kFloatSumKernel = {launchInterpreter<Target>,
                                        loadKernel<interpretInStream<Target>>};

} // namespace occl::cuda
