// A point in time after which nobody waits any longer.
#pragma once

#include "runtime/base/clock.h"

#include <chrono>

namespace occl {

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
