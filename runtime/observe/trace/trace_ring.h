// The last events of one thread. One thread writes, any may read at the same time.
#pragma once

#include "runtime/observe/trace/trace_event.h"

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace occl::insight {

class TraceRing {
public:
  /// Holds at least `capacity` events; older ones are overwritten.
  explicit TraceRing(uint32_t capacity)
      : mask(std::bit_ceil(uint64_t{capacity < 2 ? 2 : capacity}) - 1), slots(new Slot[mask + 1]) {}

  /// One thread at a time.
  void push(const TraceWords &words) {
    uint64_t position = head.load(std::memory_order_relaxed);
    // Before any word changes: a reader that sees one of them sees that the slot is being written.
    writing.store(position + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    Slot &slot = slots[position & mask];
    for (size_t w = 0; w < words.size(); ++w)
      slot.words[w].store(words[w], std::memory_order_relaxed);
    head.store(position + 1, std::memory_order_release);
  }

  /// Calls visit(words) for the events that are still there, oldest first. Any thread.
  template <class Visit> void forEach(Visit visit) const {
    uint64_t end = head.load(std::memory_order_acquire);
    for (uint64_t position = end > mask ? end - mask - 1 : 0; position < end; ++position) {
      TraceWords words;
      for (size_t w = 0; w < words.size(); ++w)
        words[w] = slots[position & mask].words[w].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (writing.load(std::memory_order_relaxed) <= position + mask + 1)
        visit(words);
    }
  }

private:
  struct Slot {
    std::atomic<uint64_t> words[std::tuple_size_v<TraceWords>];
  };

  const uint64_t mask;
  std::unique_ptr<Slot[]> slots;
  alignas(64) std::atomic<uint64_t> head{0};
  std::atomic<uint64_t> writing{0};
};

} // namespace occl::insight
