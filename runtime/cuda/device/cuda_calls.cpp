// Errors of CUDA as Status values, waits that have an end, and a scope on a device.
#include "runtime/cuda/device/cuda_calls.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

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

namespace {

using StreamOperations = CUresult (*)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);

/// The driver's own: the library must load where there is none. Once found it stays.
StatusOr<StreamOperations> findStreamOperations() {
  // The signature that the call has as of CUDA 12.
  constexpr unsigned kVersion = 12000;
  static Atomic<void *> known{nullptr};
  void *call = known.load(std::memory_order_acquire);
  if (call)
    return reinterpret_cast<StreamOperations>(call);
  // Several threads may look it up at once: all of them find the same address.
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  Status status = toStatus(cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &call, kVersion,
                                                            cudaEnableDefault, &found),
                           "looking for the driver's stream memory operations");
  if (!status.ok())
    return status;
  if (found != cudaDriverEntryPointSuccess)
    return Status(StatusCode::SystemError, "this driver has no stream memory operations");
  known.store(call, std::memory_order_release);
  return reinterpret_cast<StreamOperations>(call);
}

} // namespace

Status streamMemoryOperations(cudaStream_t stream, CUstreamBatchMemOpParams *operations,
                              uint32_t number) {
  auto call = findStreamOperations();
  if (!call.ok())
    return call.status();
  const CUresult result = (*call)(stream, number, operations, 0);
  if (result == CUDA_SUCCESS)
    return {};
  return {StatusCode::SystemError, "stream memory operations: the driver's error " +
                                       std::to_string(static_cast<int>(result))};
}

Status clearNow(void *memory, uint64_t bytes) {
  // A stream of its own, which is in no order with any other.
  cudaStream_t stream = nullptr;
  Status status =
      toStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a CUDA stream");
  if (!status.ok())
    return status;
  cudaError_t state = cudaMemsetAsync(memory, 0, bytes, stream);
  if (state == cudaSuccess)
    state = pollDevice([&] { return cudaStreamQuery(stream); }, kPatience);
  status = state == cudaErrorNotReady
               ? Status(StatusCode::Timeout,
                        "clearing device memory: the device does not get round to it")
               : toStatus(state, "clearing device memory");
  cudaStreamDestroy(stream); // which waits for nothing
  return status;
}

/// By a thread that may have to be left behind.
bool awaitIdle(int device, std::chrono::milliseconds atMost) {
  struct Waiting {
    Mutex mutex;
    ConditionVariable changed;
    bool isOver = false;
  };
  auto waiting = std::make_shared<Waiting>();
  // The thread may outlive this call, so both share what they wait with.
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
  // The capture mode is the thread's, and is put back at the end of the scope.
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
