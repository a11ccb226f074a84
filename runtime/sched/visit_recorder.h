// What is counted, and recorded while somebody traces, of one visit of a task by an executor.
#pragma once

#include "runtime/exec/host/step_driver.h"
#include "runtime/sched/core.h"
#include "runtime/sched/task_board.h"

namespace occl::daemon {

/// The event of a task's wait.
insight::TraceEvent waitEvent(const BlockTask &task, const insight::BlockMeter::Span &span);

/// Used by the executor that has claimed the task.
class VisitRecorder {
public:
  VisitRecorder(Core &core, BlockTask &task, const scheduler::Visit &visit, Ticks begin)
      : core(core), task(task), visit(visit), isTraced(core.trace.isOn()), begin(begin),
        lookedAt(begin) {
    task.meter.visit(visit.queueLength);
  }

  /// Runs as interpreter::runOnHost does, and counts what it did.
  interpreter::StepResult run(interpreter::BlockContext &context, interpreter::HostTarget &target,
                              uint32_t maxSlices) {
    interpreter::StepResult result =
        isTraced ? runTraced(context, target, maxSlices) : runUntraced(context, target, maxSlices);
    if (result.slices != 0) {
      Ticks now = ticks();
      traceWait(task.meter.ran(result.slices, lookedAt, now));
      lookedAt = now;
    }
    return result;
  }
  /// What that has left it waiting for.
  void blocked(const insight::BlockMeter::Wait &wait) {
    traceWait(task.meter.blocked(wait, lookedAt));
  }
  /// Another look begins.
  void lookAgain() { lookedAt = ticks(); }
  void sawAnnouncement() { task.invocation->times.sawAnnouncement(ticks()); }
  /// The visit is over.
  void end(VisitOutcome &outcome);

private:
  interpreter::StepResult runUntraced(interpreter::BlockContext &context,
                                      interpreter::HostTarget &target, uint32_t maxSlices) {
    const OpenInvocation &invocation = *task.invocation;
    if (invocation.operation)
      return invocation.operation->run(context, maxSlices);
    const interpreter::StepTable &steps = *invocation.collective->binding->steps(task.block);
    return interpreter::runOnHost(invocation.view, steps, context, target, maxSlices,
                                  invocation.partitions);
  }
  interpreter::StepResult runTraced(interpreter::BlockContext &context,
                                    interpreter::HostTarget &target, uint32_t maxSlices) {
    interpreter::StepResult result;
    uint32_t slices = 0;
    do {
      interpreter::BlockContext before = context;
      Ticks from = ticks();
      result = runUntraced(context, target, 1);
      if (result.slices != 0)
        traceSlice(before, from);
      slices += result.slices;
    } while (result.status == interpreter::StepStatus::Progressed && slices < maxSlices);
    result.slices = slices;
    return result;
  }
  void traceSlice(const interpreter::BlockContext &context, Ticks from);
  void traceWait(const insight::BlockMeter::Span &span) {
    if (isTraced && span)
      core.trace.record(waitEvent(task, span));
  }

  Core &core;
  BlockTask &task;
  const scheduler::Visit &visit;
  const bool isTraced;
  const Ticks begin;
  Ticks lookedAt; // when the present look, or what follows the last slice, began
};

} // namespace occl::daemon
