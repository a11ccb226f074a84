// What the compiler calls at each access when it instruments for ThreadSanitizer, of which only
// these calls are used, not the library.
#include "test/explore/explorer/access_observer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

using occl::explore::AccessKind;
using occl::explore::accessObserver;

namespace {

inline void access(const void *address, size_t bytes, AccessKind kind, const void *place) {
  if (auto *observer = accessObserver())
    observer->access(address, bytes, kind, place);
}

std::memory_order orderOf(int order) { return static_cast<std::memory_order>(order & 7); }

template <class T> T load(const T *word, int order, const void *place) {
  if (auto *observer = accessObserver())
    observer->load(word, sizeof *word, orderOf(order), place);
  return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

template <class T> void store(T *word, T value, int order, const void *place) {
  if (auto *observer = accessObserver())
    observer->store(word, sizeof *word, orderOf(order), place);
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

inline void update(void *word, size_t bytes, int order, const void *place) {
  if (auto *observer = accessObserver())
    observer->update(word, bytes, orderOf(order), place);
}

template <class T>
bool compareExchange(T *word, T *expected, T desired, int success, int failure, const void *place) {
  if (!__atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST)) {
    if (auto *observer = accessObserver())
      observer->load(word, sizeof *word, orderOf(failure), place);
    return false;
  }
  update(word, sizeof *word, success, place);
  return true;
}

} // namespace

#define PLACE __builtin_return_address(0)

#define ACCESSES_OF(bytes)                                                                         \
  void __tsan_read##bytes(void *p) { access(p, bytes, AccessKind::Read, PLACE); }                  \
  void __tsan_write##bytes(void *p) { access(p, bytes, AccessKind::Write, PLACE); }                \
  void __tsan_unaligned_read##bytes(void *p) { access(p, bytes, AccessKind::Read, PLACE); }        \
  void __tsan_unaligned_write##bytes(void *p) { access(p, bytes, AccessKind::Write, PLACE); }

#define UPDATE_OF(bits, name)                                                                      \
  uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *p, uint##bits##_t value,             \
                                              int order) {                                         \
    update(p, sizeof *p, order, PLACE);                                                            \
    return __atomic_##name(p, value, __ATOMIC_SEQ_CST);                                            \
  }

#define COMPARE_OF(bits, strength)                                                                 \
  bool __tsan_atomic##bits##_compare_exchange_##strength(                                          \
      uint##bits##_t *p, uint##bits##_t *expected, uint##bits##_t desired, int success,            \
      int failure) {                                                                               \
    return compareExchange(p, expected, desired, success, failure, PLACE);                         \
  }

#define ATOMICS_OF(bits)                                                                           \
  uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *p, int order) {                  \
    return load(p, order, PLACE);                                                                  \
  }                                                                                                \
  void __tsan_atomic##bits##_store(uint##bits##_t *p, uint##bits##_t value, int order) {           \
    store(p, value, order, PLACE);                                                                 \
  }                                                                                                \
  uint##bits##_t __tsan_atomic##bits##_exchange(uint##bits##_t *p, uint##bits##_t value,           \
                                                int order) {                                       \
    update(p, sizeof *p, order, PLACE);                                                            \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  UPDATE_OF(bits, fetch_add)                                                                       \
  UPDATE_OF(bits, fetch_sub)                                                                       \
  UPDATE_OF(bits, fetch_and)                                                                       \
  UPDATE_OF(bits, fetch_or)                                                                        \
  UPDATE_OF(bits, fetch_xor)                                                                       \
  COMPARE_OF(bits, strong)                                                                         \
  COMPARE_OF(bits, weak)

extern "C" {

void __tsan_init() {}

ACCESSES_OF(1)
ACCESSES_OF(2)
ACCESSES_OF(4)
ACCESSES_OF(8)
ACCESSES_OF(16)

void __tsan_read_range(void *p, size_t bytes) { access(p, bytes, AccessKind::Read, PLACE); }
void __tsan_write_range(void *p, size_t bytes) { access(p, bytes, AccessKind::Write, PLACE); }

/// A constructor or destructor stores what is mostly there already.
void __tsan_vptr_update(void **p, void *value) {
  if (*p != value)
    access(p, sizeof *p, AccessKind::Write, PLACE);
}

ATOMICS_OF(8)
ATOMICS_OF(16)
ATOMICS_OF(32)
ATOMICS_OF(64)

void __tsan_atomic_thread_fence(int order) {
  if (auto *observer = accessObserver())
    observer->fence(orderOf(order));
}
void __tsan_atomic_signal_fence(int) {}

} // extern "C"
