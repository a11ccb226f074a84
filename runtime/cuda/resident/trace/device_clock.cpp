// Converts the device's times to the host's by two samples of both clocks.
#include "runtime/cuda/resident/trace/device_clock.h"

namespace occl::cuda::resident {

namespace {

/// A sample is right to a microsecond, and clocks of one host go alike to 50 in a million.
constexpr uint64_t kFarApart = 50'000'000;

/// Of the device's times.
double distance(uint64_t from, uint64_t to) {
  // Only 48 bits of times are kept; the difference has its sign there.
  constexpr uint32_t kMissing = 16;
  return static_cast<double>(static_cast<int64_t>((to - from) << kMissing) >> kMissing);
}

} // namespace

DeviceClock::DeviceClock(const ClockSample &first, const ClockSample &last,
                         double ticksPerNanosecond)
    : anchor(last), ticksPerNanosecond(ticksPerNanosecond) {
  if (distance(first.device, last.device) >= kFarApart && last.host > first.host)
    this->ticksPerNanosecond =
        static_cast<double>(last.host - first.host) / distance(first.device, last.device);
}

Ticks DeviceClock::hostAt(uint64_t device) const {
  return anchor.host + static_cast<Ticks>(static_cast<int64_t>(distance(anchor.device, device) *
                                                               ticksPerNanosecond));
}

double nominalTicksPerNanosecond() {
  constexpr Ticks kMany = 1'000'000'000;
  const uint64_t nanoseconds = TickScale().nanoseconds(kMany);
  return static_cast<double>(kMany) / static_cast<double>(nanoseconds == 0 ? 1 : nanoseconds);
}

} // namespace occl::cuda::resident
