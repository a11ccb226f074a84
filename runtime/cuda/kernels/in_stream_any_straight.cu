#include "runtime/cuda/kernels/in_stream_straight.cuh"

namespace occl::cuda {

using Fold = interpreter::cuda::AnyFold;
const InStreamKernel kAnyStraightKernel = {launchStraight<Fold>, loadStraight<Fold>};

} // namespace occl::cuda
