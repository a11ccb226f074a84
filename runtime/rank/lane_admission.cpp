// The part of admission that lets an invocation into the lane: what submit() does, for one that
// takes over everything from the one before.
#include "runtime/rank/admission.h"
#include "runtime/sched/lane.h"

namespace occl::daemon {

using transport::AnnounceCell;

OpenInvocation *Admission::enterLane(const Submission &submission) {
  std::lock_guard lock(mutex);
  IdState *id = find(submission.id);
  const Collective *shape = id ? shapes.find(*submission.signature) : nullptr;
  OpenInvocation *invocation = shape ? lastForLane(*id, *shape, submission) : nullptr;
  if (!invocation || !checkRing(*id).ok())
    return nullptr;
  const void *input = submission.input; // may be null on ranks that have none
  if (isScaled(*shape, submission) && !(input = scaleForLane(*invocation, submission)))
    return nullptr;
  const uint64_t ordinal = id->nextOrdinal;
  const uint64_t last = invocation->ordinal;
  invocation->times.submitted = ticks();
  invocation->request = 0;
  invocation->hasCallback = false;
  setOptions(*invocation, submission);
  if (!core.device->board.enterLane(*invocation, ordinal))
    return nullptr;
  invocation->finished.store(false, std::memory_order_relaxed);
  invocation->announcedBelow.store(0, std::memory_order_relaxed);
  invocation->highestPriority.store(invocation->priority, std::memory_order_relaxed);
  invocation->nextLook.store(0, std::memory_order_relaxed);
  id->unreclaimed[last % AnnounceCell::kRecords] = nullptr;
  id->unreclaimed[ordinal % AnnounceCell::kRecords] = invocation;
  id->usedAt[ordinal % AnnounceCell::kRecords] = ordinal;
  ++id->nextOrdinal;
  invocation->arenaOffset = id->lane->arenaOffset(ordinal);
  id->lane->prepare(invocation->view, ordinal, input, submission.output);
  id->counters.submitted.add(1);
  Stats::addLocked(core.stats.submitted, 1);
  announce(*invocation, core.device->submissions.addOwn());
  compare(*invocation);
  return invocation;
}

/// The invocation of the sequence before the next one, if that is for the lane. While there is a
/// lane the resident shape is the same, so an invocation that is resident is of it.
OpenInvocation *Admission::lastForLane(IdState &id, const Collective &shape,
                                       const Submission &submission) const {
  if (!id.lane || !id.isRingFresh() || !id.lane->isUpToDate(id) || core.trace.isOn() ||
      core.hasOpen() || !id.lane->accepts(submission.input, submission.output))
    return nullptr;
  OpenInvocation *last = id.unreclaimed[(id.nextOrdinal - 1) % AnnounceCell::kRecords];
  const bool isFree = last && !id.unreclaimed[id.nextOrdinal % AnnounceCell::kRecords] &&
                      last->finished.load(std::memory_order_acquire) && last->own.isNobodys() &&
                      last->isResident && last->collective == &shape;
  return isFree ? last : nullptr;
}

/// After the id's own invocation has been prepared: keeps what the next one will look for.
void Admission::keepLane(IdState &id) {
  if (!id.resident || !core.device->options.preemption || (id.lane && id.lane->isUpToDate(id)))
    return;
  id.lane = Lane::make(id, *core.fabric);
}

} // namespace occl::daemon
