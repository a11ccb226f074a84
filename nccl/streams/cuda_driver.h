// CUDA's driver, looked for when it is needed: a program that makes no communicator needs none.
#pragma once

#include "nccl/base/errors.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace occl::nccl {

/// The functions of the driver that are called here. Zero is success for all of them. The program
/// may have any copy of the CUDA runtime, or several; there is one driver, which knows the device
/// that each of them has made current.
struct CudaDriver {
  int (*init)(unsigned) = nullptr;
  int (*deviceCount)(int *) = nullptr;
  int (*currentContext)(void **) = nullptr;
  int (*currentDevice)(int *) = nullptr;
  int (*deviceOf)(int *, int) = nullptr;
  int (*retainContext)(void **, int) = nullptr;
  int (*releaseContext)(int) = nullptr;
  int (*setContext)(void *) = nullptr;
  int (*allocate)(uint64_t *, size_t) = nullptr;
  int (*release)(uint64_t) = nullptr;
  int (*makeEvent)(void **, unsigned) = nullptr;
  int (*recordEvent)(void *, cudaStream_t) = nullptr;
  int (*awaitEvent)(cudaStream_t, void *, unsigned) = nullptr;
  int (*destroyEvent)(void *) = nullptr;
  int (*exchangeCaptureMode)(int *) = nullptr;
  int (*errorName)(int, const char **) = nullptr;
  bool isThere = false;

  static CudaDriver load();

  /// What toDriver(), a call of the function of that name, comes to.
  template <class Call> Outcome call(const char *name, Call toDriver) const {
    if (!isThere)
      return {ncclUnhandledCudaError, "CUDA's driver, libcuda.so.1, is not found. Without GPUs set "
                                      "OCCL_NCCL_HOST=1, for buffers in host memory"};
    const int error = toDriver();
    return error == 0 ? Outcome()
                      : Outcome{ncclUnhandledCudaError, std::string(name) + ": " + nameOf(error)};
  }

private:
  std::string nameOf(int error) const;
};

} // namespace occl::nccl
