// Runs tasks of a rank, one visit after another. A worker has one, and every thread inside wait()
// has one: they differ only in when they stop.
#pragma once

#include "runtime/daemon/core.h"
#include "runtime/daemon/watchdog.h"
#include "runtime/interpreter/target_host.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace occl::daemon {

/// Used by one thread at a time.
class Executor {
public:
  Executor(Core &core, Watchdog &watchdog) : core(core), watchdog(watchdog) {}

  /// Visits tasks until done() says so; it is asked between visits. While nothing moves: polls,
  /// then yields the processor, then leaves it until the doorbell rings (voluntary quit).
  template <class Done> void runUntil(Done done) {
    while (!done()) {
      // Once a whole pass has moved nothing, each time that the processor comes back is for one
      // look.
      if (visitOne(isIdle() ? Patience::OnePoll : Patience::Budget)) {
        unmovedVisits = 0;
        yieldingSince = {};
        continue;
      }
      idle(done);
    }
  }

  /// At most one visit to each task, without polling. True if anything moved.
  bool pass();

private:
  using Clock = std::chrono::steady_clock;
  enum class Patience { Budget, OnePoll };

  bool visitOne(Patience patience);
  bool visitClaimed(BlockTask &task, const scheduler::Visit &visit, Patience patience);
  VisitOutcome run(BlockTask &task, const scheduler::Visit &visit, Patience patience);
  bool keepsPolling(const scheduler::Visit &visit, Clock::time_point &pollingSince);
  void completeAll();
  bool isIdle() const { return yieldingSince != Clock::time_point{}; }
  bool passIsOver();
  bool yieldsOn();

  template <class Done> void idle(Done done) {
    if (!passIsOver() || yieldsOn())
      return;
    Doorbell &bell = core.fabric->own().header().doorbell;
    uint32_t ticket = bell.prepareSleep();
    if (done() || pass())
      return;
    quit(bell, ticket);
  }
  void quit(Doorbell &bell, uint32_t ticket);

  Core &core;
  Watchdog &watchdog;
  size_t cursor = 0;
  size_t lastQueueLength = 0;
  size_t unmovedVisits = 0;
  uint32_t visitsSinceTick = 0;
  Clock::time_point yieldingSince{};
  std::vector<OpenInvocation *> complete;
  interpreter::HostTarget target;
};

} // namespace occl::daemon
