// A point in time after which nobody waits any longer.
#pragma once

#include "runtime/sync/clock.h"

#include <chrono>

namespace occl {

/// Later than anybody waits: as a timeout, it is none. May be added to what the clocks say now.
inline constexpr std::chrono::milliseconds kNoDeadline = std::chrono::hours(24 * 365 * 30);

class Deadline {
public:
  using Clock = SteadyClock;

  explicit Deadline(std::chrono::milliseconds fromNow) : end(Clock::now() + fromNow) {}

  bool passed() const { return Clock::now() >= end; }
  /// Never negative.
  Clock::duration remaining() const {
    auto now = Clock::now();
    return now >= end ? Clock::duration::zero() : end - now;
  }

private:
  Clock::time_point end;
};

} // namespace occl
