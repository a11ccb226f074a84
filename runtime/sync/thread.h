// Threads, and ways to let others run; see atomic.h.
#pragma once

#ifdef OCCL_EXPLORE
#include "runtime/sync/explored_threads.h"
#else

#include <chrono>
#include <sched.h>
#include <thread>

namespace occl {

using Thread = std::thread;

/// Offers the processor to other threads.
inline void yieldProcessor() { sched_yield(); }

/// Between two polls of one word.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline void sleepFor(std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); }

} // namespace occl

#endif
