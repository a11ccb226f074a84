// An event behind the last turn orders the next one, if that is in another stream.
#include "runtime/cuda/calls/stream_turns.h"

#include "runtime/cuda/device/cuda_calls.h"

namespace occl::cuda {

StreamTurns::~StreamTurns() {
  if (last)
    cudaEventDestroy(last);
}

/// In its own stream the order is there.
Status StreamTurns::begin(cudaStream_t stream) {
  unsigned long long which = 0;
  Status status = toStatus(cudaStreamGetId(stream, &which), "asking which stream it is");
  if (!status.ok() || !last || which == lastStream)
    return status;
  return toStatus(cudaStreamWaitEvent(stream, last, 0), "waiting for the turn before");
}

Status StreamTurns::end(cudaStream_t stream) {
  Status status;
  cudaEvent_t event = last;
  if (!event)
    status = toStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  if (status.ok())
    status = toStatus(cudaEventRecord(event, stream), "noting the end of a turn");
  if (status.ok())
    status = toStatus(cudaStreamGetId(stream, &lastStream), "asking which stream it is");
  last = event;
  return status;
}

} // namespace occl::cuda
