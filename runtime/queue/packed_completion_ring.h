// The ring whose words say themselves whether they are valid.
#pragma once

#include "runtime/queue/completion_queue.h"
#include "runtime/queue/ring_position.h"
#include "runtime/sync/atomic.h"

#include <bit>
#include <cstdint>
#include <memory>

namespace occl::queue {

/// A word is {entry, low half of the tail after it}. The consumer knows which tail it is to find,
/// so it reads nothing but the word; and the word of a former turn has another tail, as long as the
/// ring is smaller than 2^32.
class PackedCompletionRing final : public CompletionQueue {
public:
  PackedCompletionRing(uint32_t capacity, uint64_t start)
      : mask(std::bit_ceil(uint64_t{capacity}) - 1), words(new Atomic<uint64_t>[mask + 1]),
        head(start), tail(start) {
    for (uint64_t i = 0; i <= mask; ++i)
      words[(start + i) & mask].store(pack(0, start + i - mask), std::memory_order_relaxed);
  }

  bool push(CompletionEntry entry) override {
    uint64_t position = tail.load(std::memory_order_relaxed);
    do {
      if (isFull(position, head.load(std::memory_order_acquire), mask))
        return false;
    } while (!tail.compare_exchange_weak(position, position + 1, std::memory_order_relaxed));
    words[position & mask].store(pack(entry, position + 1), std::memory_order_release);
    return true;
  }

  std::optional<CompletionEntry> pop() override {
    uint64_t position = head.load(std::memory_order_relaxed);
    uint64_t word = words[position & mask].load(std::memory_order_acquire);
    if (static_cast<uint32_t>(word) != static_cast<uint32_t>(position + 1))
      return std::nullopt;
    head.store(position + 1, std::memory_order_release);
    return static_cast<CompletionEntry>(word >> 32);
  }

private:
  static uint64_t pack(CompletionEntry entry, uint64_t tailAfter) {
    return uint64_t{entry} << 32 | static_cast<uint32_t>(tailAfter);
  }

  const uint64_t mask;
  std::unique_ptr<Atomic<uint64_t>[]> words;
  alignas(64) Atomic<uint64_t> head;
  alignas(64) Atomic<uint64_t> tail;
};

} // namespace occl::queue
