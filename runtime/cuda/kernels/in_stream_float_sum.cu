#include "runtime/cuda/kernels/in_stream_folds.cuh"

namespace occl::cuda {

using namespace interpreter;

const InStreamKernels kFloatSumKernels =
    kKernelsOf<interpreter::cuda::FixedFold<Plain<float>, Sum>>;

} // namespace occl::cuda
