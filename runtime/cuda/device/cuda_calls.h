// Calls of the CUDA runtime: errors as values, and what they change of the calling thread is put
// back.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/thread.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>

namespace occl::cuda {

/// A SystemError "<what>: <CUDA's text>", or Success.
Status toStatus(cudaError_t error, const char *what);

/// In one call, one after the other: writes and waits of 64-bit words as the next work of a stream.
/// The thread is on the device. SystemError.
Status streamMemoryOperations(cudaStream_t stream, CUstreamBatchMemOpParams *operations,
                              uint32_t number);

/// look(): a cudaError_t. Asks until it is another than cudaErrorNotReady, but no longer than that,
/// since CUDA's own waits have no end and others may keep the device busy. The last answer.
template <class Look> cudaError_t pollDevice(const Look &look, std::chrono::milliseconds atMost) {
  for (Deadline deadline(atMost);;) {
    const cudaError_t state = look();
    if (state != cudaErrorNotReady || deadline.passed())
      return state;
    yieldProcessor();
  }
}

/// Zeroes memory of the current device, and waits for that: some seconds at most, then Timeout. In
/// the order of no stream of anybody. SystemError.
Status clearNow(void *memory, uint64_t bytes);

/// Whether the device has done all that it was given, by whomever; waits for that so long at most.
/// CUDA refuses that while a stream of the device is captured, and spoils the capture; but to free
/// memory, which it does not refuse, would hold up all that the process asks of CUDA meanwhile.
bool awaitIdle(int device, std::chrono::milliseconds atMost);

/// The calling thread is on a device, until the end of the scope. Calls that a capture in progress
/// forbids are allowed meanwhile: they concern streams that nobody captures.
class OnDevice {
public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;

  const Status &status() const { return entered; }

private:
  int previous = -1;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  Status entered;
};

} // namespace occl::cuda
