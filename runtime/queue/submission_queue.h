// From those who submit to the executors: a ring with one producer at a time and any number of
// consumers.
#pragma once

#include "runtime/base/atomic.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

namespace occl::queue {

/// Several producers must exclude each other (the producer's side is one plain store and one
/// release); consumers need not. Nothing waits: a full queue refuses, an empty one gives nothing. T
/// is a word.
template <class T> class SubmissionQueue {
  static_assert(std::is_trivially_copyable_v<T> && Atomic<T>::is_always_lock_free);

public:
  /// Holds at least `capacity` entries.
  explicit SubmissionQueue(uint32_t capacity)
      : mask(std::bit_ceil(uint64_t{capacity < 2 ? 2 : capacity}) - 1),
        slots(new Atomic<T>[mask + 1]) {}

  /// False if the queue is full. What the producer wrote before is visible to who pops the entry.
  bool push(T entry) {
    uint64_t position = tail.load(std::memory_order_relaxed);
    if (position - head.load(std::memory_order_acquire) > mask)
      return false;
    slots[position & mask].store(entry, std::memory_order_relaxed);
    tail.store(position + 1, std::memory_order_release);
    return true;
  }

  std::optional<T> pop() {
    uint64_t position = head.load(std::memory_order_relaxed);
    while (position != tail.load(std::memory_order_acquire)) {
      // The producer writes this slot again only after head has passed it, and then the exchange
      // fails.
      T entry = slots[position & mask].load(std::memory_order_relaxed);
      if (head.compare_exchange_weak(position, position + 1, std::memory_order_acq_rel,
                                     std::memory_order_relaxed))
        return entry;
    }
    return std::nullopt;
  }

  bool empty() const {
    return head.load(std::memory_order_relaxed) == tail.load(std::memory_order_acquire);
  }

private:
  const uint64_t mask;
  std::unique_ptr<Atomic<T>[]> slots;
  alignas(64) Atomic<uint64_t> head{0};
  alignas(64) Atomic<uint64_t> tail{0};
};

} // namespace occl::queue
