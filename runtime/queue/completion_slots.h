// The form without order: a slot holds an entry or 0, and one compare-and-swap fills it.
#pragma once

#include "runtime/queue/completion_queue.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/per_thread.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace occl::queue {

/// The consumer looks at all slots that have ever been used, which are few while it keeps up.
class CompletionSlots final : public CompletionQueue {
public:
  explicit CompletionSlots(uint32_t capacity)
      : capacity(capacity), slots(new Atomic<CompletionEntry>[roundedUp(capacity)]) {
    for (uint32_t i = 0; i < roundedUp(capacity); ++i)
      slots[i].store(0, std::memory_order_relaxed);
  }

  bool push(CompletionEntry entry) override {
    const uint32_t first = preferredSlot();
    for (uint32_t i = 0; i < capacity; ++i) {
      uint32_t index = first + i < capacity ? first + i : first + i - capacity;
      Atomic<CompletionEntry> &slot = slots[placeOf(index)];
      if (slot.load(std::memory_order_relaxed) != 0)
        continue;
      // Before the entry, so that who knows of the entry looks far enough.
      uint32_t seen = used.load(std::memory_order_relaxed);
      while (seen <= index &&
             !used.compare_exchange_weak(seen, index + 1, std::memory_order_relaxed))
        ;
      CompletionEntry free = 0;
      if (slot.compare_exchange_strong(free, entry, std::memory_order_release,
                                       std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  std::optional<CompletionEntry> pop() override {
    const uint32_t end = used.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < end; ++i, ++next) {
      if (next >= end)
        next = 0;
      Atomic<CompletionEntry> &slot = slots[placeOf(next)];
      CompletionEntry entry = slot.load(std::memory_order_acquire);
      if (entry == 0)
        continue;
      slot.store(0, std::memory_order_release);
      return entry;
    }
    return std::nullopt;
  }

private:
  static constexpr uint32_t kLines = 8, kSlotsPerLine = 64 / sizeof(CompletionEntry);

  /// The first slots, those that are used most, lie in different cache lines.
  static uint32_t placeOf(uint32_t index) {
    uint32_t group = index / (kLines * kSlotsPerLine), inGroup = index % (kLines * kSlotsPerLine);
    return group * kLines * kSlotsPerLine + inGroup % kLines * kSlotsPerLine + inGroup / kLines;
  }
  static uint32_t roundedUp(uint32_t capacity) {
    return (capacity + kLines * kSlotsPerLine - 1) / (kLines * kSlotsPerLine) *
           (kLines * kSlotsPerLine);
  }
  /// Threads begin at different slots, so that they seldom meet.
  uint32_t preferredSlot() const {
    return static_cast<uint32_t>(hashOfThisThread() % kLines) % capacity;
  }

  const uint32_t capacity;
  std::unique_ptr<Atomic<CompletionEntry>[]> slots;
  uint32_t next = 0; // the consumer's place
  alignas(64) Atomic<uint32_t> used{0};
};

} // namespace occl::queue
