// What is counted of a sequence of collectives on one rank, and when one invocation of it went
// through which phase.
#pragma once

#include "runtime/observe/counters/counters.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace occl::insight {

/// When an invocation was where; 0: not yet. Whoever brings it there writes.
struct InvocationTimes {
  Ticks submitted = 0;
  Ticks started = 0; // its thread blocks are in the task queue
  /// All ranks that this one needs have announced it, as far as it has looked. Thread blocks that
  /// find the last of them write it, perhaps at the same time.
  std::atomic<Ticks> announced{0};

  void reset(Ticks now) {
    submitted = now;
    started = 0;
    announced.store(now, std::memory_order_relaxed);
  }
  void sawAnnouncement(Ticks now) {
    if (announced.load(std::memory_order_relaxed) < now)
      announced.store(now, std::memory_order_relaxed);
  }
};

class CollectiveCounters {
public:
  /// Thread blocks of the invocation that had most.
  uint32_t numBlocks() const { return number; }
  /// Before an invocation with so many. Counters stay where they are.
  void ensure(uint32_t numBlocks) {
    for (; number < numBlocks; ++number)
      if (const size_t size = size_t{1} << chunkOf(number); !chunks[chunkOf(number)])
        chunks[chunkOf(number)] = std::make_unique<BlockCounters[]>(size);
  }
  BlockCounters &block(uint32_t b) { return chunks[chunkOf(b)][placeOf(b)]; }
  const BlockCounters &block(uint32_t b) const { return chunks[chunkOf(b)][placeOf(b)]; }

  Counter submitted; // by who submits, one at a time

  // Under the task board's lock.
  Counter completed, failed;
  Counter queueLengths;       // of the task queue when an invocation is started, before it is in it
  Counter longestQueue;       // of these
  Counter startTicks;         // from submission until it is started
  Counter announceTicks;      // from submission until announced
  Counter finishTicks;        // from submission until all thread blocks of the rank are done
  Counter longestFinishTicks; // of these

  void start(InvocationTimes &times, uint64_t queueLength, Ticks now) {
    times.started = now;
    queueLengths.add(queueLength);
    longestQueue.raise(queueLength);
  }
  /// In the place of both, for one that was started when it was submitted, with an empty queue, and
  /// waited for no announcement.
  void finishAlone(Ticks total) {
    completed.add(1);
    finishTicks.add(total);
    longestFinishTicks.raise(total);
  }
  void finish(const InvocationTimes &times, Ticks now) {
    completed.add(1);
    startTicks.add(elapsed(times.submitted, times.started));
    announceTicks.add(elapsed(times.submitted, times.announced.load(std::memory_order_relaxed)));
    Ticks total = elapsed(times.submitted, now);
    finishTicks.add(total);
    longestFinishTicks.raise(total);
  }

private:
  /// Chunk c has the 2^c blocks from 2^c - 1 on.
  static size_t chunkOf(uint32_t b) { return std::bit_width(b + 1) - 1; }
  static size_t placeOf(uint32_t b) { return b + 1 - (size_t{1} << chunkOf(b)); }

  uint32_t number = 0;
  std::array<std::unique_ptr<BlockCounters[]>, 20> chunks;
};

} // namespace occl::insight
