// All kernels of in-stream execution that fold alike.
#pragma once

#include "runtime/cuda/kernels/in_stream.cuh"
#include "runtime/cuda/kernels/in_stream_straight.cuh"

namespace occl::cuda {

template <class Target>
inline constexpr InStreamKernel kInterpreter = {launchInterpreter<Target>,
                                                loadKernel<interpretInStream<Target>>};

/// Fold: see CudaTarget.
template <class Fold>
inline constexpr InStreamKernels kKernelsOf = {kInterpreter<CudaTarget<Fold, Protocols::Simple>>,
                                               kInterpreter<CudaTarget<Fold, Protocols::Lines>>,
                                               {launchStraight<Fold>, loadStraight<Fold>}};

} // namespace occl::cuda
