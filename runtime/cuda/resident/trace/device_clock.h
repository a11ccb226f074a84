// How the clock of a device goes with that of the host.
#pragma once

#include "runtime/base/tick_clock.h"

#include <cstdint>

namespace occl::cuda::resident {

/// Both clocks at the same moment.
struct ClockSample {
  uint64_t device = 0; // nanoseconds, of which all but the lowest 48 bits may be missing
  Ticks host = 0;
};

/// Both go at constant rates between two samples.
class DeviceClock {
public:
  DeviceClock() = default;
  /// ticksPerNanosecond: nominally, for samples so close that it is the better value.
  DeviceClock(const ClockSample &first, const ClockSample &last, double ticksPerNanosecond);

  /// device: as in ClockSample, a day from the samples at most.
  Ticks hostAt(uint64_t device) const;

private:
  ClockSample anchor;
  double ticksPerNanosecond = 1;
};

/// What TickScale says.
double nominalTicksPerNanosecond();

} // namespace occl::cuda::resident
