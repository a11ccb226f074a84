// What one call puts into a stream, operation after operation, each of which may fail.
#pragma once

#include "runtime/base/status.h"

#include <cstdint>
#include <utility>

namespace occl::cuda {

/// After the first that fails nothing more is put. If that was the first of all, the stream is as
/// it was and the call may be made again. If not, half a call is in the stream, and nobody can take
/// it out: then ranks may not agree any more which invocation is next.
class StreamSteps {
public:
  /// put: () -> Status.
  template <class Put> StreamSteps &then(Put &&put) {
    if (!outcome.ok())
      return *this;
    outcome = std::forward<Put>(put)();
    number += outcome.ok();
    return *this;
  }

  const Status &status() const { return outcome; }
  bool isHalfDone() const { return !outcome.ok() && number != 0; }

private:
  Status outcome;
  uint32_t number = 0; // that have been put
};

} // namespace occl::cuda
