#include "runtime/cuda/cuda_calls.h"

#include <string>

namespace occl::cuda {

Status toStatus(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return {};
  (void)cudaGetLastError(); // it is reported here, and not to whoever asks CUDA next
  return {StatusCode::SystemError, std::string(what) + ": " + cudaGetErrorString(error)};
}

Status streamMemoryOperations(cudaStream_t stream, CUstreamBatchMemOpParams *operations,
                              uint32_t number) {
  // The driver's own: the library must load where there is none.
  using Call = CUresult (*)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
  constexpr unsigned kVersion = 12000;
  void *call = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  Status status = toStatus(cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &call, kVersion,
                                                            cudaEnableDefault, &found),
                           "looking for the driver's stream memory operations");
  if (!status.ok())
    return status;
  if (found != cudaDriverEntryPointSuccess)
    return {StatusCode::SystemError, "this driver has no stream memory operations"};
  const CUresult result = reinterpret_cast<Call>(call)(stream, number, operations, 0);
  if (result == CUDA_SUCCESS)
    return {};
  return {StatusCode::SystemError, "stream memory operations: the driver's error " +
                                       std::to_string(static_cast<int>(result))};
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
