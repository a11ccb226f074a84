// The kernel of a resident daemon: a thread block is an executor.
#pragma once

#include "runtime/cuda/resident/executor/executor.h"
#include "runtime/cuda/tables/device_collective.h"

#include <cstdint>

namespace occl::cuda::resident {

/// What a kernel has code for: the fewer, the faster.
struct Kernel {
  /// Enqueues a generation of executors on the current device. Returns a cudaError_t.
  int (*launch)(const ExecutorArguments &arguments, void *stream);
  /// Loads the code, so that no launch has to: loading waits for running kernels. Returns a
  /// cudaError_t.
  int (*load)();
};

/// For floats and sum, or any type and operation; for collectives of protocol Simple, or of LL and
/// LL128.
const Kernel &floatSumKernel();
const Kernel &floatSumLinesKernel();
const Kernel &anyKernel();
const Kernel &anyLinesKernel();

inline constexpr uint32_t kNumKernels = 4;
/// By kernelFor().
const Kernel &kernelAt(uint32_t index);
/// Whether it is for LL and LL128.
constexpr bool isForLines(uint32_t kernel) { return (kernel & 1) != 0; }
/// Which of them executes a collective.
inline uint32_t kernelFor(const DeviceCollective &collective) {
  return (collective.hasLines ? 1u : 0u) | (collective.folds == Folds::FloatSum ? 0u : 2u);
}

} // namespace occl::cuda::resident
