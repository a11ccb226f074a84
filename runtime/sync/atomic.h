// Shared words. Everything in the runtime that several threads or processes access goes through
// this header, mutex.h, thread.h, clock.h or futex.h. In ordinary builds these are the standard
// library's types and cost nothing more. Built with -DOCCL_EXPLORE every access asks a
// deterministic scheduler who goes on (explored.h, test/explore).
#pragma once

#ifdef OCCL_EXPLORE
#include "runtime/sync/explored_atomic.h"
#else

#include <atomic>
#include <type_traits>

namespace occl {

template <class T> using Atomic = std::atomic<T>;

inline void threadFence(std::memory_order order) { std::atomic_thread_fence(order); }

/// A sequentially consistent fence right after a sequentially consistent read-modify-write, which
/// is one already on x86.
inline void fenceAfterUpdate() {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Words that are not declared as Atomic, because device code shares them.
template <class T>
[[gnu::always_inline]] inline T loadShared(const T *word, std::memory_order order) {
  return __atomic_load_n(word, static_cast<int>(order));
}
template <class T>
[[gnu::always_inline]] inline void storeShared(T *word, std::type_identity_t<T> value,
                                               std::memory_order order) {
  __atomic_store_n(word, value, static_cast<int>(order));
}
/// False, and what is there in `expected`: it is another value.
template <class T>
[[gnu::always_inline]] inline bool exchangeShared(T *word, T &expected,
                                                  std::type_identity_t<T> value) {
  return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}
/// Before shared memory is accessed by other means, such as vector instructions on lines that carry
/// their own flags.
inline void touchShared(const void *) {}

} // namespace occl

#endif
