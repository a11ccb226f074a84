// From the executors to whoever runs callbacks. Three forms behind one interface, as the OCCL paper
// has them; which one is fastest is a matter of the machine: bench/runtime:completion_queues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace occl::queue {

/// What ended, in one word; never 0.
using CompletionEntry = uint32_t;

/// Many producers, one consumer at a time. An entry that is pushed is seen by a pop that happens
/// after the push and after all pushes that began before it ended: a ring hides an entry behind
/// one that is half written. So who pushes makes sure afterwards that somebody pops.
class CompletionQueue {
public:
  virtual ~CompletionQueue() = default;
  /// False if the queue is full. What the producer wrote before is visible to who pops the entry.
  virtual bool push(CompletionEntry entry) = 0;
  /// Nothing if no entry is to be seen.
  virtual std::optional<CompletionEntry> pop() = 0;
};

enum class CompletionForm {
  /// A ring whose entries are counted by a head and a tail apart from them. Entries come in the
  /// order of their pushes; a producer waits for those that began before it.
  Ring,
  /// A ring whose entries carry the tail's value in the same word: an entry and the news that it is
  /// there are one store. Entries come in the order of their pushes; nobody waits for anybody.
  PackedRing,
  /// Slots in no order, each taken by one compare-and-swap. Nobody waits for anybody.
  Slots,
};

/// Holds `capacity` entries, or more. `start` is the number of entries that are taken to have gone
/// through already: tests let counters wrap around.
std::unique_ptr<CompletionQueue> makeCompletionQueue(CompletionForm form, uint32_t capacity,
                                                     uint64_t start = 0);

} // namespace occl::queue
