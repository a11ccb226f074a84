#include "runtime/cuda/watch/watched_waits.h"

#include "runtime/sync/atomic.h"

namespace occl::cuda {

std::vector<LongWaits::Found> LongWaits::look(const HostWords &words, uint32_t awaited,
                                              std::chrono::nanoseconds atLeast) {
  std::vector<Found> found;
  for (uint32_t place = 0; place < kMaxShapes; ++place) {
    const uint64_t at = loadShared(&words.waiting[place], std::memory_order_relaxed);
    Seen &wait = seen[place];
    if (at <= wait.last) // or of a thread block whose word came late
      continue;
    if (wait.last == 0 || at - wait.last >= kSilent)
      wait = {at - kSilent, at, false, rank};
    wait.last = at;
    if (awaited != rank)
      wait.awaited = awaited;
    if (wait.isFound || at - wait.first < static_cast<uint64_t>(atLeast.count()))
      continue;
    wait.isFound = true;
    found.push_back({place, wait.awaited});
  }
  return found;
}

std::string describeAwaited(const LongWaits::Found &wait, uint32_t rank) {
  return wait.awaited == rank ? "thread blocks of its own" : "rank " + std::to_string(wait.awaited);
}

} // namespace occl::cuda
