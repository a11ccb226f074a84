// Gives a new stream its first work, one stream at a time, and waits for it.
#include "runtime/cuda/watch/stream_first_use.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <array>
#include <map>
#include <mutex>

namespace occl::cuda {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(10);

/// What is written; one for each device, which lives as long as the device's context.
StatusOr<void *> targetOn(int device) {
  // Never destroyed: threads may still be at work when the process ends.
  static auto &targets = *new std::map<int, void *>;
  void *&target = targets[device];
  if (target)
    return target;
  Status status = toStatus(cudaMalloc(&target, sizeof(uint32_t)), "allocating four bytes");
  return status.ok() ? StatusOr<void *>(target) : status;
}

/// One thread at a time.
Status writeIn(cudaStream_t stream) {
  int device = 0;
  Status status = toStatus(cudaGetDevice(&device), "asking for the device");
  if (!status.ok())
    return status;
  auto target = targetOn(device);
  if (!target.ok())
    return target.status();
  cudaError_t state = cudaMemsetAsync(*target, 0, sizeof(uint32_t), stream);
  if (state == cudaSuccess)
    state = pollDevice([&] { return cudaStreamQuery(stream); }, kPatience);
  if (state == cudaErrorNotReady)
    return {}; // others keep the device busy; it is on its way
  return toStatus(state, "the first work of a stream");
}

} // namespace

Status useStream(cudaStream_t stream, unsigned long long number) {
  // Numbers are never used again. One that another has displaced is written to once more.
  static std::array<Atomic<unsigned long long>, 1024> used{};
  static Mutex mutex;
  Atomic<unsigned long long> &seen = used[number % used.size()];
  if (seen.load(std::memory_order_acquire) == number + 1)
    return {};
  std::lock_guard lock(mutex);
  if (seen.load(std::memory_order_acquire) == number + 1)
    return {};
  const cudaError_t state = cudaStreamQuery(stream);
  Status status;
  if (state != cudaErrorNotReady) // else it has work
    status = state == cudaSuccess ? writeIn(stream) : toStatus(state, "looking at the stream");
  if (status.ok())
    seen.store(number + 1, std::memory_order_release);
  return status;
}

} // namespace occl::cuda
