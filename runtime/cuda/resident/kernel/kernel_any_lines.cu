#include "runtime/cuda/resident/kernel/kernel.cuh"

namespace occl::cuda::resident {

const Kernel &anyLinesKernel() {
  return residentKernel<ResidentTarget<interpreter::cuda::AnyFold, Protocols::Lines>>();
}

} // namespace occl::cuda::resident
