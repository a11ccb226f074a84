// Runs tasks of a device, one visit after another. A worker has one, and every thread inside wait()
// has one: they differ only in when they stop.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/thread.h"
#include "runtime/daemon/core.h"
#include "runtime/daemon/device.h"
#include "runtime/daemon/offers.h"
#include "runtime/interpreter/target_host.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace occl::daemon {

/// Used by one thread at a time.
class Executor {
public:
  explicit Executor(Device &device) : device(device) {}

  /// Visits tasks until done() says so; it is asked between visits. While nothing moves: polls,
  /// then yields the processor, then leaves it until the doorbell rings (voluntary quit).
  template <class Done> void runUntil(Done done) {
    while (!done()) {
      // Once a whole pass has moved nothing, each time that the processor comes back is for one
      // look.
      if (visitOne(isIdle() ? Patience::OnePoll : Patience::Budget)) {
        unmovedVisits = 0;
        offers.reset();
        continue;
      }
      idle(done);
    }
  }

  /// At most one visit to each task, without polling. True if anything moved.
  bool pass();

  /// Visits what the caller has claimed at its submission: see Admitted. While it is alone on the
  /// board and others may need the processor, it is not released between looks, for a short time.
  void runClaimed(BlockTask &task, const scheduler::Visit &visit);
  /// The same for a task that others go on with: polls for some microseconds.
  void beginClaimed(BlockTask &task, const scheduler::Visit &visit);
  /// Ends a visit of the only task on the board that the caller has begun itself (LaneRun), after
  /// one more look. It has waited since then, if at all.
  void goOnClaimed(BlockTask &task, Ticks waitingSince);

private:
  using Clock = SteadyClock;
  /// First: who has submitted it begins with it. Begun: one poll, and the visit may have moved it
  /// before.
  enum class Patience { Budget, OnePoll, First, Alone, Begun };

  bool visitOne(Patience patience);
  bool visitClaimed(BlockTask &task, const scheduler::Visit &visit, Patience patience, Ticks now);
  static void complete(OpenInvocation &invocation);
  static void confirm(Core &core, OpenInvocation &invocation, interpreter::Obstacle &obstacle);
  VisitOutcome run(Core &core, BlockTask &task, const scheduler::Visit &visit, Patience patience,
                   Ticks now);
  bool staysWith(const scheduler::Visit &visit, Patience patience, Polling &polling);
  bool keepsPolling(const scheduler::Visit &visit, Patience patience, Polling &polling) const;
  bool isIdle() const { return offers.haveBegun(); }
  bool passIsOver();

  template <class Done> void idle(Done done) {
    if (!passIsOver())
      return;
    if (offers.goOn())
      return yieldProcessor();
    uint32_t ticket = device.bell.prepareSleep();
    if (done() || pass())
      return;
    quit(ticket);
  }
  void quit(uint32_t ticket);

  Device &device;
  size_t lastQueueLength = 0;
  size_t unmovedVisits = 0;
  uint32_t visitsSinceTick = 0;
  Offers offers;
  std::vector<OpenInvocation *> completeAtOnce; // they have no thread block here
  interpreter::HostTarget target;
};

} // namespace occl::daemon
