// The first work of a stream on a device.
#pragma once

#include "runtime/base/status.h"

#include <cuda_runtime.h>

namespace occl::cuda {

/// Before a kernel that may wait for another one is put into a stream that this process may not
/// have used yet. The first kernels of two streams that two threads launch at the same time can be
/// executed one after the other (seen with CUDA 13.0 and driver 580 on H100, in 5 of 11 processes
/// that do nothing else): if one waits for the other, for ever. So the first work of a stream
/// without any is a write of four bytes, one stream at a time, for which the host waits, 10 ms at
/// most. `number`: its cudaStreamGetId. The device is current and the stream not captured. One load
/// for a stream that is known. Any thread. SystemError.
Status useStream(cudaStream_t stream, unsigned long long number);

} // namespace occl::cuda
