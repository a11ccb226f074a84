// How long who waits for something looks for it, and how long it offers the processor before it
// leaves it.
#pragma once

#include "runtime/sync/clock.h"

#include <chrono>
#include <cstdint>

namespace occl::daemon {

/// Polls since something has moved.
class Polling {
public:
  /// Whether to look once more; asks budget() for the time, in nanoseconds, at the first call.
  template <class Budget> bool goesOn(Budget budget) {
    if (polls++ % kPollsPerClock != 0)
      return true;
    if (polls != 1)
      return SteadyClock::now() < until;
    const std::chrono::nanoseconds time = budget();
    if (time.count() == 0)
      return false;
    until = SteadyClock::now() + time;
    return true;
  }

private:
  /// Between two looks at the clock: it takes longer than a poll.
  static constexpr uint32_t kPollsPerClock = 4;

  uint32_t polls = 0;
  SteadyClock::time_point until;
};

/// Offers of the processor since something has moved.
class Offers {
public:
  bool haveBegun() const { return count != 0; }
  bool areOver() const { return over; }
  void reset() {
    count = 0;
    over = false;
  }
  /// Whether to offer it once more, instead of leaving it.
  bool goOn() {
    if (count++ < kUntimed)
      return true;
    auto now = SteadyClock::now();
    if (count == kUntimed + 1)
      since = now;
    over = now - since >= kTime;
    return !over;
  }

private:
  static constexpr std::chrono::microseconds kTime{100};
  /// So many before that is measured: mostly the first one is taken, and ends the wait.
  static constexpr uint32_t kUntimed = 2;

  uint32_t count = 0;
  bool over = false;
  SteadyClock::time_point since;
};

} // namespace occl::daemon
