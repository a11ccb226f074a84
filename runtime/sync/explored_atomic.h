// atomic.h when schedules are explored. The types have the size and layout of the standard ones.
#pragma once

#include "runtime/sync/explored.h"

#include <atomic>
#include <cstring>
#include <type_traits>

namespace occl {

namespace explored {

template <class T> uint64_t bitsOf(const T &value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T> T valueOf(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline bool isFull(std::memory_order order) { return order == std::memory_order_seq_cst; }

} // namespace explored

template <class T>
T loadShared(const T *word, std::memory_order order,
             explored::Where where = explored::Where::current()) {
  explored::reach("load", word, where);
  uint64_t kept;
  return explored::findStore(word, kept) ? explored::valueOf<T>(kept)
                                         : __atomic_load_n(word, static_cast<int>(order));
}

template <class T>
void storeShared(T *word, std::type_identity_t<T> value, std::memory_order order,
                 explored::Where where = explored::Where::current()) {
  explored::reach("store", word, where);
  // Who has loaded a pointer reads it again as plain memory: it must be there.
  if (explored::isFull(order) || std::is_pointer_v<T>)
    explored::drain();
  else if (explored::keepStore(word, explored::bitsOf(value), sizeof value, order))
    return;
  __atomic_store_n(word, value, static_cast<int>(order));
}

template <class T>
bool exchangeShared(T *word, T &expected, std::type_identity_t<T> value,
                    explored::Where where = explored::Where::current()) {
  explored::reach("update", word, where);
  explored::drain();
  return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

inline void touchShared(const void *memory, explored::Where where = explored::Where::current()) {
  explored::reach("touch", memory, where);
}

inline void threadFence(std::memory_order order,
                        explored::Where where = explored::Where::current()) {
  explored::reach("fence", nullptr, where);
  if (explored::isFull(order))
    explored::drain();
  std::atomic_thread_fence(order);
}

/// The update has drained, as it does on x86.
inline void fenceAfterUpdate() {}

template <class T> class Atomic {
  using Order = std::memory_order;
  using Where = explored::Where;

public:
  using value_type = T;
  static constexpr bool is_always_lock_free = std::atomic<T>::is_always_lock_free;

  Atomic() { explored::begin(this); }
  constexpr Atomic(T initial) : value(initial) {
    if (!std::is_constant_evaluated())
      explored::begin(this);
  }
  Atomic(const Atomic &) = delete;
  Atomic &operator=(const Atomic &) = delete;
  /// What is kept back must not be written to memory that has been freed.
  ~Atomic() {
    explored::drain();
    explored::end(this);
  }

  T load(Order order = Order::seq_cst, Where where = Where::current()) const {
    explored::reach("load", this, where);
    explored::use(this);
    uint64_t kept;
    return explored::findStore(this, kept) ? explored::valueOf<T>(kept) : value.load(order);
  }

  void store(T desired, Order order = Order::seq_cst, Where where = Where::current()) {
    explored::reach("store", this, where);
    explored::use(this);
    if (explored::isFull(order))
      explored::drain();
    else if (explored::keepStore(&value, explored::bitsOf(desired), sizeof desired, order))
      return;
    value.store(desired, order);
  }

  operator T() const { return load(); }
  T operator=(T desired) {
    store(desired);
    return desired;
  }

  T exchange(T desired, Order order = Order::seq_cst, Where where = Where::current()) {
    return modify("exchange", where, [&] { return value.exchange(desired, order); });
  }

  T fetch_add(T amount, Order order = Order::seq_cst,
              Where where = Where::current()) requires std::is_integral_v<T> {
    return modify("fetch_add", where, [&] { return value.fetch_add(amount, order); });
  }

  T fetch_sub(T amount, Order order = Order::seq_cst,
              Where where = Where::current()) requires std::is_integral_v<T> {
    return modify("fetch_sub", where, [&] { return value.fetch_sub(amount, order); });
  }

  bool compare_exchange_strong(T &expected, T desired, Order success, Order failure,
                               Where where = Where::current()) {
    return modify("compare_exchange", where, [&] {
      return value.compare_exchange_strong(expected, desired, success, failure);
    });
  }

  bool compare_exchange_strong(T &expected, T desired, Order order = Order::seq_cst,
                               Where where = Where::current()) {
    return modify("compare_exchange", where,
                  [&] { return value.compare_exchange_strong(expected, desired, order); });
  }

  /// Never fails without cause: that would be one more choice, and callers repeat it.
  bool compare_exchange_weak(T &expected, T desired, Order success, Order failure,
                             Where where = Where::current()) {
    return compare_exchange_strong(expected, desired, success, failure, where);
  }

  bool compare_exchange_weak(T &expected, T desired, Order order = Order::seq_cst,
                             Where where = Where::current()) {
    return compare_exchange_strong(expected, desired, order, where);
  }

private:
  template <class Operation>
  auto modify(const char *name, const Where &where, Operation operation) {
    explored::reach(name, this, where);
    explored::use(this);
    explored::drain();
    return operation();
  }

  std::atomic<T> value;
};

} // namespace occl
