// What is counted of a collective on one rank since it was registered, and when one invocation of
// it went through which phase.
#pragma once

#include "runtime/insight/counters.h"

#include <atomic>
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

struct CollectiveCounters {
  explicit CollectiveCounters(uint32_t numBlocks)
      : numBlocks(numBlocks), blocks(new BlockCounters[numBlocks]) {}

  const uint32_t numBlocks;
  const std::unique_ptr<BlockCounters[]> blocks;

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
};

} // namespace occl::insight
