// The rings of all threads, and one rank's recordings in them.
#include "runtime/observe/trace/trace.h"

#include "runtime/base/environment_number.h"
#include "runtime/base/process_identity.h"
#include "runtime/observe/trace/trace_ring.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

namespace occl::insight {

namespace {

/// The rings of all threads that ever recorded. A ring whose thread has ended keeps its events, and
/// goes to the next thread that needs one: there are as many as threads at a time.
class Rings {
public:
  TraceRing *acquire() {
    std::lock_guard lock(mutex);
    if (idle.empty()) {
      idle.reserve(all.size() + 1); // so that none needs memory to be given back
      all.push_back(std::make_unique<TraceRing>(traceCapacity()));
      return all.back().get();
    }
    TraceRing *ring = idle.back();
    idle.pop_back();
    return ring;
  }
  void release(TraceRing *ring) {
    std::lock_guard lock(mutex);
    idle.push_back(ring);
  }
  template <class Visit> void forEach(Visit visit) {
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < all.size(); ++i)
      visit(static_cast<uint16_t>(i), *all[i]);
  }

private:
  std::mutex mutex; // guards the lists, not the rings
  std::vector<std::unique_ptr<TraceRing>> all;
  std::vector<TraceRing *> idle;
};

/// Never destroyed: threads may end after static objects do. None in a child of fork(), whose
/// parent's threads may have held the lock.
Rings &rings() {
  static constinit PerProcess<Rings> theRings;
  return theRings.get();
}

TraceRing &ringOfThisThread() {
  /// A thread that was copied by fork() needs another ring.
  struct Lease {
    Rings *of = nullptr;
    TraceRing *ring = nullptr;
    ~Lease() {
      if (of == &rings())
        of->release(ring);
    }
  };
  thread_local Lease lease;
  if (Rings &present = rings(); lease.of != &present) {
    lease.ring = present.acquire(); // may throw
    lease.of = &present;
  }
  return *lease.ring;
}

uint32_t newSession() {
  static std::atomic<uint32_t> last{0};
  uint32_t session = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return session != 0 ? session : newSession();
}

} // namespace

uint32_t traceCapacity() {
  constexpr uint32_t kDefault = 1u << 15, kMost = 1u << 24;
  // Each thread's ring asks.
  static const auto capacity =
      static_cast<uint32_t>(environmentNumber("OCCL_TRACE_EVENTS", 1, kMost, kDefault));
  return capacity;
}

bool Trace::start() {
  std::lock_guard lock(mutex);
  if (isOn())
    return false;
  recorded.store(0, std::memory_order_relaxed);
  session.store(newSession(), std::memory_order_release);
  return true;
}

void Trace::record(const TraceEvent &event) {
  uint32_t current = session.load(std::memory_order_acquire);
  if (current == 0)
    return;
  recorded.fetch_add(1, std::memory_order_relaxed);
  try {
    ringOfThisThread().push(encode(event, current));
  } catch (const std::bad_alloc &) { // for the thread's ring: the event counts as dropped
  }
}

Trace::Recording Trace::stop() {
  std::lock_guard lock(mutex);
  Recording recording;
  // Events that come later belong to no session, and are dropped.
  uint32_t current = session.exchange(0, std::memory_order_acq_rel);
  if (current == 0)
    return recording;
  // The rings are shared by all communicators, so only events of this recording count.
  rings().forEach([&](uint16_t number, const TraceRing &ring) {
    ring.forEach([&](const TraceWords &words) {
      if (sessionOf(words) != current)
        return;
      recording.events.push_back(decode(words));
      recording.events.back().executor = number;
    });
  });
  // Older events were overwritten in their rings.
  uint64_t kept = recording.events.size(), all = recorded.load(std::memory_order_relaxed);
  recording.dropped = all > kept ? all - kept : 0;
  std::ranges::stable_sort(recording.events, {}, &TraceEvent::begin);
  return recording;
}

} // namespace occl::insight
