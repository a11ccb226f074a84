#include "runtime/cuda/kernels/in_stream_straight.cuh"

namespace occl::cuda {

using Fold = interpreter::cuda::FixedFold<Plain<float>, Sum>;
const InStreamKernel kFloatSumStraightKernel = {launchStraight<Fold>, loadStraight<Fold>};

} // namespace occl::cuda
