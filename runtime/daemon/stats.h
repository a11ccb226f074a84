// Counters of a rank since its start: relaxed, cheap enough to be always on.
#pragma once

#include <atomic>
#include <cstdint>

namespace occl::daemon {

/// Thread safety: any; a reader may see one event's counters half updated.
struct Stats {
  using Counter = std::atomic<uint64_t>;

  Counter submitted{0}, completed{0}, failed{0};
  Counter preemptions{0};
  Counter contextLoads{0}, contextSaves{0};
  Counter quits{0}, restarts{0};
  Counter bytesSent{0}, bytesReceived{0};
  Counter maxQueueLength{0};
  /// Sum of the queue lengths at the times that a task was picked; divided by contextLoads it is
  /// the mean.
  Counter queueLengthSum{0};

  static void add(Counter &counter, uint64_t amount) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }
  static void raise(Counter &counter, uint64_t atLeast) {
    uint64_t seen = counter.load(std::memory_order_relaxed);
    while (seen < atLeast &&
           !counter.compare_exchange_weak(seen, atLeast, std::memory_order_relaxed))
      ;
  }
};

} // namespace occl::daemon
