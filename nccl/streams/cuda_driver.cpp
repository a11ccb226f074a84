#include "nccl/streams/cuda_driver.h"

#include <dlfcn.h>
#include <type_traits>

namespace occl::nccl {

std::string CudaDriver::nameOf(int error) const {
  const char *name = nullptr;
  return errorName(error, &name) == 0 && name ? name : "error " + std::to_string(error);
}

CudaDriver CudaDriver::load() {
  CudaDriver driver;
  // By dlopen, so that a program can be linked and started on machines without a driver.
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library)
    return driver;
  driver.isThere = true;
  // One that is missing makes the driver unusable as a whole: what is half done in streams could
  // not be undone.
  auto get = [&](const char *name, auto &function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    driver.isThere = driver.isThere && function;
  };
  get("cuInit", driver.init);
  get("cuDeviceGetCount", driver.deviceCount);
  get("cuCtxGetCurrent", driver.currentContext);
  get("cuCtxGetDevice", driver.currentDevice);
  get("cuDeviceGet", driver.deviceOf);
  // The versions with 64-bit sizes; names without _v2 are of CUDA 3, and are exported still.
  get("cuDevicePrimaryCtxRetain", driver.retainContext);
  get("cuDevicePrimaryCtxRelease_v2", driver.releaseContext);
  get("cuCtxSetCurrent", driver.setContext);
  get("cuMemAlloc_v2", driver.allocate);
  get("cuMemFree_v2", driver.release);
  get("cuEventCreate", driver.makeEvent);
  get("cuEventRecord", driver.recordEvent);
  get("cuStreamWaitEvent", driver.awaitEvent);
  get("cuEventDestroy_v2", driver.destroyEvent);
  get("cuThreadExchangeStreamCaptureMode", driver.exchangeCaptureMode);
  get("cuGetErrorName", driver.errorName);
  return driver;
}

} // namespace occl::nccl
