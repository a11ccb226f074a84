// Finds waits that last, by place, in the times that kernels leave.
#include "runtime/cuda/watch/watched_waits.h"

#include "runtime/sync/atomic.h"

#include <algorithm>

namespace occl::cuda {

std::vector<LongWaits::Found> LongWaits::look(const HostWords &words, uint32_t awaited,
                                              std::chrono::nanoseconds atLeast,
                                              SteadyClock::time_point now) {
  std::vector<Found> found;
  for (uint32_t place = 0; place < kMaxShapes; ++place) {
    const uint64_t at = loadShared(&words.waiting[place], std::memory_order_relaxed);
    Seen &wait = seen[place];
    if (at <= wait.last) // or of a thread block whose word came late
      continue;
    // After a gap another kernel waits here: its wait began before its first word.
    if (wait.last == 0 || at - wait.last >= kSilent)
      wait = {at - kSilent, at, false, rank, now};
    wait.last = at;
    wait.changed = now;
    if (awaited != rank)
      wait.awaited = awaited;
    // Each wait is found once.
    if (wait.isFound || at - wait.first < static_cast<uint64_t>(atLeast.count()))
      continue;
    wait.isFound = true;
    found.push_back({place, wait.awaited});
  }
  return found;
}

uint32_t LongWaits::numWaiting(SteadyClock::time_point now) const {
  return static_cast<uint32_t>(std::ranges::count_if(
      seen, [&](const Seen &wait) { return wait.last != 0 && now - wait.changed < kRecent; }));
}

std::string describeAwaited(const LongWaits::Found &wait, uint32_t rank) {
  return wait.awaited == rank ? "thread blocks of its own" : "rank " + std::to_string(wait.awaited);
}

} // namespace occl::cuda
