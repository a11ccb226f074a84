// What a rank's host makes of what its kernels say of their waits. Knows nothing of CUDA.
#pragma once

#include "runtime/cuda/tables/host_words.h"
#include "runtime/sync/clock.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace occl::cuda {

/// Ranks that have left, or whose processes are gone, and that kernels say they wait for. What a
/// rank did before may have come just after a kernel found it missing, and its word later still:
/// such words are few, and follow its leaving closely. One who waits goes on saying so.
class GoneRanks {
public:
  explicit GoneRanks(uint32_t numRanks) : said(numRanks) {}

  /// A kernel has said so since the last call, of such a rank. Whether it really waits.
  bool isStillAwaited(uint32_t rank, SteadyClock::time_point now) {
    Said &last = said[rank];
    if (last.times++ == 0)
      last.first = now;
    return last.times >= kTimes && now - last.first >= kPeriod;
  }

private:
  static constexpr uint32_t kTimes = 4;
  static constexpr auto kPeriod = std::chrono::milliseconds(50);

  struct Said {
    uint32_t times = 0;
    SteadyClock::time_point first;
  };
  std::vector<Said> said; // by rank
};

/// Waits in streams that last for long, each to be found once. A kernel says nothing of its first
/// milliseconds without progress, and from then on again and again: so where the words of a
/// collective are further apart another one waits.
class LongWaits {
public:
  explicit LongWaits(uint32_t rank) : rank(rank) {}

  struct Found {
    uint32_t place;
    /// The last rank that kernels have said they wait for while this one waited: with several that
    /// wait, of some of them. This rank if they named no other: its thread blocks also wait for
    /// each other, which says nothing of who is late.
    uint32_t awaited;
    bool operator==(const Found &) const = default;
  };
  /// Those that have come to last so long since the last call. To be called every few milliseconds
  /// while kernels say that they wait, whomever for: `awaited`, which waitsFor of the words has.
  std::vector<Found> look(const HostWords &words, uint32_t awaited,
                          std::chrono::nanoseconds atLeast, SteadyClock::time_point now);
  /// How many have gone on waiting until now, as far as look() has seen it.
  uint32_t numWaiting(SteadyClock::time_point now) const;

private:
  /// Nanoseconds, WarpWatch's.
  static constexpr uint64_t kSilent = 10'000'000;
  /// A kernel that waits says so more often, and look() is called more often.
  static constexpr auto kRecent = std::chrono::milliseconds(40);

  struct Seen {
    uint64_t first = 0, last = 0; // by the device's clock
    bool isFound = false;
    uint32_t awaited = 0;
    SteadyClock::time_point changed; // `last`, by the host's clock
  };
  const uint32_t rank;
  std::vector<Seen> seen = std::vector<Seen>(kMaxShapes);
};

/// "rank 1", of a wait that was found on rank `rank`.
std::string describeAwaited(const LongWaits::Found &wait, uint32_t rank);

} // namespace occl::cuda
