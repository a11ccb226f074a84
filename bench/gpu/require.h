// Benches of CUDA end where it fails.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace occl::bench {

/// Exits with the error in words, if there is one. Host threads.
inline void require(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

} // namespace occl::bench
