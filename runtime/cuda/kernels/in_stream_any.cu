#include "runtime/cuda/kernels/in_stream_folds.cuh"

namespace occl::cuda {

using namespace interpreter;

const InStreamKernels kAnyKernels = kKernelsOf<interpreter::cuda::AnyFold>;

} // namespace occl::cuda
