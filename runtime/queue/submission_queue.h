// From those who submit to the executors: a ring with one producer and one consumer at a time.
#pragma once

#include "runtime/queue/ring_position.h"
#include "runtime/sync/atomic.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

namespace occl::queue {

/// Several producers must exclude each other, and so must several consumers: each side is a plain
/// access and one release, and they have locks anyway. Nothing waits: a full queue refuses, an
/// empty one gives nothing. T is a word.
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
    if (isFull(position, head.load(std::memory_order_acquire), mask))
      return false;
    slots[position & mask].store(entry, std::memory_order_relaxed);
    tail.store(position + 1, std::memory_order_release);
    return true;
  }

  std::optional<T> pop() {
    uint64_t position = head.load(std::memory_order_relaxed);
    if (position == tail.load(std::memory_order_acquire))
      return std::nullopt;
    T entry = slots[position & mask].load(std::memory_order_relaxed);
    head.store(position + 1, std::memory_order_release); // the slot may be written again
    return entry;
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
