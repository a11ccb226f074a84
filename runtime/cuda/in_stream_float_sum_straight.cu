#include "runtime/cuda/in_stream_straight.cuh"

namespace occl::cuda {

const InStreamKernel kFloatSumStraightKernel = {
    launchStraight<interpreter::cuda::FixedFold<Plain<float>, Sum>>,
    loadStraight<interpreter::cuda::FixedFold<Plain<float>, Sum>>};

} // namespace occl::cuda
