// An event behind the work that waits says when its stream stops being held.
#include "runtime/cuda/watch/held_launch.h"

#include "runtime/cuda/device/cuda_calls.h"

namespace occl::cuda {

Status StreamMark::make() {
  OnDevice on(device);
  return toStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making a CUDA event");
}

StreamMark::~StreamMark() {
  if (!event)
    return;
  OnDevice on(device);
  cudaEventDestroy(event);
}

void StreamMark::put(cudaStream_t stream, bool hasLaunched) {
  // The error is nobody else's.
  const Status recorded = toStatus(cudaEventRecord(event, stream), "recording a CUDA event");
  // The flag comes after the event, so that nobody asks for an event that is not recorded, which
  // counts as passed.
  if (recorded.ok() || !hasLaunched)
    isPut.store(true, std::memory_order_release);
}

bool StreamMark::isPassed() const {
  OnDevice on(device);
  return isPut.load(std::memory_order_acquire) && cudaEventQuery(event) != cudaErrorNotReady;
}

StatusOr<std::shared_ptr<StreamMark>> hold(HeldStreams &held, int device, cudaStream_t stream) {
  unsigned long long which = 0;
  Status status = toStatus(cudaStreamGetId(stream, &which), "asking which stream it is");
  if (!status.ok())
    return status;
  auto mark = std::make_shared<StreamMark>(device);
  if (Status made = mark->make(); !made.ok())
    return made;
  // The stream counts as held from here on, before anything that waits is put into it.
  held.enterUntil(which, [mark] { return mark->isPassed(); });
  return mark;
}

} // namespace occl::cuda
