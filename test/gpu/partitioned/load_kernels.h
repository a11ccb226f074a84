// CUDA loads a kernel when it is first asked for, which waits for what runs: so tests ask before.
#pragma once

#include <cuda_runtime.h>

#include <initializer_list>

namespace occl::gpu_test {

/// All of them; the first error of CUDA.
inline int loadEach(std::initializer_list<const void *> kernels) {
  for (const void *kernel : kernels) {
    cudaFuncAttributes attributes;
    if (const int loaded = cudaFuncGetAttributes(&attributes, kernel); loaded != cudaSuccess)
      return loaded;
  }
  return cudaSuccess;
}

} // namespace occl::gpu_test
