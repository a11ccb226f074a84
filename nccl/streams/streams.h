// Where operations are executed: in CUDA's streams, or, on hosts, in threads that take one after
// the other.
#pragma once

#include "nccl/calls/operation.h"

#include <span>

namespace occl::nccl {

/// Thread safety: any.
class StreamKind {
public:
  virtual ~StreamKind() = default;

  /// The device that a communicator made by this thread is for.
  virtual Outcome currentDevice(int &device) = 0;
  virtual Outcome numDevices(int &number) = 0;
  /// The device's, on this thread, as the other library's communicators take it from there.
  virtual Outcome makeCurrent(int device) = 0;
  /// What is said to OCCL about a communicator on that device.
  virtual void configure(occlConfig_t &config, int device) = 0;
  /// InvalidArgument if it is no stream.
  virtual Outcome check(cudaStream_t stream) = 0;
  /// Puts the batches, of different communicators each, into their streams. Batches of a
  /// communicator are executed in the order of these calls, over all streams. The batches may be
  /// moved from.
  virtual Outcome launch(std::span<Batch> batches) = 0;
  virtual Outcome allocate(void *&memory, size_t bytes) = 0;
  virtual Outcome release(void *memory) = 0;
};

/// CUDA's, or those of hosts if OCCL_NCCL_HOST=1. Never destroyed.
StreamKind &streams();

StreamKind &cudaStreams();
StreamKind &hostStreams();

} // namespace occl::nccl
