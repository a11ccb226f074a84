// The kernel that copies the inputs and outputs of packed calls.
#pragma once

#include "runtime/cuda/packing/packed_calls.h"

#include <span>

namespace occl::cuda {

/// As the next work of a CUDA stream (a cudaStream_t) of the current device, captured or not, whose
/// memory all of it is, at any alignment. A kernel for each 96 copies. A cudaError_t.
int launchCopies(std::span<const DeviceCopy> copies, void *stream);
/// Loads the kernel on the current device: the first launch would, and CUDA then waits for kernels
/// that run. A cudaError_t.
int loadCopies();

} // namespace occl::cuda
