// How a thread sleeps until some other, perhaps in another process, has published something for it.
//
// A doorbell belongs to one rank and lies in memory that its peers map; any number of threads may
// sleep on it. Sleeper: `ticket = arm()`; look once more at everything waited for; if nothing has
// come, `sleep(ticket, atMost)`. Publisher: store what it publishes, then `ring()`. Both sides put
// a sequentially consistent fence between their store and their load, so that either the sleeper's
// last look sees what was published or the publisher sees the armed bell: no wake-up is lost. A
// bell that is armed and not slept on costs its next publisher one system call, no more.
//
// Thread safety: any thread of any process.
#pragma once

#include "runtime/base/cache_line.h"
#include "runtime/base/futex.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace occl {

struct alignas(kCacheLine) Doorbell {
  std::atomic<uint32_t> rings = 0;
  std::atomic<uint32_t> armed = 0;

  uint32_t arm() {
    armed.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return rings.load(std::memory_order_relaxed);
  }

  /// Returns at the next ring after arm() gave the ticket, at the latest after `atMost`, perhaps
  /// earlier without cause.
  void sleep(uint32_t ticket, std::chrono::nanoseconds atMost) { futexWait(rings, ticket, atMost); }

  void ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ringAfterFence();
  }

  /// For a publisher that rings several bells: the fence is the caller's, once.
  void ringAfterFence() {
    if (armed.load(std::memory_order_relaxed) == 0 ||
        armed.exchange(0, std::memory_order_relaxed) == 0)
      return;
    rings.fetch_add(1, std::memory_order_release);
    futexWakeAll(rings);
  }
};

} // namespace occl
