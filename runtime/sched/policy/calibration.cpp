// The time of a round trip between two threads, from which the limits of polling follow.
#include "runtime/sched/policy/calibration.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <atomic>
#include <system_error>

namespace occl::scheduler {

namespace {

using Clock = SteadyClock;

constexpr Nanoseconds kLeast{50};
constexpr Nanoseconds kMost{500};

/// The shortest of many round trips: interruptions only make them longer.
Nanoseconds measure() {
  constexpr uint32_t kRounds = 200;
  alignas(64) Atomic<uint32_t> ping{0};
  alignas(64) Atomic<uint32_t> pong{0};
  // A millisecond at most: on a busy machine the other thread may not get a processor.
  const auto end = Clock::now() + std::chrono::milliseconds(1);
  auto answer = [&] {
    for (uint32_t round = 1; round <= kRounds; ++round) {
      while (ping.load(std::memory_order_acquire) < round)
        if (Clock::now() >= end)
          return;
      pong.store(round, std::memory_order_release);
    }
  };
  // Without a thread polling is bounded as where round trips take longest.
  Thread other;
  try {
    other = Thread(answer);
  } catch (const std::system_error &) {
    return kMost;
  }
  Nanoseconds best = kMost;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    auto start = Clock::now();
    ping.store(round, std::memory_order_release);
    while (pong.load(std::memory_order_acquire) < round && Clock::now() < end)
      ;
    auto now = Clock::now();
    // A trip that was cut short by the end does not count.
    if (now >= end)
      break;
    best = std::min<Nanoseconds>(best, now - start);
  }
  other.join();
  return std::max(best, kLeast);
}

} // namespace

Nanoseconds flagRoundTrip() {
  // No static object that is initialised here: a process that is forked meanwhile would wait for a
  // thread that it does not have. Of several threads that measure, the first one's counts.
  static Atomic<Nanoseconds::rep> known{0};
  Nanoseconds::rep value = known.load(std::memory_order_relaxed);
  if (value == 0) {
    const Nanoseconds::rep measured = measure().count();
    value = known.compare_exchange_strong(value, measured, std::memory_order_relaxed) ? measured
                                                                                      : value;
  }
  return Nanoseconds{value};
}

BudgetLimits budgetLimits(Nanoseconds roundTrip, Nanoseconds requestedCap) {
  BudgetLimits limits;
  limits.floor = static_cast<uint64_t>(2 * roundTrip.count());
  constexpr Nanoseconds kMostPolling{1000};
  Nanoseconds cap = requestedCap.count() != 0 ? requestedCap
                                              : std::min<Nanoseconds>(20 * roundTrip, kMostPolling);
  limits.cap = std::max(limits.floor, static_cast<uint64_t>(cap.count()));
  return limits;
}

} // namespace occl::scheduler
