// A kernel that answers the host with the device's clock, again and again, so that the host knows
// within the time of one answer what its own clock said then.
#pragma once

#include <cstdint>

namespace occl::cuda::resident {

/// In memory of the host that the device sees too; zero when the kernel is launched.
struct ClockProbe {
  static constexpr uint32_t kRounds = 32;
  /// How long the kernel waits for the host's next word.
  static constexpr uint64_t kPatienceNs = 100'000'000;

  /// The host stores 1, 2, 3 ... kRounds.
  alignas(128) uint64_t asked;
  /// By round: nanoseconds, never 0; or still 0.
  alignas(128) uint64_t answers[kRounds];
};

/// On the current device. Both return a cudaError_t. Loaded before anything runs that does not end
/// by itself: loading waits for that.
int loadClockProbe();
int launchClockProbe(ClockProbe *probe, void *stream);

} // namespace occl::cuda::resident
