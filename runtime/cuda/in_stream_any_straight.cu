#include "runtime/cuda/in_stream_straight.cuh"

namespace occl::cuda {

const InStreamKernel kAnyStraightKernel = {launchStraight<interpreter::cuda::AnyFold>,
                                           loadStraight<interpreter::cuda::AnyFold>};

} // namespace occl::cuda
