// The scaled inputs of a rank's calls, and copies as they are where a call is in place and its plan
// is not: how they come to their memory. The user's buffer is read by one small kernel, and by
// nobody else: docs/decisions/hosts/premultiplied-sums.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/scaling/input_memory.h"
#include "runtime/cuda/scaling/scale_kernel.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace occl::cuda {

/// Thread safety: any.
class ScaledInputs : public InputMemory {
public:
  ScaledInputs(DeviceMemory &memory, ArenaSpace &space, uint32_t multiprocessors)
      : InputMemory(memory, space), mostBlocks(4 * multiprocessors) {}
  ~ScaledInputs();
  ScaledInputs(const ScaledInputs &) = delete;
  ScaledInputs &operator=(const ScaledInputs &) = delete;

  /// As the next work of a stream of the device, which is current. SystemError.
  Status scaleIn(cudaStream_t stream, const Scaling &scaling) const;
  /// In no stream of the user's, and waits until it is done. Timeout after 20 seconds: it may be
  /// done later. SystemError.
  Status scaleNow(const Scaling &scaling);

private:
  Status startStream();

  const uint32_t mostBlocks;
  Mutex scaling; // the stream's user
  cudaStream_t own = nullptr;
};

} // namespace occl::cuda
