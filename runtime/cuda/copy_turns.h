// The copies of a collective's buffers to and from memory that the other ranks can access: all its
// invocations share that memory.
#pragma once

#include "runtime/base/status.h"

#include <cuda_runtime.h>

namespace occl::cuda {

/// Who copies next, in whichever stream, waits there until the copies of the one before have been
/// made. One thread at a time; the rank's device is current.
class CopyTurns {
public:
  CopyTurns() = default;
  ~CopyTurns();
  CopyTurns(const CopyTurns &) = delete;
  CopyTurns &operator=(const CopyTurns &) = delete;

  /// Before the first copy of an invocation. SystemError.
  Status begin(cudaStream_t stream);
  /// Behind its last one. SystemError.
  Status end(cudaStream_t stream);

private:
  cudaEvent_t last = nullptr; // behind the last copy; null: there was none
  unsigned long long lastStream = 0;
};

} // namespace occl::cuda
