#include "runtime/cuda/resident/kernel/kernel.cuh"

namespace occl::cuda::resident {

const Kernel &floatSumKernel() {
  return residentKernel<
      ResidentTarget<interpreter::cuda::FixedFold<Plain<float>, Sum>, Protocols::Simple>>();
}

} // namespace occl::cuda::resident
