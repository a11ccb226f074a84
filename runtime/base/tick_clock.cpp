// The rate of the processor's tick counter, measured by the steady clock.
#include "runtime/base/tick_clock.h"

#include <limits>

namespace occl {

namespace {

struct Anchor {
  Ticks ticks = 0;
  uint64_t nanoseconds = 0;
};

uint64_t steadyNanoseconds() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Both clocks at one moment. A thread that is interrupted between them would be far off, so the
/// closest of several pairs counts.
Anchor readBoth() {
  constexpr int kAttempts = 5;
  Anchor best;
  Ticks narrowest = std::numeric_limits<Ticks>::max();
  for (int i = 0; i < kAttempts; ++i) {
    Ticks before = ticks();
    uint64_t now = steadyNanoseconds();
    Ticks width = elapsed(before, ticks());
    if (width >= narrowest)
      continue;
    narrowest = width;
    best = {before + width / 2, now};
  }
  return best;
}

const Anchor &firstAnchor() {
  static const Anchor anchor = readBoth();
  return anchor;
}

} // namespace

TickScale::TickScale() {
  // Over a shorter time the error of a single reading would count.
  constexpr uint64_t kShortest = 2'000'000;
  const Anchor &first = firstAnchor();
  Anchor now = readBoth();
  while (now.nanoseconds - first.nanoseconds < kShortest)
    now = readBoth();
  if (now.ticks > first.ticks)
    nanosecondsPerTick = static_cast<double>(now.nanoseconds - first.nanoseconds) /
                         static_cast<double>(now.ticks - first.ticks);
  anchorTicks = now.ticks;
  anchorNanoseconds = now.nanoseconds;
}

} // namespace occl
