// The plain form: entries, and a head and a tail that say which of them are valid.
#pragma once

#include "runtime/queue/completion_queue.h"
#include "runtime/queue/ring_position.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"

#include <bit>
#include <cstdint>
#include <memory>

namespace occl::queue {

/// The tail moves over whole entries only, and in order: a producer that has written its entry
/// waits until those before it have written theirs, which is two stores of a running thread.
class CompletionRing final : public CompletionQueue {
public:
  CompletionRing(uint32_t capacity, uint64_t start)
      : mask(std::bit_ceil(uint64_t{capacity}) - 1), entries(new CompletionEntry[mask + 1]),
        head(start), reserved(start), tail(start) {}

  bool push(CompletionEntry entry) override {
    uint64_t position = reserved.load(std::memory_order_relaxed);
    do {
      if (isFull(position, head.load(std::memory_order_acquire), mask))
        return false;
    } while (!reserved.compare_exchange_weak(position, position + 1, std::memory_order_relaxed));
    entries[position & mask] = entry;
    constexpr uint32_t kLooksPerYield = 64;
    for (uint32_t look = 1; tail.load(std::memory_order_acquire) != position; ++look)
      if (look % kLooksPerYield == 0)
        yieldProcessor();
    tail.store(position + 1, std::memory_order_release);
    return true;
  }

  std::optional<CompletionEntry> pop() override {
    uint64_t position = head.load(std::memory_order_relaxed);
    if (position == tail.load(std::memory_order_acquire))
      return std::nullopt;
    CompletionEntry entry = entries[position & mask];
    head.store(position + 1, std::memory_order_release);
    return entry;
  }

private:
  const uint64_t mask;
  std::unique_ptr<CompletionEntry[]> entries;
  alignas(64) Atomic<uint64_t> head;
  alignas(64) Atomic<uint64_t> reserved;
  alignas(64) Atomic<uint64_t> tail;
};

} // namespace occl::queue
