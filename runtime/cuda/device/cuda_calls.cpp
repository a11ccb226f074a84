#include "runtime/cuda/device/cuda_calls.h"

#include "runtime/sync/deadline.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace occl::cuda {

namespace {

/// For a device that others keep busy.
constexpr auto kPatience = std::chrono::milliseconds(20000);

} // namespace

Status toStatus(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return {};
  (void)cudaGetLastError(); // it is reported here, and not to whoever asks CUDA next
  return {StatusCode::SystemError,
          std::string(what) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error)};
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

Status clearNow(void *memory, uint64_t bytes) {
  cudaStream_t stream = nullptr;
  Status status =
      toStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a CUDA stream");
  if (!status.ok())
    return status;
  status = toStatus(cudaMemsetAsync(memory, 0, bytes, stream), "clearing device memory");
  cudaError_t state = cudaErrorNotReady;
  for (Deadline deadline(kPatience); status.ok() && state == cudaErrorNotReady;) {
    state = cudaStreamQuery(stream);
    if (state == cudaErrorNotReady && deadline.passed())
      status = {StatusCode::Timeout, "clearing device memory: the device does not get round to it"};
    sleepFor(std::chrono::microseconds(10));
  }
  cudaStreamDestroy(stream); // which waits for nothing
  return status.ok() ? toStatus(state, "clearing device memory") : status;
}

/// By a thread that may have to be left behind.
bool awaitIdle(int device, std::chrono::milliseconds atMost) {
  struct Waiting {
    Mutex mutex;
    ConditionVariable changed;
    bool isOver = false;
  };
  auto waiting = std::make_shared<Waiting>();
  try {
    // Not base's Thread: nobody joins it, and its wait may never end.
    std::thread([waiting, device] {
      OnDevice on(device);
      (void)cudaDeviceSynchronize(); // an error is the end of all that ran
      std::lock_guard lock(waiting->mutex);
      waiting->isOver = true;
      waiting->changed.notify_all();
    }).detach();
  } catch (const std::system_error &) {
    return false;
  }
  std::unique_lock lock(waiting->mutex);
  return waiting->changed.wait_for(lock, atMost, [&] { return waiting->isOver; });
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
