// Runs tasks of a device, one visit after another. A worker has one, and every thread inside wait()
// has one: they differ only in when they stop.
#pragma once

#include "runtime/exec/host/target_host.h"
#include "runtime/sched/core.h"
#include "runtime/sched/device.h"
#include "runtime/sched/offers.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/thread.h"

#include <chrono>
#include <cstdint>

namespace occl::daemon {

/// Used by one thread at a time.
class Executor {
public:
  explicit Executor(Device &device) : device(device) {}

  /// Visits tasks until done() says so; it is asked between visits. While nothing moves: polls,
  /// then yields the processor, then leaves it until the doorbell rings (voluntary quit).
  template <class Done> void runUntil(Done done) {
    while (!done()) {
      // Once a whole round has moved nothing, each time that the processor comes back is for one
      // look.
      if (visitOne(isIdle() ? Patience::OnePoll : Patience::Budget, round)) {
        round = {};
        offers.reset();
        continue;
      }
      idle(done);
    }
  }

  /// A round of visits without polling: each task that is open and that nobody holds is looked at.
  /// True if it was not the last one: something has moved, or somebody else's was over meanwhile
  /// without a look at what was claimed here. That one may have enabled it since it was looked at
  /// here, and sleep now. Who does not go on then has to ring.
  bool lookAtAll();

  /// Begins anew: polls, and offers the processor, before it leaves it.
  void restart() {
    round = {};
    offers.reset();
  }
  /// It has offered the processor for a while and nothing moves: it is about to leave it.
  bool isStuck() const { return offers.areOver(); }
  /// Tasks that it has claimed from the board so far.
  uint64_t countClaims() const { return claims; }

  /// Visits what the caller has claimed at its submission: see Admitted. While it is alone on the
  /// board and others may need the processor, it is not released between looks, for a short time.
  void runClaimed(BlockTask &task, const scheduler::Visit &visit);
  /// The same for a task that others go on with: polls for some microseconds.
  void beginClaimed(BlockTask &task, const scheduler::Visit &visit);
  /// Ends a visit of the only task on the board that the caller has begun itself (LaneRun), after
  /// one more look. It has waited since then, if at all.
  void goOnClaimed(BlockTask &task, Ticks waitingSince);

  /// One look at all, and others are told if that has moved something: for calls of programs that
  /// may do nothing but ask.
  static void lookOnce(Device &device);

private:
  using Clock = SteadyClock;
  /// First: who has submitted it begins with it. Begun: one poll, and the visit may have moved it
  /// before.
  enum class Patience { Budget, OnePoll, First, Alone, Begun };

  bool visitOne(Patience patience, scheduler::Round &round);
  bool visitClaimed(BlockTask &task, const scheduler::Visit &visit, Patience patience, Ticks now);
  static void complete(OpenInvocation &invocation);
  static void confirm(Core &core, OpenInvocation &invocation, interpreter::Obstacle &obstacle);
  VisitOutcome run(Core &core, BlockTask &task, const scheduler::Visit &visit, Patience patience,
                   Ticks now);
  bool staysWith(const scheduler::Visit &visit, Patience patience, Polling &polling);
  bool keepsPolling(const scheduler::Visit &visit, Patience patience, Polling &polling) const;
  bool isIdle() const { return offers.haveBegun(); }
  void callWorkers(Ticks visitBegin);

  template <class Done> void idle(Done done) {
    if (!round.isOver)
      return;
    round = {};
    if (offers.goOn())
      return yieldProcessor();
    uint32_t ticket = device.bell.prepareSleep();
    if (done() || lookAtAll())
      return;
    quit(ticket);
  }
  void quit(uint32_t ticket);

  Device &device;
  scheduler::Round round; // since something has moved, or the last one was over
  uint64_t claims = 0;
  bool leftOut = false;
  uint32_t visitsSinceTick = 0;
  Offers offers;
  InvocationList completeAtOnce; // they have no thread block here
  interpreter::HostTarget target;
};

} // namespace occl::daemon
