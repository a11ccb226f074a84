#include "runtime/cuda/in_stream_standby.cuh"
#include "runtime/cuda/in_stream_straight.cuh"

namespace occl::cuda {

using Fold = interpreter::cuda::FixedFold<Plain<float>, Sum>;
const InStreamKernel kFloatSumStraightKernel = {launchStraight<Fold>, loadStraight<Fold>};
const StandbyKernel kFloatSumStandbyKernel = {launchStandbyKernel<Fold>, loadStandbyKernel<Fold>};

} // namespace occl::cuda
