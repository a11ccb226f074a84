// Streams of the library's own, for copies: few of a process and device, whatever the number of
// communicators. CUDA gives a process at most 32 connections to a device; streams that share one
// wait for each other, also for a kernel of the user's that waits for another rank.
#pragma once

#include "runtime/base/status.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace occl::cuda {

/// What is put into such a stream waits for nothing but the device. Tables: copies to the device,
/// which take no multiprocessor, so that they arrive while kernels wait on all of them. Memory: all
/// else.
enum class SharedStream : uint8_t { Tables, Memory };

/// Of this process, and never destroyed. Thread safety: any. SystemError.
StatusOr<cudaStream_t> sharedStreamOn(int device, SharedStream which);

/// Work in a shared stream for whose end its thread waits. Thread safety: one thread at a time.
class StreamEnd {
public:
  StreamEnd() = default;
  ~StreamEnd();
  StreamEnd(const StreamEnd &) = delete;
  StreamEnd &operator=(const StreamEnd &) = delete;

  /// SystemError.
  Status make();
  /// Behind what the stream has been given.
  Status put(cudaStream_t stream) const;
  /// cudaErrorNotReady until the stream has come there.
  cudaError_t look() const { return cudaEventQuery(event); }

private:
  cudaEvent_t event = nullptr;
};

} // namespace occl::cuda
