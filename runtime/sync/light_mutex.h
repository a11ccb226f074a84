// A lock for a few instructions at a time: taking and releasing a free one is one inlined atomic
// update each, half of what std::mutex takes. When schedules are explored it is a Mutex, and what
// it is otherwise is explored by itself.
#pragma once

#include "runtime/sync/atomic.h"
#include "runtime/sync/futex.h"

#include <chrono>
#include <cstdint>

namespace occl {

/// For std::lock_guard and std::unique_lock. Not recursive; unfair, as std::mutex.
class FutexMutex {
public:
  FutexMutex() = default;
  FutexMutex(const FutexMutex &) = delete;
  FutexMutex &operator=(const FutexMutex &) = delete;

  void lock() {
    if (!try_lock())
      sleepUntilTaken();
  }
  bool try_lock() {
    uint32_t found = kFree;
    return word.compare_exchange_strong(found, kTaken, std::memory_order_acquire,
                                        std::memory_order_relaxed);
  }
  void unlock() {
    if (word.exchange(kFree, std::memory_order_release) == kAwaited)
      futexWakeAll(word);
  }

private:
  static constexpr uint32_t kFree = 0, kTaken = 1, kAwaited = 2;

  /// Whoever has slept takes it as awaited: there may be others.
  void sleepUntilTaken() {
    constexpr auto kLongestSleep = std::chrono::seconds(1);
    while (word.exchange(kAwaited, std::memory_order_acquire) != kFree)
      futexWait(word, kAwaited, kLongestSleep);
  }

  Atomic<uint32_t> word{kFree};
};

} // namespace occl

#ifdef OCCL_EXPLORE
#include "runtime/sync/mutex.h"

namespace occl {
using LightMutex = Mutex;
} // namespace occl
#else
namespace occl {
using LightMutex = FutexMutex;
} // namespace occl
#endif
