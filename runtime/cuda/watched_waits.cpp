#include "runtime/cuda/watched_waits.h"

#include "runtime/base/atomic.h"

namespace occl::cuda {

std::vector<uint32_t> LongWaits::look(const HostWords &words, std::chrono::nanoseconds atLeast) {
  std::vector<uint32_t> found;
  for (uint32_t slot = 0; slot < kReported; ++slot) {
    const uint64_t at = loadShared(&words.waiting[slot], std::memory_order_relaxed);
    Seen &wait = seen[slot];
    if (at <= wait.last) // or of a thread block whose word came late
      continue;
    if (wait.last == 0 || at - wait.last >= kSilent)
      wait = {at - kSilent, at, false};
    wait.last = at;
    if (wait.isFound || at - wait.first < static_cast<uint64_t>(atLeast.count()))
      continue;
    wait.isFound = true;
    found.push_back(slot);
  }
  return found;
}

} // namespace occl::cuda
