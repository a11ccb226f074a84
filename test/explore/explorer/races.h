// Which accesses of one schedule race: vector clocks for what happens before what, as C++ has it,
// and the last accesses of each word (FastTrack, and ThreadSanitizer's four a word).
//
// Edges are from a release store or read-modify-write, or a relaxed one after a release fence, to
// what reads from it with acquire or before an acquire fence; from the start of a thread to what it
// does, and from that to its join. Locks are such words. Read-modify-writes go on with a release
// sequence. Sequential consistency adds no edges.
#pragma once

#include "test/explore/explorer/shadow.h"
#include "test/explore/explorer/vector_clock.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::explore {

/// Two accesses, not both atomic, of which one writes and nothing orders them.
struct Race {
  const void *address;
  Access former, latter;

  std::string text() const;
};

class Races {
public:
  /// The next schedule: what happened before is forgotten.
  void begin();
  void start(uint32_t parent, uint32_t child);
  void join(uint32_t thread, uint32_t ended) { threads[thread].clock.join(threads[ended].clock); }

  /// Before `thread` accesses memory: its race with a former access, or nullptr.
  const Race *access(uint32_t thread, const void *address, size_t bytes, AccessKind kind,
                     const void *place);
  /// Before `thread` gives memory back, which is a write to all of it; but where nobody has
  /// accessed it that is not remembered.
  const Race *giveBack(uint32_t thread, const void *block, size_t bytes, const void *place);
  /// `thread` reads from a word.
  void acquire(uint32_t thread, const void *word, std::memory_order order);
  /// What a store by `thread` makes known to those that read from it.
  VectorClock release(uint32_t thread, std::memory_order order);
  /// A store becomes visible.
  void publish(const void *word, VectorClock clock);
  /// `thread` has read from a word and writes to it, at once.
  void update(uint32_t thread, const void *word, std::memory_order order);
  void fence(uint32_t thread, std::memory_order order);
  void forget(const void *address, size_t bytes);

private:
  struct Thread {
    VectorClock clock;
    VectorClock acquired; // by the next acquire fence
    VectorClock released; // by the last release fence
  };

  void tick(uint32_t thread) { threads[thread].clock.set(thread, ++now); }
  /// Remembers the access; the one of the same word that it races with, or nullptr.
  const Access *remember(Shadow::Accesses &accesses, const Access &access,
                         const VectorClock &clock);
  Access *victimOf(Shadow::Accesses &accesses, const Access &access);

  uint64_t now = 0;     // goes on from schedule to schedule
  uint64_t begunAt = 0; // what is not later is of former schedules
  uint64_t evictions = 0;
  std::vector<Thread> threads;
  std::unordered_map<const void *, VectorClock> words; // what reading from them makes known
  Shadow shadow;
  std::optional<Race> found;
};

} // namespace occl::explore
