#include "runtime/cuda/cuda_calls.h"

#include <string>

namespace occl::cuda {

Status toStatus(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return {};
  (void)cudaGetLastError(); // it is reported here, and not to whoever asks CUDA next
  return {StatusCode::SystemError, std::string(what) + ": " + cudaGetErrorString(error)};
}

OnDevice::OnDevice(int device) {
  cudaThreadExchangeStreamCaptureMode(&mode);
  entered = toStatus(cudaGetDevice(&previous), "finding out the current CUDA device");
  if (entered.ok() && previous != device)
    entered = toStatus(cudaSetDevice(device), "changing to the rank's CUDA device");
  else
    previous = -1;
}

OnDevice::~OnDevice() {
  if (previous >= 0)
    cudaSetDevice(previous);
  cudaThreadExchangeStreamCaptureMode(&mode);
}

} // namespace occl::cuda
