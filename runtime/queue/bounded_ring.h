// A ring with any number of producers and consumers, for free slots that are used again in turn.
#pragma once

#include "runtime/queue/ring_position.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

namespace occl::queue {

/// Each slot carries the turn in which it may be written or read, so an entry is visible only when
/// whole. A producer that has reserved a slot and not yet filled it hides the entries behind it;
/// who pushes and then pops until nothing is left therefore leaves no entry behind. pop() waits for
/// nobody. push() waits for a consumer only that has taken the entry in its slot and not yet said
/// so, between two instructions: so it refuses nothing for which there is room.
template <class T> class BoundedRing {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  /// Holds at least `capacity` entries.
  explicit BoundedRing(uint32_t capacity)
      : mask(std::bit_ceil(uint64_t{capacity < 2 ? 2 : capacity}) - 1), slots(new Slot[mask + 1]) {
    for (uint64_t i = 0; i <= mask; ++i)
      slots[i].turn.store(i, std::memory_order_relaxed);
  }

  /// False if the queue is full: it has as many entries as slots.
  bool push(const T &entry) {
    uint64_t position = tail.load(std::memory_order_relaxed);
    for (;;) {
      Slot &slot = slots[position & mask];
      uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == position) {
        if (tail.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          slot.entry = entry;
          slot.turn.store(position + 1, std::memory_order_release);
          return true;
        }
      } else {
        if (turn < position) {
          if (isFull(position, head.load(std::memory_order_acquire), mask))
            return false;
          yieldProcessor();
        }
        position = tail.load(std::memory_order_relaxed);
      }
    }
  }

  std::optional<T> pop() {
    uint64_t position = head.load(std::memory_order_relaxed);
    bool fenced = false;
    for (;;) {
      Slot &slot = slots[position & mask];
      uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == position + 1) {
        if (head.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          T entry = slot.entry;
          slot.turn.store(position + mask + 1, std::memory_order_release);
          return entry;
        }
      } else if (turn < position + 1 && fenced) {
        return std::nullopt;
      } else {
        // Two who push and then pop must not both look before their entries are visible: each
        // would find the other's place empty.
        if (!fenced)
          threadFence(std::memory_order_seq_cst);
        fenced = true;
        position = head.load(std::memory_order_relaxed);
      }
    }
  }

private:
  struct alignas(32) Slot {
    Atomic<uint64_t> turn;
    T entry;
  };

  const uint64_t mask;
  std::unique_ptr<Slot[]> slots;
  alignas(64) Atomic<uint64_t> head{0};
  alignas(64) Atomic<uint64_t> tail{0};
};

} // namespace occl::queue
