// Tables that come to a device without their host waiting: through pinned memory, by a stream of
// their own, behind which the streams that need them are ordered by events.
#pragma once

#include "runtime/base/status.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

namespace occl::cuda {

/// One thread at a time; the device is current.
class UploadRing {
public:
  /// What is larger does not go through it.
  static constexpr uint64_t kMostBytes = 256 << 10;

  /// Pins 2 * kMostBytes of the host, which CUDA may wait for kernels to do: before there are any.
  /// SystemError.
  static StatusOr<std::unique_ptr<UploadRing>> make(int device);
  /// Nothing that was put is on its way any more, or the device is given up.
  ~UploadRing();
  UploadRing(const UploadRing &) = delete;
  UploadRing &operator=(const UploadRing &) = delete;

  /// At most kMostBytes bytes to memory of the device; `from` may be used again at once. Waits only
  /// for what was put kMostBytes before it. SystemError; Timeout after some seconds.
  Status put(char *to, const void *from, uint64_t bytes);
  /// What the stream is given next waits for all that was put. The stream is not captured.
  /// SystemError.
  Status order(cudaStream_t stream);
  /// All that was put has arrived. SystemError; Timeout after some seconds, and at once when it has
  /// been abandoned.
  Status await();
  /// Copies may still read it: nothing is given back to CUDA, which would wait for them.
  void abandon() { isLeft = true; }

private:
  UploadRing() = default;
  /// Half of the memory, and when all that was put into it so far has arrived.
  struct Half {
    char *memory = nullptr;
    uint64_t used = 0;
    cudaEvent_t arrived = nullptr;
    bool isMarked = true; // the event is behind the last copy
  };
  Status mark(Half &half) const;
  Status awaitHalf(Half &half) const;

  Half halves[2];
  uint32_t current = 0;   // that is filled
  uint32_t last = 0;      // that the last copy came from: a put that failed may have changed halves
  bool isPending = false; // nobody has seen the last one arrive
  bool isLeft = false;
  cudaStream_t copies = nullptr; // shared
};

} // namespace occl::cuda
