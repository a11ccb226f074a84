// Counts and traces the visit of a task.
#include "runtime/sched/visit_recorder.h"

namespace occl::daemon {

using insight::TraceEvent;
using insight::TraceKind;

namespace {

TraceEvent eventOf(TraceKind kind, const BlockTask &task, Ticks from, Ticks to) {
  TraceEvent event = eventOf(kind, *task.invocation, from, to);
  event.block = task.block;
  return event;
}

} // namespace

TraceEvent waitEvent(const BlockTask &task, const insight::BlockMeter::Span &span) {
  TraceEvent event = eventOf(TraceKind::Wait, task, span.from, span.to);
  event.reason = static_cast<uint8_t>(span.wait.reason);
  event.instruction = span.wait.instruction;
  event.peer = span.wait.peer;
  return event;
}

void VisitRecorder::traceSlice(const interpreter::BlockContext &context, Ticks from) {
  TraceEvent event = eventOf(TraceKind::Run, task, from, ticks());
  event.instruction = context.instruction;
  event.detail = {context.tile, context.slice};
  core.trace.record(event);
}

void VisitRecorder::end(VisitOutcome &outcome) {
  outcome.endedAt = lookedAt;
  outcome.wait = task.meter.present();
  if (outcome.moved)
    task.meter.saved();
  if (outcome.preempted)
    task.meter.preempted();
  if (!isTraced)
    return;
  // A preemption is an event of its own at the end of the visit.
  TraceEvent event = eventOf(TraceKind::Visit, task, begin, ticks());
  event.detail = {visit.position, visit.queueLength};
  core.trace.record(event);
  if (!outcome.preempted)
    return;
  event.kind = TraceKind::Preempt;
  event.begin = event.end;
  core.trace.record(event);
}

} // namespace occl::daemon
