// The kernel of a resident daemon: a thread block is an executor.
#pragma once

#include "runtime/cuda/resident/executor.h"

namespace occl::cuda::resident {

/// What a kernel has code for: the fewer, the faster.
struct Kernel {
  /// Enqueues a generation of executors on the current device. Returns a cudaError_t.
  int (*launch)(const ExecutorArguments &arguments, void *stream);
  /// Loads the code, so that no launch has to: loading waits for running kernels. Returns a
  /// cudaError_t.
  int (*load)();
};

/// Collectives of protocol Simple, or LL and LL128; floats and sum, or any type and operation.
const Kernel &floatSumKernel();
const Kernel &anyKernel();
const Kernel &floatSumLinesKernel();
const Kernel &anyLinesKernel();

} // namespace occl::cuda::resident
