#include "runtime/cuda/resident/kernel/kernel.cuh"

namespace occl::cuda::resident {

const Kernel &anyKernel() {
  return residentKernel<ResidentTarget<interpreter::cuda::AnyFold, Protocols::Simple>>();
}

} // namespace occl::cuda::resident
