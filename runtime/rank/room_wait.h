// Calls that wait for room. Nothing of them is in flight, so nobody else looks after them: they
// find out by themselves when waiting is in vain, and say that they wait.
#pragma once

#include "runtime/base/status.h"
#include "runtime/queue/request_table.h"
#include "runtime/rank/admission.h"
#include "runtime/sched/core.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/light_mutex.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace occl::daemon {

/// Between two looks whether there is room, after so many in vain: sleeps if there were many.
void pauseAfter(uint32_t looks);

/// Of one call whose thread waits, from its first refusal until it is admitted or given up. Used by
/// its thread.
class RoomWait {
public:
  RoomWait(Core &core, Admission &admission, const Submission &call)
      : core(core), admission(admission), call(call) {}
  ~RoomWait() {
    if (isSaid)
      withdraw();
  }
  RoomWait(const RoomWait &) = delete;
  RoomWait &operator=(const RoomWait &) = delete;

  /// The call has been refused, with this reason. Timeout, PeerFailed: it is not to be tried again,
  /// and the communicator has to fail.
  Status look(const std::string &refusal);
  /// Between two tries, once what could be done has been done.
  void pause() const { pauseAfter(looks); }
  /// The first refusal.
  SteadyClock::time_point begin() const { return since; }

private:
  void withdraw();
  std::chrono::milliseconds waited() const;

  Core &core;
  Admission &admission;
  const Submission &call;
  uint32_t looks = 0;
  SteadyClock::time_point since{};
  bool isSaid = false, isReported = false;
};

/// A started call for which there was no room. Its owner's, who does nothing with it while it waits
/// but ask whether it does.
struct DeferredStart {
  Submission call; // what it refers to lives as long
  std::string subject;
  SteadyClock::time_point deadline;
  /// Once it does not wait any more: 0 if the communicator has failed before it began.
  RequestId request = 0;
  Atomic<bool> isWaiting{false};
};

/// Those of a rank: they begin as soon as there is room, whatever their program does meanwhile.
/// Other ranks, which have begun them, wait for that alone. Thread safety: any.
class DeferredStarts {
public:
  DeferredStarts(Core &core, Admission &admission) : core(core), admission(admission) {}

  /// Takes the call over, which has just been refused so. The device counts it as open.
  void add(DeferredStart &start, const Status &refusal);
  /// Tries each one once more, those first that have waited for longest; cheap if none waits. Fails
  /// the communicator if one waits in vain, or beyond its deadline, and settles nothing. After a
  /// failure none waits any more. Throws nothing.
  void tryAll();
  bool areThere() const { return number.load(std::memory_order_acquire) != 0; }

private:
  Status tryOne(DeferredStart &start);
  bool isOver(DeferredStart &start);
  void checkWait(const DeferredStart &start, const Status &refusal) const;

  Core &core;
  Admission &admission;
  Atomic<uint32_t> number{0}; // of those that wait
  LightMutex mutex;           // guards below
  std::vector<DeferredStart *> waiting;
};

} // namespace occl::daemon
