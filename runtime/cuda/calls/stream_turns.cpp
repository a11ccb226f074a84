// An event behind the last turn orders the next one, if that is in another stream.
#include "runtime/cuda/calls/stream_turns.h"

#include "runtime/cuda/device/cuda_calls.h"

namespace occl::cuda {

StreamTurns::~StreamTurns() {
  if (last)
    cudaEventDestroy(last);
}

Status StreamTurns::begin(cudaStream_t stream) {
  return last ? toStatus(cudaStreamWaitEvent(stream, last, 0), "waiting for the turn before")
              : Status();
}

Status StreamTurns::end(cudaStream_t stream) {
  Status status;
  cudaEvent_t event = last;
  if (!event)
    status = toStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  if (status.ok())
    status = toStatus(cudaEventRecord(event, stream), "noting the end of a turn");
  last = event;
  return status;
}

StatusOr<bool> StreamTurns::isOver() const {
  const cudaError_t state = last ? cudaEventQuery(last) : cudaSuccess;
  if (state == cudaErrorNotReady)
    return false;
  Status status = toStatus(state, "asking whether a turn is over");
  return status.ok() ? StatusOr<bool>(true) : StatusOr<bool>(status);
}

Status CapturedTurns::begin(cudaStream_t next) {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  Status status =
      toStatus(cudaStreamGetCaptureInfo(next, &state, &id, nullptr, nullptr, nullptr, nullptr),
               "looking at the capture");
  // An event of another capture would spoil this one.
  if (status.ok() && id == last.capture && next != last.stream)
    status = turns.begin(next);
  begun = {id, next};
  return status;
}

Status CapturedTurns::end() {
  Status status = turns.end(begun.stream);
  if (status.ok())
    last = begun;
  return status;
}

} // namespace occl::cuda
