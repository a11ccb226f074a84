// The task board: submissions, sequences, claims and releases, under one short lock.
#include "runtime/sched/task_board.h"

#include "runtime/sched/core.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <utility>

namespace occl::daemon {

namespace {

/// Tells the peers that this rank does not touch the invocation's arenas any more. Under the lock,
/// before the successor starts, so that the count only grows.
void publishDone(const OpenInvocation &invocation) {
  if (invocation.operation)
    return; // its own words say it
  invocation.id->cell->done.store(invocation.ordinal + 1, std::memory_order_release);
}

void countClaim(Stats &stats, uint64_t queueLength) {
  Stats::addLocked(stats.contextLoads, 1);
  Stats::addLocked(stats.queueLengthSum, queueLength);
  Stats::raiseLocked(stats.maxQueueLength, queueLength);
}

void countBytes(const OpenInvocation &invocation) {
  const std::vector<BlockBytes> &bytes = invocation.collective->bytesOfBlocks;
  for (uint32_t b = 0; b < bytes.size(); ++b) {
    insight::BlockCounters &counters = invocation.id->counters.block(b);
    counters.bytesSent.add(bytes[b].sent);
    counters.bytesReceived.add(bytes[b].received);
  }
}

/// They are no invocations to the user.
void countTransferred(const transfer::Operation &operation, Stats &stats) {
  Stats::addLocked(operation.isSending() ? stats.bytesSent : stats.bytesReceived,
                   operation.bytes());
}

void countComplete(const OpenInvocation &invocation, Ticks now, Stats &stats) {
  invocation.id->counters.finish(invocation.times, now);
  countBytes(invocation);
  insight::Trace &trace = invocation.core->trace;
  if (trace.isOn()) {
    Ticks announced = invocation.times.announced.load(std::memory_order_relaxed);
    trace.record(eventOf(insight::TraceKind::Announced, invocation, announced, announced));
    trace.record(eventOf(insight::TraceKind::Finish, invocation, now, now));
  }
  if (invocation.operation)
    return countTransferred(*invocation.operation, stats);
  Stats::addLocked(stats.completed, 1);
  Stats::addLocked(stats.bytesSent, invocation.collective->bytesSent);
  Stats::addLocked(stats.bytesReceived, invocation.collective->bytesReceived);
}

/// Until its callback has returned. Without one, who completes the invocation lets go of the
/// communicator with the last that makes it complete.
void pinForCallback(const OpenInvocation &invocation) {
  if (invocation.hasCallback)
    invocation.place->pin();
}

/// Tells the ranks that access the invocation's buffers that they may, from now on until it is
/// done.
void publishBegun(const OpenInvocation &invocation) {
  const std::vector<uint32_t> &accessors = invocation.collective->direct.accessors;
  if (accessors.empty())
    return;
  invocation.id->cell->begun.store(invocation.ordinal + 1, std::memory_order_release);
  threadFence(std::memory_order_seq_cst);
  for (uint32_t accessor : accessors)
    if (Doorbell *bell = invocation.view.doorbells[accessor])
      bell->ringFenced();
}

} // namespace

void TaskBoard::attach(BoardPlace &place) {
  std::lock_guard lock(mutex);
  places.push_back(&place);
}

void TaskBoard::detach(BoardPlace &place) {
  {
    std::lock_guard lock(mutex);
    std::erase(places, &place);
    queue.removeRoom(std::exchange(place.room, 0));
  }
  // Whoever has pinned it is on its way out.
  while (place.pins.load(std::memory_order_acquire) != 0)
    yieldProcessor();
}

void TaskBoard::addRoom(BoardPlace &place, size_t tasks) {
  std::lock_guard lock(mutex);
  queue.addRoom(tasks);
  place.room += tasks;
}

void TaskBoard::removeRoom(BoardPlace &place, size_t tasks) {
  std::lock_guard lock(mutex);
  queue.removeRoom(tasks);
  place.room -= tasks;
}

bool TaskBoard::submit(OpenInvocation &invocation) {
  if (!invocation.place->submissions.push(&invocation))
    return false;
  submitted.store(true, std::memory_order_release);
  return true;
}

void TaskBoard::submitTogether(InvocationList &invocations) {
  std::lock_guard lock(mutex);
  while (OpenInvocation *invocation = invocations.take()) {
    // Of a place that has failed nobody but abandon() takes them.
    if (invocation->place->stopped)
      invocation->place->abandoned.add(*invocation);
    else
      enter(*invocation, emptySuccessors, invocation->times.submitted);
  }
  submitted.store(true, std::memory_order_relaxed); // ends a visit of a task that was alone
}

void TaskBoard::drainAll(InvocationList &complete, Ticks now) {
  // An exchange, so that what is pushed after the look into its queue sets the word again.
  if (!submitted.load(std::memory_order_relaxed) ||
      !submitted.exchange(false, std::memory_order_acq_rel))
    return;
  for (BoardPlace *place : places)
    if (!place->stopped) // else abandon() takes them
      drain(*place, complete, now);
}

void TaskBoard::drain(BoardPlace &place, InvocationList &complete, Ticks now) {
  while (auto next = place.submissions.pop())
    enter(**next, complete, now);
}

void TaskBoard::enter(OpenInvocation &invocation, InvocationList &complete, Ticks now) {
  IdState &id = *invocation.id;
  if (!id.running)
    return start(invocation, complete, now);
  id.waiting.add(invocation);
}

void TaskBoard::start(OpenInvocation &invocation, InvocationList &complete, Ticks now) {
  publishBegun(invocation);
  invocation.id->counters.start(invocation.times, queue.length(), now);
  if (invocation.core->trace.isOn()) {
    insight::TraceEvent event = eventOf(insight::TraceKind::Start, invocation, now, now);
    event.detail = {queue.length(), 0};
    invocation.core->trace.record(event);
  }
  // A rank without thread blocks has only to say that it has come to it.
  if (invocation.blocksLeft == 0) {
    publishDone(invocation);
    complete.add(invocation);
    return;
  }
  invocation.id->running = &invocation;
  ++arrivals;
  for (BlockTask &task : invocation.tasks) {
    task.standing.priority = invocation.priority;
    task.standing.arrival = arrivals;
    queue.insert(task);
  }
}

void TaskBoard::startSuccessor(IdState &id, InvocationList &complete, Ticks now) {
  id.running = nullptr;
  while (!id.running && !id.waiting.isEmpty())
    start(*id.waiting.take(), complete, now);
}

BlockTask *TaskBoard::claim(scheduler::Visit &visit, InvocationList &complete, Ticks now,
                            scheduler::Round &round) {
  std::lock_guard lock(mutex);
  // Take in what was submitted, and count what was complete with that, before choosing.
  complete.append(emptySuccessors);
  drainAll(complete, now);
  for (OpenInvocation *invocation = complete.front(); invocation;
       invocation = invocation->nextWaiting) {
    countComplete(*invocation, invocation->times.started, invocation->place->stats);
    pinForCallback(*invocation);
  }
  queue.begin(round);
  BlockTask *task = claimNext(visit);
  queue.look(round, !preemption);
  return task;
}

scheduler::Round TaskBoard::beginRound() {
  std::lock_guard lock(mutex);
  scheduler::Round round;
  queue.begin(round);
  return round;
}

bool TaskBoard::isOver(scheduler::Round round) {
  std::lock_guard lock(mutex);
  queue.look(round, !preemption);
  return round.isOver;
}

uint64_t TaskBoard::countClaims() {
  std::lock_guard lock(mutex);
  return queue.countClaims();
}

BlockTask *TaskBoard::claimNext(scheduler::Visit &visit) {
  auto *task = static_cast<BlockTask *>(queue.claimNext(!preemption, visit));
  if (task) {
    BoardPlace &place = placeOf(*task);
    ++place.numClaimed;
    task->claimedIn = place.epoch;
    countClaim(place.stats, visit.queueLength);
  }
  return task;
}

BlockTask *TaskBoard::startClaimed(OpenInvocation &invocation, scheduler::Visit &visit) {
  if (invocation.tasks.size() != 1)
    return nullptr;
  std::lock_guard lock(mutex);
  // What was submitted before it goes first, in the order of the invocations of an id.
  if (queue.length() != 0 || hasSubmissions() || !emptySuccessors.isEmpty() ||
      invocation.place->stopped)
    return nullptr;
  start(invocation, emptySuccessors, invocation.times.submitted); // it has a task: not complete
  return claimNext(visit);
}

bool TaskBoard::enterLane(OpenInvocation &invocation, uint64_t ordinal) {
  BlockTask &task = invocation.tasks[0];
  IdState &id = *invocation.id;
  std::lock_guard lock(mutex);
  if (queue.length() != 0 || hasSubmissions() || !emptySuccessors.isEmpty() ||
      invocation.place->stopped)
    return false;
  invocation.ordinal = ordinal;
  invocation.deadline = SteadyClock::time_point::max(); // nobody is in it for long
  invocation.blocksLeft = 1;
  id.running = &invocation;
  task.renew(invocation);
  task.standing.priority = invocation.priority;
  task.standing.arrival = ++arrivals;
  queue.insertClaimed(task);
  ++invocation.place->numClaimed;
  return true;
}

bool TaskBoard::completeInLane(OpenInvocation &invocation, Ticks total) {
  BlockTask &task = invocation.tasks[0];
  BoardPlace &place = *invocation.place;
  std::lock_guard lock(mutex);
  if (place.stopped)
    return false;
  // Off the queue, and the wait that others see of it with it; then the next one, if it waits.
  --place.numClaimed;
  queue.release(task);
  queue.remove(task);
  if (place.published) {
    place.published->clear();
    place.published = nullptr;
  }
  publishDone(invocation);
  if (!invocation.id->waiting.isEmpty())
    startSuccessor(*invocation.id, emptySuccessors, ticks());
  else
    invocation.id->running = nullptr;
  const Collective &collective = *invocation.collective;
  invocation.id->counters.finishAlone(total);
  countBytes(invocation);
  // Counted here all at once: on its way it has touched no counter.
  countClaim(place.stats, 1);
  Stats::addLocked(place.stats.contextSaves, 1);
  Stats::addLocked(place.stats.completed, 1);
  Stats::addLocked(place.stats.completedInLane, 1);
  Stats::addLocked(place.stats.bytesSent, collective.bytesSent);
  Stats::addLocked(place.stats.bytesReceived, collective.bytesReceived);
  return true;
}

void TaskBoard::leaveLane(OpenInvocation &invocation, SteadyClock::time_point deadline) {
  std::lock_guard lock(mutex);
  invocation.deadline = deadline;
  invocation.id->counters.start(invocation.times, 0, invocation.times.submitted);
  // Steps in the lane have touched no counter.
  countClaim(invocation.place->stats, 1);
  Stats::addLocked(invocation.place->stats.leftLane, 1);
}

void TaskBoard::place(OpenInvocation &invocation, scheduler::Standing standing) {
  std::lock_guard lock(mutex);
  for (BlockTask &task : invocation.tasks) {
    standing.arrival = task.standing.arrival;
    queue.move(task, standing);
  }
}

Released TaskBoard::release(BlockTask &task, const VisitOutcome &outcome) {
  std::lock_guard lock(mutex);
  BoardPlace &place = placeOf(task);
  --place.numClaimed;
  Released released;
  released.leftOut = queue.release(task);
  released.othersWait = queue.hasUnclaimed();
  if (outcome.moved)
    Stats::addLocked(place.stats.contextSaves, 1);
  if (outcome.preempted)
    Stats::addLocked(place.stats.preemptions, 1);
  // A communicator that has failed: whoever gives back its last task takes all off the board.
  if (place.stopped || outcome.failed) {
    place.pin();
    released.mustSettle = true;
    return released;
  }
  if (!preemption && (outcome.moved || outcome.finished))
    stillSince = SteadyClock::now();
  // What reports say of the task, until its next visit.
  task.lookedAt = outcome.begin;
  task.lookedIn = task.claimedIn;
  task.movedLast = outcome.moved;
  task.obstacle = outcome.obstacle;
  task.instruction = outcome.instruction;
  task.wait = outcome.wait;
  if (outcome.moved && place.published) {
    place.published->clear();
    place.published = nullptr;
  }
  if (!outcome.finished)
    return released;
  queue.remove(task);
  OpenInvocation &invocation = *task.invocation;
  if (--invocation.blocksLeft != 0)
    return released;
  // The last thread block: others may see that it is done before its successor begins.
  publishDone(invocation);
  startSuccessor(*invocation.id, emptySuccessors, outcome.endedAt);
  countComplete(invocation, outcome.endedAt, place.stats);
  pinForCallback(invocation);
  released.complete = &invocation;
  return released;
}

void TaskBoard::takeWithSuccessors(OpenInvocation &invocation, InvocationList &taken) {
  taken.add(invocation);
  taken.append(invocation.id->waiting);
  invocation.id->running = nullptr;
}

void TaskBoard::stop(BoardPlace &place) {
  // Claimed tasks leave the queue as well; their release finds the place stopped.
  place.stopped = true;
  queue.removeIf([&](const scheduler::Task &queued) {
    OpenInvocation &invocation = *static_cast<const BlockTask &>(queued).invocation;
    if (invocation.place != &place)
      return false;
    // Successors that wait go with their running invocation.
    if (invocation.id->running == &invocation)
      takeWithSuccessors(invocation, place.abandoned);
    return true;
  });
  // Those that were complete without a visit fail with the others.
  InvocationList ofOthers;
  while (OpenInvocation *invocation = emptySuccessors.take())
    (invocation->place == &place ? place.abandoned : ofOthers).add(*invocation);
  emptySuccessors = ofOthers;
}

InvocationList TaskBoard::abandon(BoardPlace &place) {
  std::lock_guard lock(mutex);
  // The first call stops the place; one that finds nothing claimed takes everything.
  if (!place.stopped)
    stop(place);
  if (place.numClaimed != 0)
    return {};
  InvocationList taken = std::exchange(place.abandoned, {});
  // Submissions since the place was stopped are still in its queue.
  while (auto next = place.submissions.pop())
    taken.add(**next);
  for (OpenInvocation *invocation = taken.front(); invocation;
       invocation = invocation->nextWaiting) {
    Stats::addLocked(place.stats.failed, invocation->operation ? 0 : 1);
    invocation->id->counters.failed.add(1);
  }
  return taken;
}

void TaskBoard::publishWaits(BoardPlace &place, transport::WaitEdgeBoard &edges) {
  // Under the lock, under which a task that moves takes the edges back.
  std::lock_guard lock(mutex);
  std::vector<transport::WaitEdge> waits;
  for (size_t i = 0; i < queue.length() && waits.size() < transport::WaitEdgeBoard::kMaxEdges;
       ++i) {
    const auto &task = static_cast<const BlockTask &>(queue.at(i));
    if (&placeOf(task) == &place && task.obstacle.reason != interpreter::BlockReason::None)
      waits.push_back(edgeOf(task));
  }
  edges.publish(waits);
  place.published = &edges;
}

std::optional<KeptTo> TaskBoard::keptTo() {
  std::lock_guard lock(mutex);
  const uint64_t group = queue.length() == 0 ? 0 : queue.at(0).group;
  if (group != front) {
    front = group;
    stillSince = SteadyClock::now();
  }
  // All tasks of the first invocation must be blocked, each since a look of its own; those that
  // wait for others of this rank tell nothing of other devices.
  KeptTo kept{{}, stillSince, SteadyClock::time_point::max()};
  for (size_t i = 0; i < queue.length() && queue.at(i).group == group; ++i) {
    const auto &task = static_cast<const BlockTask &>(queue.at(i));
    if (task.obstacle.reason == interpreter::BlockReason::None)
      return std::nullopt;
    kept.lookedAt = std::min(kept.lookedAt, task.lookedAt);
    if (task.obstacle.reason != interpreter::BlockReason::Dependency)
      kept.waits.push_back({task.invocation->core, edgeOf(task)});
  }
  return kept.waits.empty() ? std::nullopt : std::optional(std::move(kept));
}

} // namespace occl::daemon
