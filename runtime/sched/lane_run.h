// The lane: a straight way for a small collective that its caller runs by itself (occlCall) while
// nothing else is open on the device.
//
// What an executor would do for such an invocation is the same each time, but for the ordinal and
// the user's buffers: its memory is that of the last one of its shape, the readers know where it
// lies, its one thread block is a few steps in lines. So it is looked up once
// (runtime/invocation/lane.h), and the driver of the steps is called inline (LaneRun).
//
// It leaves nothing out that anybody else can see. The same words are changed under the same locks
// in the same order as by admission, task board and executor: an invocation in the lane is
// announced, stands on the board, its task claimed. So nobody has to know that there is a lane, and
// who is in it may leave it at any look: an executor goes on with the claimed task.
#pragma once

#include "runtime/exec/host/step_driver.h"
#include "runtime/invocation/open_invocation.h"
#include "runtime/sched/offers.h"

#include <cstdint>

namespace occl::daemon {

/// Runs an invocation that Admission::enterLane() has let in. Used once, by the thread that has
/// submitted it.
class LaneRun {
public:
  explicit LaneRun(OpenInvocation &invocation)
      : invocation(invocation), core(*invocation.core), task(invocation.tasks[0]),
        driver(*invocation.collective->binding->steps(0), invocation.view, {}, target) {}

  /// True: it is complete, and over with everything that belongs to it, the communicator perhaps
  /// included. False: it did not end as fast as that, or something else is to be done; all is as if
  /// the caller had just claimed the task.
  bool run();
  /// After run(): the device with the task that is the caller's to go on with.
  BlockTask &claimed() const { return task; }
  /// Since when it has waited.
  Ticks waitingSince() const { return waitBegin; }

private:
  /// Waits until all is done. False: leaves. `hasRung`: for the first steps.
  bool await(bool hasRung);
  bool mayStay();
  void leave(bool isCounted = false);

  OpenInvocation &invocation;
  Core &core;
  BlockTask &task;
  interpreter::HostTarget target;
  interpreter::StepDriver driver;
  Polling polling;
  Offers offers;
  uint32_t numWaits = 0;
  Ticks waitBegin = 0, waiting = 0;
};

} // namespace occl::daemon
