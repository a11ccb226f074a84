// A clock for measuring: the processor's own counter, half the price of the system's clock and so
// cheap enough for every visit of a task. Ticks become nanoseconds only when somebody reads them.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace occl {

using Ticks = uint64_t;

/// Now. Grows at a constant rate, on all processors alike up to some tens of nanoseconds.
inline Ticks ticks() {
#if defined(OCCL_EXPLORE)
  return 0; // time is the explorer's, and nothing depends on this one
#elif defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  Ticks now;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#else
  return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Ticks from `from` to `to`; 0 if the counters of two processors differ by more than that.
inline Ticks elapsed(Ticks from, Ticks to) { return to > from ? to - from : 0; }

/// What a tick is worth: measured against std::chrono::steady_clock since the first scale was
/// made, at least over two milliseconds. Make the first one early.
class TickScale {
public:
  TickScale();

  uint64_t nanoseconds(Ticks duration) const {
    return static_cast<uint64_t>(static_cast<double>(duration) * nanosecondsPerTick);
  }
  /// A time of ticks() as nanoseconds of steady_clock, which all processes of a machine share.
  uint64_t timeOf(Ticks time) const {
    auto distance = static_cast<double>(static_cast<int64_t>(time - anchorTicks));
    return anchorNanoseconds +
           static_cast<uint64_t>(static_cast<int64_t>(distance * nanosecondsPerTick));
  }

private:
  double nanosecondsPerTick = 1;
  Ticks anchorTicks = 0;
  uint64_t anchorNanoseconds = 0;
};

} // namespace occl
