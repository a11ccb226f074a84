// How long the end of a communicator waits for what is in flight.
#pragma once

#include "runtime/sync/deadline.h"

#include <algorithm>
#include <chrono>
#include <initializer_list>

namespace occl {

/// 30 seconds, or as long as the longest of the timeouts and the grace, which is for what ends at
/// its deadline to be seen. Timeouts from kNoDeadline on do not count: what has one may never end.
inline std::chrono::milliseconds
drainPatience(std::initializer_list<std::chrono::milliseconds> timeouts,
              std::chrono::milliseconds grace) {
  std::chrono::milliseconds patience = std::chrono::seconds(30);
  for (const std::chrono::milliseconds given : timeouts)
    if (given < kNoDeadline)
      patience = std::max(patience, given + grace);
  return patience;
}

} // namespace occl
