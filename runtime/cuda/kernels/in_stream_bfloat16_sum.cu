#include "runtime/cuda/kernels/in_stream_folds.cuh"

namespace occl::cuda {

using namespace interpreter;

const InStreamKernels kBfloat16SumKernels =
    kKernelsOf<interpreter::cuda::FixedFold<Bfloat16Element, Sum>>;

} // namespace occl::cuda
