// The kernels of in-stream execution: for sums of floats or of bfloat16, or any type and operation;
// for programs without lines, with lines, or of straight blocks; and for a rank that only attends.
// All return a cudaError_t.
#pragma once

#include "runtime/cuda/kernels/in_stream.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace occl::cuda {

struct Launch {
  cudaStream_t stream = nullptr;
  /// The kernel may be started before the work before it in the stream is over, as far as there is
  /// room on the device.
  bool isEarly = false;
};

struct InStreamKernel {
  int (*launch)(const InStreamArguments &arguments, const Launch &launch);
  /// The first launch would load it, and CUDA then waits for kernels that run.
  int (*load)();
};
/// Of the same folds.
struct InStreamKernels {
  InStreamKernel simple, lines, straight;
};
extern const InStreamKernels kFloatSumKernels, kBfloat16SumKernels, kAnyKernels;
/// Of a rank without thread blocks.
extern const InStreamKernel kAttendKernel;

template <class Kernel>
int launchKernel(Kernel *kernel, uint32_t threads, const InStreamArguments &arguments,
                 const Launch &launch) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(arguments.collective.numBlocks);
  config.blockDim = dim3(threads);
  config.stream = launch.stream;
  config.attrs = &early;
  config.numAttrs = launch.isEarly ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments);
}
template <auto kKernel> int loadKernel() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kKernel);
}

} // namespace occl::cuda
