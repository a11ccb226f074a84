// Work that is put into several streams and shares something, memory or connectors: in which order
// its turns come.
#pragma once

#include "runtime/base/status.h"

#include <cuda_runtime.h>

namespace occl::cuda {

/// What comes next, in whichever stream, waits there until the turn before it is over. One thread
/// at a time; the rank's device is current.
class StreamTurns {
public:
  StreamTurns() = default;
  ~StreamTurns();
  StreamTurns(const StreamTurns &) = delete;
  StreamTurns &operator=(const StreamTurns &) = delete;

  /// Before the first work of a turn in another stream than the last one's: in that the order is
  /// there. SystemError.
  Status begin(cudaStream_t stream);
  /// Behind its last one. SystemError.
  Status end(cudaStream_t stream);
  /// Whether the last one that has ended so is over, with all before it; true if there was none.
  /// Does not wait. SystemError.
  StatusOr<bool> isOver() const;

private:
  cudaEvent_t last = nullptr; // behind the last turn; null: there was none
};

/// Of turns that are captured: in one capture each comes behind the one before, also in another
/// branch. Those of different captures nothing orders, and of captures that take turns with each
/// other the branches are not ordered either. As StreamTurns otherwise.
class CapturedTurns {
public:
  /// Before the first work of a turn. SystemError.
  Status begin(cudaStream_t stream);
  /// Behind its last one, in the stream of the last begin(). A turn without it was refused, and
  /// orders nothing. SystemError.
  Status end();

private:
  struct Turn {
    unsigned long long capture = 0;
    cudaStream_t stream = nullptr;
  };
  Turn begun, last;
  StreamTurns turns;
};

} // namespace occl::cuda
