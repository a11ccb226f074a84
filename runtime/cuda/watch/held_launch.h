// Work that waits, put into a stream of the user's: the stream counts as held (held_streams.h).
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/watch/held_streams.h"
#include "runtime/sync/atomic.h"

#include <cuda_runtime.h>

#include <memory>

namespace occl::cuda {

/// What a stream has come to, for as long as anybody asks.
class StreamMark {
public:
  explicit StreamMark(int device) : device(device) {}
  ~StreamMark();
  StreamMark(const StreamMark &) = delete;
  StreamMark &operator=(const StreamMark &) = delete;

  /// Before all else. SystemError: there is no mark.
  Status make();
  /// Once, also if nothing was put into the stream; its device is current. hasLaunched: something
  /// was. If the stream does not take the mark then, it is never passed, as nobody could tell when
  /// that is over; else at once.
  void put(cudaStream_t stream, bool hasLaunched);
  bool isPassed() const;

private:
  const int device;
  cudaEvent_t event = nullptr;
  Atomic<bool> isPut{false};
};

/// The stream counts as held until the mark is put into it and passed. SystemError.
StatusOr<std::shared_ptr<StreamMark>> hold(HeldStreams &held, int device, cudaStream_t stream);

/// launch(): puts work that waits into the stream, which counts as held from before it until that
/// is over. Not of captured streams: graphs do not count. Somebody asks only where a daemon is
/// strict. The device is current. What launch() returns; SystemError.
template <class Launch>
Status launchHeld(HeldStreams &held, int device, cudaStream_t stream, const Launch &launch) {
  if (!held.isWatched())
    return launch();
  auto mark = hold(held, device, stream);
  if (!mark.ok())
    return mark.status();
  Status status = launch();
  (*mark)->put(stream, status.ok());
  return status;
}

} // namespace occl::cuda
