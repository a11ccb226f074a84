// Sleeping on a 32-bit word that may lie in memory shared by processes. Thread safety: any.
#pragma once

#include "runtime/sync/atomic.h"

#include <chrono>
#include <cstdint>

namespace occl {

/// What ends a sleep. The real ones end alike; when schedules are explored, a sleep that somebody
/// is sure to end and only time did is a lost wake-up.
enum class SleepEnd {
  ByTime, // a pause that may be cut short
  ByWake, // the time is there for what nobody wakes for: deadlines, peers that die
};

/// Sleeps while `word` holds `expected`, at most `atMost`. May wake without cause: check the
/// condition again.
void futexWait(Atomic<uint32_t> &word, uint32_t expected, std::chrono::nanoseconds atMost,
               SleepEnd end = SleepEnd::ByWake);

/// Wakes all threads of all processes that sleep on `word`.
void futexWakeAll(Atomic<uint32_t> &word);

} // namespace occl
