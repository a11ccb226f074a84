// The part of admission that lets an invocation into the lane: what submit() does, for one that
// takes over everything from an earlier one of its shape.
#include "runtime/rank/admission.h"

#include <new>

namespace occl::daemon {

using transport::AnnounceCell;

OpenInvocation *Admission::enterLane(const Submission &submission) {
  std::lock_guard lock(mutex);
  IdState *id = find(submission.id);
  const Collective *shape = id ? shapes.find(*submission.signature) : nullptr;
  OpenInvocation *invocation = shape ? earlierForLane(*id, *shape, submission) : nullptr;
  if (!invocation || !checkRing(*id).ok())
    return nullptr;
  const void *input = submission.input; // may be null on ranks that have none
  if (readsCopy(*shape, submission) && !(input = scaleForLane(*invocation, submission)))
    return nullptr;
  const uint64_t ordinal = id->nextOrdinal;
  const uint64_t earlier = invocation->ordinal;
  // The earlier invocation becomes the next one; it is over, and nobody looks at it.
  invocation->times.submitted = ticks();
  invocation->request = 0;
  invocation->hasCallback = false;
  setOptions(*invocation, submission);
  // On the board with its task claimed, or unchanged and for the usual way.
  if (!core.device->board.enterLane(*invocation, ordinal))
    return nullptr;
  // Set only when the board has taken it: a refused one stays finished.
  invocation->finished.store(false, std::memory_order_relaxed);
  invocation->announcedBelow.store(0, std::memory_order_relaxed);
  invocation->highestPriority.store(invocation->priority, std::memory_order_relaxed);
  invocation->nextLook.store(0, std::memory_order_relaxed);
  // It moves from its old record's place to that of its new ordinal.
  id->unreclaimed[earlier % AnnounceCell::kRecords] = nullptr;
  id->unreclaimed[ordinal % AnnounceCell::kRecords] = invocation;
  ++id->nextOrdinal;
  id->ringReaders[ordinal % AnnounceCell::kRecords] = shape->recordReaders;
  invocation->arenaOffset = invocation->lane.arenaOffset(ordinal);
  invocation->lane.prepare(invocation->view, *id, ordinal, input, submission.output);
  id->counters.submitted.add(1);
  Stats::addLocked(core.stats.submitted, 1);
  // Announced last, when peers may use all of it.
  announce(*invocation, core.device->submissions.addOwn());
  return invocation;
}

/// The sequence's last invocation of the shape, if the next one may take it over. Nothing is in
/// flight then, so whatever else is in that one's place can be had back.
OpenInvocation *Admission::earlierForLane(IdState &id, const Collective &shape,
                                          const Submission &submission) {
  // A trace records steps that the lane leaves out, and other work needs an executor.
  if (core.trace.isOn() || core.hasOpen())
    return nullptr;
  OpenInvocation *earlier = nullptr;
  for (uint64_t back = 1; !earlier && back <= AnnounceCell::kRecords; ++back) {
    earlier = id.unreclaimed[(id.nextOrdinal - back) % AnnounceCell::kRecords];
    if (earlier && earlier->collective != &shape)
      earlier = nullptr;
  }
  // It has to be over, with rings where they were, and buffers as the plan wants them.
  if (!earlier || !earlier->lane.isKnown(id) || !canReclaim(*earlier) ||
      !earlier->lane.accepts(submission.input, submission.output))
    return nullptr;
  // The place that the next ordinal takes has to be free.
  OpenInvocation *holder = id.unreclaimed[id.nextOrdinal % AnnounceCell::kRecords];
  if (holder && holder != earlier) {
    if (!canReclaim(*holder))
      return nullptr;
    reclaim(*holder);
  }
  return earlier;
}

/// After the caller's own invocation, which uses the ring, has been prepared: keeps what the next
/// one of its shape will look for.
void Admission::keepLane(OpenInvocation &invocation) const {
  const IdState &id = *invocation.id;
  if (!core.device->options.preemption || invocation.lane.isKnown(id))
    return;
  try {
    invocation.lane.find(id, *invocation.collective, *core.fabric);
  } catch (const std::bad_alloc &) { // it is not known then: the next one goes the usual way
  }
}

} // namespace occl::daemon
