// Recording what a communicator's rank does, while somebody has asked for it. Events go into rings,
// one a thread, shared by all communicators of the process.
#pragma once

#include "runtime/observe/trace/trace_event.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <vector>

namespace occl::insight {

/// Events that a thread's ring keeps, from OCCL_TRACE_EVENTS when its first ring is made; default
/// 32768, of 64 bytes each.
uint32_t traceCapacity();

/// One communicator's rank. Thread safety: any.
class Trace {
public:
  /// What costs a branch when tracing is off.
  bool isOn() const { return session.load(std::memory_order_relaxed) != 0; }

  /// False if it is on already.
  bool start();
  /// Only if isOn() was seen; what comes too late is dropped without a word, and so is what there
  /// is no memory for. Waits for nobody, throws nothing.
  void record(const TraceEvent &event);

  struct Recording {
    std::vector<TraceEvent> events; // by begin
    uint64_t dropped = 0;           // overwritten by later ones
  };
  /// What was recorded since start(); nothing if it is off.
  Recording stop();

private:
  Mutex mutex;                 // one start() or stop() at a time
  Atomic<uint32_t> session{0}; // 0: off
  Atomic<uint64_t> recorded{0};
};

} // namespace occl::insight
