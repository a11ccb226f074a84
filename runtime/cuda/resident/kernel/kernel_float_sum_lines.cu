#include "runtime/cuda/resident/kernel/kernel.cuh"

namespace occl::cuda::resident {

const Kernel &floatSumLinesKernel() {
  return residentKernel<
      ResidentTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>, Protocols::Lines>>();
}

} // namespace occl::cuda::resident
