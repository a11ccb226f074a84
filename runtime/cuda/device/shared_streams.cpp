// One stream of a kind for each device, made when it is first needed.
#include "runtime/cuda/device/shared_streams.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/mutex.h"

#include <map>
#include <mutex>
#include <utility>

namespace occl::cuda {

StatusOr<cudaStream_t> sharedStreamOn(int device, SharedStream which) {
  struct Registry {
    Mutex mutex;
    std::map<std::pair<int, SharedStream>, cudaStream_t> streams;
  };
  // Never destroyed: threads may still be at work when the process ends.
  static Registry &registry = *new Registry;
  std::lock_guard lock(registry.mutex);
  cudaStream_t &stream = registry.streams[{device, which}];
  if (stream)
    return stream;
  // A stream belongs to the device that is current when it is made.
  OnDevice on(device);
  if (!on.status().ok())
    return on.status();
  Status status =
      toStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a CUDA stream");
  return status.ok() ? StatusOr<cudaStream_t>(stream) : status;
}

StreamEnd::~StreamEnd() {
  if (event)
    cudaEventDestroy(event);
}

Status StreamEnd::make() {
  return toStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making a CUDA event");
}

Status StreamEnd::put(cudaStream_t stream) const {
  return toStatus(cudaEventRecord(event, stream), "recording a CUDA event");
}

} // namespace occl::cuda
