// A stream beside another one.
#pragma once

#include "examples/partitioned/check.h"

#include <cuda_runtime_api.h>

namespace occl::examples {

/// A stream whose work is beside that of another one for a while; may be captured with it. It has
/// the greatest priority: else what is put into it would come behind all that the other has begun.
/// The device is current. Constructor and orders throw std::runtime_error.
class SideStream {
public:
  SideStream() {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
          "cudaStreamCreateWithPriority");
    check(cudaEventCreateWithFlags(&order, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  ~SideStream() {
    cudaEventDestroy(order);
    cudaStreamDestroy(stream);
  }
  SideStream(const SideStream &) = delete;
  SideStream &operator=(const SideStream &) = delete;

  /// What follows here comes after what the other one has now; and the other way round.
  void follow(cudaStream_t other) { put(other, stream); }
  void precede(cudaStream_t other) { put(stream, other); }

  cudaStream_t stream = nullptr;

private:
  void put(cudaStream_t before, cudaStream_t after) {
    check(cudaEventRecord(order, before), "cudaEventRecord");
    check(cudaStreamWaitEvent(after, order, 0), "cudaStreamWaitEvent");
  }

  cudaEvent_t order = nullptr;
};

} // namespace occl::examples
