// Errors of OCCL and CUDA as exceptions.
#pragma once

#include "runtime/api/occl.h"

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace occl::examples {

inline void check(occlResult_t result, const char *what) {
  if (result != occlSuccess)
    throw std::runtime_error(std::string(what) + ": " + occlGetLastError());
}

inline void check(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

} // namespace occl::examples
