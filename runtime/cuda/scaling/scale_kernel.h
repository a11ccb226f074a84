// The kernel that scales a rank's input, or copies it as it is:
// see docs/decisions/hosts/premultiplied-sums.md.
#pragma once

#include "runtime/base/data_type.h"
#include "runtime/cuda/scaling/input_scale.h"

#include <cstdint>

namespace occl::cuda {

struct Scaling {
  DataType type = DataType::Float32;
  InputScale scale;           // none: the elements are copied as they are
  const char *from = nullptr; // of any alignment
  char *to = nullptr;         // aligned to 16 bytes, and disjoint from it
  uint64_t elements = 0;
};

/// As the next work of a CUDA stream (a cudaStream_t) of the current device, of at most so many
/// thread blocks. A factor of the host is read at once. A cudaError_t.
int launchScaling(const Scaling &scaling, uint32_t mostBlocks, void *stream);
/// Loads the kernel on the current device: the first launch would, and CUDA then waits for kernels
/// that run. A cudaError_t.
int loadScaling();

} // namespace occl::cuda
