// The lane: a small call is executed by its caller, step by step, without an executor.
#include "runtime/sched/lane_run.h"

#include "runtime/sched/core.h"
#include "runtime/sync/thread.h"

#include <algorithm>

namespace occl::daemon {

using interpreter::StepStatus;

bool LaneRun::run() {
  // The first steps store this rank's data.
  const bool isOver = driver.advance() == StepStatus::Finished;
  const bool hasRung = driver.ring();
  // After its first data, which peers wait for, and not before: the neighbours' records come from
  // their caches.
  if (!core.compare(invocation) || (!isOver && !await(hasRung))) {
    leave();
    return false;
  }
  // Finished: doorbells, then counters, then the request, which may be gone from there on.
  driver.ring();
  const Ticks total = elapsed(invocation.times.submitted, ticks());
  task.meter.madeAlone(driver.slices(), total > waiting ? total - waiting : 0, numWaits, waiting);
  // False after a failure: an executor ends it with all others.
  if (!core.device->board.completeInLane(invocation, total)) {
    leave(true);
    return false;
  }
  Device &device = *core.device; // it stays, the core perhaps not
  Atomic<uint64_t> &ended = core.ended;
  invocation.finished.store(true, std::memory_order_release); // from here on the admission's
  ended.fetch_add(1, std::memory_order_seq_cst);
  fenceAfterUpdate();
  device.bell.ringFenced(); // threads in wait()
  return true;
}

bool LaneRun::await(bool hasRung) {
  if (!hasRung || !invocation.collective->firstStepRingsReaders)
    core.ringReaders(*invocation.collective);
  waitBegin = ticks();
  for (;;) {
    // It leaves for what only the usual way can do: failure, other tasks, sleeping.
    if (core.fabric->failed() || core.device->board.hasSubmissions() || !mayStay())
      return false;
    offers.haveBegun() ? yieldProcessor() : relax();
    const bool isOver = driver.advance() == StepStatus::Finished;
    if (!isOver && !driver.ring())
      continue;
    const Ticks now = ticks();
    ++numWaits;
    waiting += elapsed(waitBegin, now);
    if (isOver)
      return true;
    waitBegin = now;
    polling = {};
    offers.reset();
  }
}

bool LaneRun::mayStay() {
  const scheduler::Visit alone;
  return (!offers.haveBegun() && polling.goesOn([&] { return core.device->budgetOf(alone); })) ||
         offers.goOn();
}

/// What an executor would have left behind. `isCounted`: its steps are, in its counters.
void LaneRun::leave(bool isCounted) {
  task.context = driver.context();
  // Executors set the result, which the caller takes from the invocation.
  invocation.own.expect();
  const Ticks begin = invocation.times.submitted;
  invocation.times.reset(begin);
  if (waitBegin == 0)
    waitBegin = begin;
  // Steps so far count as one visit.
  if (driver.slices() != 0 && !isCounted)
    task.meter.ran(driver.slices(), begin, std::max(begin, waitBegin - waiting));
  const auto timeout = invocation.timeout.count() != 0 ? invocation.timeout : core.options.timeout;
  // It has a deadline and is open for executors from here on.
  core.device->board.leaveLane(invocation, coarseNow() + timeout);
  core.device->submissions.open();
}

} // namespace occl::daemon
