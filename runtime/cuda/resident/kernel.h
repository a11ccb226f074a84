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

/// For floats and sum; collectives of protocol Simple, or of LL and LL128.
const Kernel &floatSumKernel();
const Kernel &floatSumLinesKernel();

} // namespace occl::cuda::resident
