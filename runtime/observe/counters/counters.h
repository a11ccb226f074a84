// What is counted of a collective and its thread blocks on one rank, always: plain words that one
// thread at a time adds to and any thread may read.
#pragma once

#include "runtime/base/tick_clock.h"
#include "runtime/control/records/wait_edges.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace occl::insight {

using transport::WaitReason;

/// A count with one writer at a time, so that adding needs no locked instruction. Nobody waits for
/// its value: it is no yield point of explored schedules.
class Counter {
public:
  void add(uint64_t amount) { set(get() + amount); }
  void raise(uint64_t atLeast) {
    if (get() < atLeast)
      set(atLeast);
  }
  uint64_t get() const { return value.load(std::memory_order_relaxed); }

private:
  void set(uint64_t to) { value.store(to, std::memory_order_relaxed); }

  std::atomic<uint64_t> value{0};
};

struct WaitCounter {
  Counter count; // spans in which a look found it missing and a later one found it there
  Counter ticks; // of these, from the first look to the one that found it there
};

/// Of one thread block of a sequence of collectives on a rank, over all its invocations. The
/// executor that has claimed the block writes them: invocations of one sequence follow each other
/// on a rank.
struct alignas(64) BlockCounters {
  Counter contextLoads; // visits
  Counter contextSaves; // visits that moved it
  Counter preemptions;  // visits that ended because a wait outlasted its budget
  Counter slices;
  Counter bytesSent, bytesReceived; // by completed invocations; under the task board's lock
  Counter runningTicks; // from a look that found everything there to the last slice after it
  Counter queueLengths; // sum over the visits
  Counter longestQueue;
  std::array<WaitCounter, transport::kNumWaitReasons> waits;
};

/// Measures one thread block of one invocation for its counters. Used by whoever has claimed the
/// block; a wait goes on from visit to visit.
class BlockMeter {
public:
  explicit BlockMeter(BlockCounters *counters = nullptr) : counters(counters) {}

  struct Wait {
    WaitReason reason = WaitReason::Announce;
    uint32_t instruction = 0; // position in the thread block
    uint32_t peer = 0;
    bool operator==(const Wait &) const = default;
  };
  struct Span {
    Wait wait;
    Ticks from = 0, to = 0; // from == 0: nothing
    explicit operator bool() const { return from != 0; }
  };

  void visit(uint64_t queueLength) {
    counters->contextLoads.add(1);
    counters->queueLengths.add(queueLength);
    counters->longestQueue.raise(queueLength);
  }
  /// A look at `begin` found everything there, and `slices` ran until `end`. Returns the wait that
  /// ended so.
  Span ran(uint32_t slices, Ticks begin, Ticks end) {
    Span ended = endWait(begin);
    counters->slices.add(slices);
    counters->runningTicks.add(elapsed(begin, end));
    return ended;
  }
  /// A look at `now` found something missing. Returns the wait for something else that ended so.
  Span blocked(const Wait &wait, Ticks now) {
    if (span && span.wait == wait)
      return {};
    Span ended = endWait(now);
    span = {wait, now, now};
    return ended;
  }
  /// A visit of the only task in the queue, from its begin to its end, that did everything; it
  /// waited for data `waits` times. In the place of visit(), blocked(), ran() and saved().
  void madeAlone(uint32_t slices, Ticks running, uint32_t waits, Ticks waiting) {
    visit(1);
    saved();
    counters->slices.add(slices);
    counters->runningTicks.add(running);
    if (waits == 0)
      return;
    WaitCounter &counter = counters->waits[static_cast<size_t>(WaitReason::Data)];
    counter.count.add(waits);
    counter.ticks.add(waiting);
  }
  void preempted() { counters->preemptions.add(1); }
  void saved() { counters->contextSaves.add(1); }

  /// The present wait, if there is one: since `from`.
  const Span &present() const { return span; }

private:
  Span endWait(Ticks now) {
    if (!span)
      return {};
    Span ended = span;
    ended.to = now > ended.from ? now : ended.from;
    WaitCounter &counter = counters->waits[static_cast<size_t>(ended.wait.reason)];
    counter.count.add(1);
    counter.ticks.add(ended.to - ended.from);
    span = {};
    return ended;
  }

  BlockCounters *counters;
  Span span;
};

} // namespace occl::insight
